"""Pages in a real browser: the Debian package chromium. What a page does that it should not is written down."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import Dialog, Page, Request

CHROMIUM = shutil.which("chromium")
in_browser = pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium: apt-get install chromium")
HANDLERS = """[...document.querySelectorAll("*")].filter(one => [...one.attributes].some(
  attribute => attribute.name.startsWith("on") || attribute.name == "style")).length"""
GROUND = "getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number).reduce((a, b) => a + b)"


def watch(page: Page, is_ours: Callable[[str], bool]) -> list[str]:
    """A list that grows with all that a page should not do: complain, fail, open windows, ask for what is not ours."""
    wrong: list[str] = []

    def interrupted(dialog: Dialog) -> None:
        wrong.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def asked(request: Request) -> None:
        if not is_ours(request.url):
            wrong.append(f"request: {request.url}")

    page.on("dialog", interrupted)
    page.on("console", lambda said: wrong.append(f"console: {said.text}"))
    page.on("pageerror", lambda error: wrong.append(f"error: {error}"))
    page.on("popup", lambda _: wrong.append("popup"))
    page.on("request", asked)
    return wrong


def is_bright(page: Page) -> bool:
    """Whether the ground of a page is nearer to white than to black."""
    return bool(page.evaluate(GROUND) > 384)
