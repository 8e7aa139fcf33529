"""robots.txt and sitemaps of a host."""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.sax.saxutils import escape

if TYPE_CHECKING:
    from collections.abc import Sequence

SITEMAP_PAGES = 200
_SCHEMA = "http://www.sitemaps.org/schemas/sitemap/0.9"


def robots(base: str, forbidden: Sequence[str], sitemap: bool) -> str:
    """The rules of a host; `base` is its address without the last slash."""
    rules = "\n".join(f"Disallow: {path}" for path in forbidden) or "Disallow:"
    return f"User-agent: *\n{rules}\n" + (f"\nSitemap: {base}/sitemap.xml\n" if sitemap else "")


def sitemap(base: str, path: str, urls: Sequence[str]) -> str | None:
    """`/sitemap.xml`, an index, or one of the parts it names, such as `/sitemap-2.xml`; None if it has no such part."""
    parts = range(1, -(-len(urls) // SITEMAP_PAGES) + 1)
    if path == "/sitemap.xml":
        return _document("sitemapindex", "sitemap", [f"{base}/sitemap-{part}.xml" for part in parts])
    number = path.removeprefix("/sitemap-").removesuffix(".xml")
    if not number.isdecimal() or int(number) not in parts:
        return None
    first = (int(number) - 1) * SITEMAP_PAGES
    return _document("urlset", "url", urls[first : first + SITEMAP_PAGES])


def _document(root: str, element: str, urls: Sequence[str]) -> str:
    entries = "".join(f"<{element}><loc>{escape(url)}</loc></{element}>\n" for url in urls)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<{root} xmlns="{_SCHEMA}">\n{entries}</{root}>\n'
