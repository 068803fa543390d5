"""The report is for people: what is wrong comes first, numbers are rounded, matrices are tables."""

import html.parser
import json
import pathlib
import re
from dataclasses import replace

import numpy as np
import pytest

import dpmanifold as dpm
from cli.shared import MEAN, tensors
from dpmanifold.report import html_report

BALL = dpm.Ball(dpm.SPD(3), 0.7 * np.eye(3), 2.5, source="textbook <diffusivities>")
PROMISE = dpm.ApproxDP(1 / 3, 1e-6)


class Page(html.parser.HTMLParser):
    """The text of a page as a reader sees it, without the record; refuses tags that are not closed in order."""

    def __init__(self, page):
        super().__init__()
        self.open, self.text, self.hidden = [], [], 0
        self.feed(page)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        if tag not in ("meta", "img"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if not {"style", "details"} & set(self.open):
            self.text.append(data)

    @property
    def words(self):
        return " ".join(" ".join(self.text).split())


RESULTS = {
    "mean": lambda **more: dpm.private_mean(tensors(), BALL, PROMISE, units=dpm.EACH_RECORD, **more),
    "refined": lambda **more: dpm.private_mean(
        tensors(), BALL, dpm.GDP(1 / 3), units=dpm.EACH_RECORD, refine=True, **more
    ),
    "variance": lambda **more: dpm.private_variance(tensors(), BALL, PROMISE, units=dpm.EACH_RECORD, **more),
    "ball": lambda **more: dpm.private_ball(tensors(), BALL, dpm.GDP(1 / 3), units=dpm.EACH_RECORD, **more),
    "region": lambda **more: dpm.private_region(tensors(), BALL, PROMISE, units=dpm.EACH_RECORD, **more),
    "interval": lambda **more: dpm.private_variance_interval(tensors(), BALL, PROMISE, units=dpm.EACH_RECORD, **more),
    "test": lambda **more: dpm.private_two_sample_test(
        tensors(), tensors(seed=1), BALL, PROMISE, units=dpm.EACH_RECORD, **more
    ),
    "groups": lambda **more: dpm.private_k_sample_test(
        tensors(), np.arange(200) % 3, BALL, PROMISE, units=dpm.EACH_RECORD, classes=[0, 1, 2], **more
    ),
    "classes": lambda **more: dpm.private_lda(
        tensors(), np.arange(200) % 3, BALL, PROMISE, units=dpm.EACH_RECORD, classes=[0, 1, 2], **more
    ),
    "components": lambda **more: dpm.private_pga(tensors(), BALL, PROMISE, units=dpm.EACH_RECORD, **more),
    "median": lambda **more: dpm.private_median(
        tensors(), BALL, dpm.GDP(2 / 3), units=dpm.EACH_RECORD, refine=False, **more
    ),
    "regression": lambda **more: dpm.private_regression(
        tensors(), np.linspace(18.0, 80.0, 200), BALL, PROMISE, units=dpm.EACH_RECORD, covariate_range=(18, 80),
        refine=False, **more
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", RESULTS)
def test_a_report_is_written_for_people(kind):
    page = html_report(RESULTS[kind]())
    words = Page(page).words
    assert "What was promised" in words
    assert 'class="mark good"' in page
    assert 'class="mark bad"' not in page
    assert "textbook <diffusivities>" in words
    assert "3 × 3 symmetric positive definite matrices" in words
    digits = [number.replace(".", "").lstrip("0") for number in re.findall(r"\d+\.\d+", words)]
    assert max(map(len, digits)) <= 6
    for code in ("Ball(", "array(", "SPD(", "source="):
        assert code not in words
    assert (
        "\n    "
        not in page.replace(page[page.index("<details>") : page.index("</details>")], "").partition("</style>")[2]
    )


def test_matrices_are_tables_with_aligned_entries():
    release = RESULTS["mean"]()
    page = html_report(release)
    tables = re.findall(r'<table class="matrix">(.*?)</table>', page)
    rows = [re.findall(r"<td>(.*?)</td>", row) for row in re.findall(r"<tr>(.*?)</tr>", tables[0])]
    np.testing.assert_allclose(np.array(rows, float), release.value, atol=6e-5)
    assert len({len(entry.partition(".")[2]) for row in rows for entry in row}) == 1


def test_the_record_keeps_every_digit():
    release = RESULTS["mean"]()
    record = html.unescape(re.search(r"<details>.*?<pre>(.*?)</pre>", html_report(release), re.DOTALL)[1])
    assert dpm.Release.from_dict(json.loads(record)).to_dict() == release.to_dict()


@pytest.mark.parametrize("space", [dpm.Sphere(2), dpm.Hyperbolic(2), dpm.KendallShapes(4), dpm.Euclidean(40)], ids=repr)
def test_every_space_has_words_and_numbers(space):
    ball = dpm.Ball(space, space.origin, 0.3)
    X = np.repeat(space.origin[None], 50, axis=0)
    page = html_report(dpm.private_mean(X, ball, dpm.GDP(1.0), units=dpm.EACH_RECORD))
    words = Page(page).words
    assert "cannot be shown" not in words
    assert "There is no picture" not in words
    assert "Nothing says where it comes from: ask." in words
    assert repr(space).partition("(")[0] + "(" not in words


@pytest.mark.parametrize("kind", ["mean", "region", "interval", "test"])
def test_a_result_that_fails_its_check_starts_red_with_the_findings(kind):
    true = RESULTS[kind]()
    if kind == "mean":
        forged = replace(true, scale=true.scale / 2)
    elif kind == "test":
        forged = replace(true, first=replace(true.first, scale=true.first.scale / 2))
    else:
        forged = replace(true, release=replace(true.release, scale=true.release.scale / 2))
    page = html_report(forged)
    body = page.partition("<body>")[2]
    first = re.search(r"<(?:div|p)[^>]*>", body)[0]
    assert first == '<div class="mark bad">'
    assert "THIS RESULT IS NOT CONSISTENT" in body
    wrong = html.escape(dpm.verify(forged).findings[0][:20])
    assert body.index(wrong) < body.index("What was promised")
    assert 'class="mark good"' not in page
    assert "<img" not in page  # a picture would say that it is private
    assert page.index("<title>NOT CONSISTENT") < page.index("<body>")


def test_a_value_that_is_no_point_is_reported_and_not_a_crash():
    true = RESULTS["mean"]()
    for value in (-np.eye(3), np.zeros((3, 3)), np.arange(9.0).reshape(3, 3)):
        page = html_report(replace(true, value=value, scale=true.scale / 2))
        assert "THIS RESULT IS NOT CONSISTENT" in page
        Page(page)


def test_what_is_not_private_starts_red():
    page = html_report(RESULTS["region"](rng=0))
    assert "that is NOT private" in page
    assert 'class="mark good"' not in page


def test_show_writes_the_red_report_and_exits_with_4(invoke, folder):
    invoke(*MEAN, "--out", "mean.json")
    record = json.loads(pathlib.Path("mean.json").read_text())
    del record["answers"]
    pathlib.Path("forged.json").write_text(json.dumps({**record, "scale": record["scale"] / 2}))
    result = invoke("show", "forged.json", "--html", "forged.html", code=4)
    assert "forged.json IS NOT CONSISTENT" in result.stderr
    assert "THIS RESULT IS NOT CONSISTENT" in (folder / "forged.html").read_text()
    invoke("show", "forged.json", "--picture", "forged.png", code=4)
    assert not (folder / "forged.png").exists()


# -------------------------------------------------------------------- no ball, and what digits are worth

SPHERE = dpm.Sphere(2)
HOLDS = "the promise holds for every digit"


def test_without_a_ball_a_report_speaks_of_none():
    X = SPHERE.random_point(200, rng=0)
    ball = dpm.Ball.whole(SPHERE, source="compass <readings>")
    release = dpm.private_mean(X, ball, dpm.GDP(1.0), units=dpm.EACH_RECORD, estimand="extrinsic")
    page = html_report(release)
    words = Page(page).words
    assert "There is no ball: records may lie anywhere, and none was moved." in words
    assert "Stated about it: compass <readings>." in words
    assert "without a ball no error can be stated" in words
    assert "<img" in page
    for untrue in ("public ball", "radius 3.14", "centre of the ball", "on its edge", "clipped records", ": ask."):
        assert untrue not in words


@pytest.mark.slow
@pytest.mark.parametrize("kind", RESULTS)
def test_digits_are_safe_where_exact_noise_was_drawn_in_private(kind):
    assert HOLDS in Page(html_report(RESULTS[kind](arithmetic="exact"))).words
    assert HOLDS not in Page(html_report(RESULTS[kind](arithmetic="float"))).words
    seeded = Page(html_report(RESULTS[kind](arithmetic="exact", rng=1))).words
    assert HOLDS not in seeded
    assert "but this result is not private" in seeded


def test_an_inconsistent_result_is_worth_nothing_to_any_digit():
    release = RESULTS["mean"](arithmetic="exact")
    words = Page(html_report(replace(release, scale=release.scale / 2))).words
    assert "NOT CONSISTENT" in words
    assert HOLDS not in words
    assert "that is worth nothing" in words


def test_the_digits_of_a_test_need_both_groups():
    exact = RESULTS["test"](arithmetic="exact")
    mixed = replace(exact, second=RESULTS["test"](arithmetic="float").second)
    words = Page(html_report(mixed)).words
    assert HOLDS not in words
    assert "drawn in double precision" in words
