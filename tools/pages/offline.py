"""A built site must not load anything from elsewhere: no script, style, font or picture.

`python tools/pages/offline.py site` names what would be loaded, and fails if there is any. Links that a reader may
follow are not loads.
"""

import pathlib
import re
import sys
from html.parser import HTMLParser

_LOADING = {"script": "src", "link": "href", "img": "src", "iframe": "src", "source": "src", "object": "data"}
_REMOTE = re.compile(r"(?:https?:)?//", re.IGNORECASE)
_IN_STYLE = re.compile(r"""(?:url\(|@import)\s*['"]?\s*((?:https?:)?//[^'")\s]+)""", re.IGNORECASE)


class _Loads(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self._style = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        address = values.get(_LOADING.get(tag, ""), "")
        candidates = [address, *(part.strip() for part in values.get("srcset", "").split(","))]
        self.found += [one for one in candidates if _REMOTE.match(one)]
        self.found += _IN_STYLE.findall(values.get("style", ""))
        self._style = tag == "style"

    def handle_data(self, data: str) -> None:
        if self._style:
            self.found += _IN_STYLE.findall(data)

    def handle_endtag(self, tag: str) -> None:
        self._style = False


def loads_from_elsewhere(text: str, kind: str) -> list[str]:
    """Return the addresses that a page (kind "html") or a style sheet (kind "css") would load from other machines."""
    if kind == "css":
        return _IN_STYLE.findall(text)
    parser = _Loads()
    parser.feed(text)
    return parser.found


def check(folder: pathlib.Path) -> list[str]:
    """Return one line per address that some page or style sheet of a site would load from elsewhere."""
    files = sorted(path for path in folder.rglob("*") if path.suffix in (".html", ".css"))
    return [
        f"{path.relative_to(folder)}: {address}"
        for path in files
        for address in loads_from_elsewhere(path.read_text(encoding="utf-8"), path.suffix[1:])
    ]


if __name__ == "__main__":
    site = pathlib.Path(sys.argv[1])
    if not (site / "index.html").is_file():
        sys.exit(f"{site} holds no built site.")
    problems = check(site)
    sys.exit("\n".join(["loaded from elsewhere:", *problems]) if problems else 0)
