"""What the documents show must run, and the bare package must not need more than it says."""

import importlib
import importlib.util
import pathlib
import pkgutil
import re
import subprocess
import sys
import types

ROOT = pathlib.Path(__file__).parent.parent


def test_readme_example_runs(tmp_path, monkeypatch):
    code = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL).group(1)
    monkeypatch.chdir(tmp_path)
    names = {}
    exec(code, names)
    assert names["release"].n == 400
    assert names["dpm"].verify(names["release"]).ok
    assert names["dpm"].Release.load("mean.json").to_dict() == names["release"].to_dict()


def test_every_bound_names_a_page_that_exists():
    import dpmanifold as dpm

    ball = dpm.Ball(dpm.Sphere(2), [1.0, 0.0, 0.0], 0.5)
    functions = [getattr(dpm.sensitivity, name) for name in dpm.sensitivity.__all__ if name.startswith("of_")]
    assert len(functions) == 9
    for function in functions:
        # A bound of averages is told its page by the statistic it is for.
        bound = (
            function(1.0, 10, "share", dpm.AveragedStatistic.proof)
            if function.__name__ == "of_average"
            else function(ball, 10)
        )
        assert (ROOT / "docs" / "theory" / f"{bound.proof}.md").is_file()


def pages():
    return [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(ROOT.glob("docs/**/*.md"))]


def test_links_between_documents_lead_somewhere():
    for page in pages():
        for target in re.findall(r"\]\(([^)#:]+\.(?:md|py|png|svg))(?:#[^)]*)?\)", page.read_text()):
            assert (page.parent / target).is_file(), f"{page.name}: {target}"


def not_in_the_example(page):
    """Return pieces of the code on a page, cut at lines of three dots, that stand in no file of examples/extension."""
    example = ROOT / "examples" / "extension"
    files = [path.read_text(encoding="utf-8") for path in (example / "pyproject.toml", *example.glob("src/*/*.py"))]
    blocks = re.findall(r"^```(?:python|toml)\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    pieces = [piece for block in blocks for piece in re.split(r"^ *\.\.\.\n", block, flags=re.MULTILINE)]
    assert len(pieces) > 10, "the page shows code"
    return [piece for piece in pieces if not any(piece in file for file in files)]


def test_code_that_contributors_are_shown_is_that_of_the_example():
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert not_in_the_example(page) == []
    assert len(not_in_the_example(page.replace("ball.radius", "2 * ball.radius"))) == 1, "other code is found"


def test_every_page_is_on_the_site():
    nav = (ROOT / "mkdocs.yml").read_text()
    for page in ROOT.glob("docs/**/*.md"):
        assert f": {page.relative_to(ROOT / 'docs')}\n" in nav, page.name


def test_markdown_is_at_most_120_characters_wide():
    """But for rows of tables, which cannot be broken, and the papers' pages, which are written by a program."""
    for page in [ROOT / "CHANGELOG.md", *pages()]:
        if page.parent.name == "papers":
            continue
        for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
            assert len(line) <= 120 or line.startswith("|"), f"{page.name}, line {number}: {len(line)} characters"


def test_every_public_name_is_on_a_reference_page():
    """By itself, or with the room that it is of."""
    text = "\n".join(page.read_text(encoding="utf-8") for page in sorted(ROOT.glob("docs/reference/*.md")))
    shown = re.findall(r"^::: (dpmanifold[.\w]*)$", text, re.MULTILINE)
    known = set()
    for place in shown:
        item = pkgutil.resolve_name(place)
        names = getattr(item, "__all__", None) or [name for name in vars(item) if not name.startswith("_")]
        known |= {id(getattr(item, name)) for name in names} if isinstance(item, types.ModuleType) else {id(item)}
    missing = []
    for room in ("", ".manifolds", ".inference", ".stats", ".noise", ".mechanisms", ".privacy", ".sensitivity"):
        module = importlib.import_module("dpmanifold" + room)
        missing += [
            f"{module.__name__}.{name}"
            for name in module.__all__
            if not (isinstance(getattr(module, name), types.ModuleType | str) or id(getattr(module, name)) in known)
        ]
    assert missing == []


def test_a_page_that_loads_from_elsewhere_is_found():
    """The site's check sees scripts, styles, fonts and pictures of other machines, and lets links alone."""
    spec = importlib.util.spec_from_file_location("offline", ROOT / "tools" / "pages" / "offline.py")
    offline = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(offline)
    inside = '<link href="a.css"><script src="b.js"></script><img src="c.png"><a href="https://example.org">there</a>'
    assert offline.loads_from_elsewhere(inside, "html") == []
    for outside in (
        '<script src="https://example.org/x.js"></script>',
        '<link rel="stylesheet" href="//example.org/x.css">',
        '<img src="http://example.org/x.png">',
        '<img srcset="a.png 1x, https://example.org/x.png 2x">',
        '<style>@import "https://example.org/x.css";</style>',
        '<p style="background: url(https://example.org/x.png)"></p>',
    ):
        assert len(offline.loads_from_elsewhere(inside + outside, "html")) == 1, outside
    assert offline.loads_from_elsewhere("@font-face { src: url('https://example.org/x.woff2') }", "css")
    assert not offline.loads_from_elsewhere("@font-face { src: url(fonts/x.woff2) }", "css")


def test_the_theme_loads_nothing_from_elsewhere():
    theme = ROOT / "tools" / "pages" / "theme"
    for path in theme.rglob("*.*"):
        text = path.read_text().replace("http://www.w3.org/2000/svg", "")  # the name of a format, never fetched
        assert not re.search(r"https?://", text), path.name


def test_bare_import_needs_base_dependencies_only():
    code = (
        "import sys, dpmanifold, dpmanifold.cli\n"
        "heavy = {'matplotlib', 'sklearn', 'pyriemann', 'geomstats', 'pandas', 'pytest', 'mpmath', 'PIL'}\n"
        "heavy |= {'sqlalchemy', 'psycopg'}\n"
        "sys.exit(', '.join(heavy & set(sys.modules)) or None)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
