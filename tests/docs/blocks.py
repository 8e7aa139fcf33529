"""Every block of code on every page: what it is, and who runs it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
FENCE = re.compile(r'^```(?P<language>\w*)(?: title="(?P<title>[^"]*)")?\n(?P<text>.*?)^```$', re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    page: str  # such as docs/index.md
    language: str
    title: str
    text: str

    @property
    def first(self) -> str:
        return self.text.splitlines()[0]


def blocks(*languages: str) -> list[Block]:
    """All blocks in these languages, or all there are."""
    found = [
        Block(str(page.relative_to(ROOT)), match["language"], match["title"] or "", match["text"])
        for page in PAGES
        for match in FENCE.finditer(page.read_text())
    ]
    return [block for block in found if not languages or block.language in languages]


def of_page(page: str, *languages: str) -> list[Block]:
    return [block for block in blocks(*languages) if block.page == page]


def pages_with(language: str) -> list[str]:
    return sorted({block.page for block in blocks(language)})
