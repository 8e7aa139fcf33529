"""A page of the lab as real HTML."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from crawlguide.lab.pages import Page


def written(page: Page) -> str:
    """Title, text and links. All links are plain HTTP, as a loopback server cannot speak for other people's hosts."""
    links = "\n".join(f'<li><a href="{escape(plain(link.url))}">{escape(link.anchor)}</a></li>' for link in page.links)
    return (
        f'<!doctype html>\n<html lang="{escape(page.language)}">\n'
        f'<head><meta charset="utf-8"><title>{escape(page.title)}</title></head>\n'
        f"<body>\n<h1>{escape(page.title)}</h1>\n<p>{escape(page.text)}</p>\n<ul>\n{links}\n</ul>\n</body>\n</html>\n"
    )


def plain(url: str) -> str:
    return "http://" + url.removeprefix("https://") if url.startswith("https://") else url
