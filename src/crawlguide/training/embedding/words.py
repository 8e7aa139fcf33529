"""Which pieces and whole words have a row of their own, and phrases made of them."""

from __future__ import annotations

import re
import sysconfig
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

PIECE = re.compile(r"(##)?[a-z0-9]*[a-z][a-z0-9]*")  # numbers say nothing about what a text is about
WORD = re.compile(r"[A-Z]?[a-z]{2,}|[A-Z]{3,}(?![a-z])")
FEWEST_FILES = 3
LONGEST_PHRASE = 8
# Parts of the library whose names are not words of the trade, and what else was installed beside it.
ELSEWHERE = frozenset(("test", "tests", "idlelib", "lib2to3", "encodings", "site-packages", "dist-packages"))


def pieces(vocabulary: Iterable[str]) -> list[str]:
    """The pieces of an encoder's vocabulary that can occur in plain words."""
    return [piece for piece in vocabulary if PIECE.fullmatch(piece)]


def phrases(words: Sequence[str], count: int, seed: int) -> list[str]:
    """Words thrown together by chance: how the teacher sees them beside each other needs no text to be had."""
    chance = np.random.default_rng(seed)
    sizes = chance.integers(2, LONGEST_PHRASE + 1, count)
    return [" ".join(words[at] for at in chance.integers(0, len(words), size)) for size in sizes]


def technical(known: Collection[str], most: int, folder: Path | None = None) -> list[str]:
    """Words of the trade that are not known yet: those in most files of Python's standard library."""
    files: Counter[str] = Counter()
    for file in sorted((folder or Path(sysconfig.get_path("stdlib"))).rglob("*.py")):
        if ELSEWHERE.isdisjoint(file.parts):
            files.update({word.lower() for word in WORD.findall(file.read_text("utf-8", "replace"))})
    lacking = ((word, count) for word, count in files.items() if word not in known and count >= FEWEST_FILES)
    return [word for word, _ in sorted(lacking, key=lambda one: (-one[1], one[0]))[:most]]
