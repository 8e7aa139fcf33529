"""What WordNet says: words with their definitions."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from crawlguide.core.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

PARTS = ("noun", "verb", "adj", "adv")
EXAMPLES = re.compile(r";?\s*\"[^\"]*\"")
MARKER = re.compile(r"\((?:a|p|ip)\)$")  # how WordNet marks where an adjective may stand


@dataclass(frozen=True)
class Sense:
    words: list[str]
    gloss: str


def senses(folder: Path) -> list[Sense]:
    found = []
    for name in PARTS:
        file = folder / f"data.{name}"
        if not file.is_file():
            raise ConfigError(f"{folder}: expected WordNet's database, there is no {file.name}")
        lines = file.read_text("utf-8").splitlines()
        found += [sense(line) for line in lines if not line.startswith("  ")]  # such lines are the licence
    return found


def sense(line: str) -> Sense:
    """offset file type count (word id)… pointers | gloss"""
    data, _, gloss = line.partition(" | ")
    fields = data.split()
    words = [MARKER.sub("", word).replace("_", " ") for word in fields[4 : 4 + 2 * int(fields[3], 16) : 2]]
    return Sense(words, EXAMPLES.sub("", gloss).strip())


def texts(senses: Iterable[Sense]) -> list[str]:
    """Every word, every definition, and both together."""
    found: set[str] = set()
    for one in senses:
        found.update(one.words)
        found.update((one.gloss, f"{one.words[0]}: {one.gloss}") if one.gloss else ())
    return sorted(found)
