"""Checks the links inside the built site: ``python docs/check_links.py docs/_build/html``.

Every page, picture and anchor that a page points to must be there. Addresses elsewhere are
not asked for: `make links` does that, where there is a network.
"""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """Anchors of a page, and what it points to."""

    def __init__(self, path: Path):
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what a tag is called and what it points to."""
        for name, value in attrs:
            if name == "id" and value:
                self.anchors.add(value)
            if name in ("href", "src") and value:
                self.links.append(value)


def broken_links(site: Path) -> list[str]:
    """Links of a built site that lead nowhere, each as "page: link"."""
    found = (
        path for path in sorted(site.rglob("*.html")) if "_static" not in path.parts
    )
    pages = {path.resolve(): Page(path) for path in found}
    return [
        f"{path.relative_to(site.resolve())}: {link}"
        for path, page in pages.items()
        for link in dict.fromkeys(page.links)
        if not leads_somewhere(link, path, pages)
    ]


def leads_somewhere(link: str, path: Path, pages: dict[Path, Page]) -> bool:
    """Whether what a link on a page points to is there."""
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        return True
    target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    if not parts.fragment or target not in pages:
        return target.is_file()
    return unquote(parts.fragment) in pages[target].anchors


if __name__ == "__main__":
    found = broken_links(Path(sys.argv[1]))
    sys.exit("\n".join(["links that lead nowhere:", *found]) if found else 0)
