"""What MkDocs does not do by itself: formulas rendered when the site is built, and colours of code and sessions.

Pages hold finished formulas, so that readers need no script for them; KaTeX's style and fonts are copied into it.
"""

from __future__ import annotations

import html
import importlib
import json
import pathlib
import re
import shutil
import subprocess
import sys
from typing import Any

from mkdocs.exceptions import PluginError
from pygments.formatters import HtmlFormatter

_HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(_HERE))
commands = importlib.import_module("commands")
_KATEX = _HERE / "node_modules" / "katex" / "dist"
# A comma or full stop behind a formula becomes part of it: browsers would break the line between the two.
_FORMULA = re.compile(r'<(span|div) class="arithmatex">\\([(\[])(.*?)\\[)\]]</\1>([,.;:]?)', re.DOTALL)
_OTHER_FONTS = re.compile(r',\s*url\([^)]*\.(?:woff|ttf)\)\s*format\("[^"]*"\)')
_LEFT_OUT = re.compile(r" *# doctest: \+SKIP$", re.MULTILINE)
_LIGHT, _DARK = "friendly", "github-dark"  # styles of Pygments


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Let what an example prints look like what is printed, not like code; write out the commands.

    What tells the tests to leave a line out, where there is no card, is none of a reader's business.
    """
    if commands.MARK in markdown:
        markdown = markdown.replace(commands.MARK, commands.markdown())
    markdown = _LEFT_OUT.sub("", markdown)
    return markdown.replace("```python\n>>>", "```pycon\n>>>")


def _source(formula: re.Match[str]) -> str:
    mark = formula[4]
    return html.unescape(formula[3]).strip() + (f"\\text{{{mark}}}" if mark else "")


def on_post_page(output: str, page: Any, config: Any) -> str:
    """Render the formulas of a page, all in one go; the search index has been given their sources by now."""
    found = list(_FORMULA.finditer(output))
    if not found:
        return output
    if not _KATEX.is_dir():
        raise PluginError("KaTeX is not installed: run `npm ci --prefix tools/pages`, or build with `make docs`.")
    formulas = [{"tex": _source(one), "display": one[2] == "["} for one in found]
    run = subprocess.run(
        ["node", str(_HERE / "formulas.mjs")], input=json.dumps(formulas), capture_output=True, text=True, check=False
    )
    if run.returncode:
        raise PluginError(f"{page.file.src_uri}: a formula cannot be rendered.\n{run.stderr}")
    rendered = iter(json.loads(run.stdout))
    return _FORMULA.sub(lambda _: next(rendered), output)


def on_post_build(config: Any) -> None:
    """Put KaTeX's style and fonts, and the colours of code, beside the pages."""
    assets = pathlib.Path(config["site_dir"]) / "assets"
    target = assets / "katex"
    (target / "fonts").mkdir(parents=True, exist_ok=True)
    for font in (_KATEX / "fonts").glob("*.woff2"):
        shutil.copy(font, target / "fonts")
    style = (_KATEX / "katex.min.css").read_text(encoding="utf-8")
    (target / "katex.min.css").write_text(_OTHER_FONTS.sub("", style), encoding="utf-8")
    light, dark = (HtmlFormatter(style=name) for name in (_LIGHT, _DARK))
    chosen = dark.get_style_defs(':root[data-theme="dark"] .highlight')
    preferred = dark.get_style_defs(':root:not([data-theme="light"]) .highlight')
    parts = [light.get_style_defs(".highlight"), chosen, "@media (prefers-color-scheme: dark) {", preferred, "}\n"]
    (assets / "code.css").write_text("\n".join(parts), encoding="utf-8")
