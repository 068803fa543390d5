"""What the documents show must run, and the bare package must not need more than it says."""

import pathlib
import re
import subprocess
import sys

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
    assert len(functions) == 8
    for function in functions:
        assert (ROOT / function(ball, 10).proof).is_file()


def test_links_between_documents_lead_somewhere():
    for page in [ROOT / "README.md", *ROOT.glob("docs/**/*.md")]:
        for target in re.findall(r"\]\(([^)#:]+\.md)\)", page.read_text()):
            assert (page.parent / target).is_file(), f"{page.name}: {target}"


def test_bare_import_needs_base_dependencies_only():
    code = (
        "import sys, dpmanifold, dpmanifold.cli\n"
        "heavy = {'matplotlib', 'sklearn', 'pyriemann', 'geomstats', 'pandas', 'pytest', 'mpmath', 'pyarrow', 'PIL'}\n"
        "sys.exit(', '.join(heavy & set(sys.modules)) or None)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
