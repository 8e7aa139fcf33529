"""Distil a sentence encoder into the table of word pieces that comes with the package, and write it."""

from __future__ import annotations

import re
import sysconfig
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from crawlguide.core.errors import ConfigError
from crawlguide.features.embedding.table import save
from crawlguide.training import needed

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence


@dataclass(frozen=True)
class Plan:
    """How large a table, and how long it learns."""

    words: int = 1_000  # whole words beside the encoder's pieces
    phrases: int = 400_000  # of these words, and as many of WordNet's
    dims: int = 256
    steps: int = 2_000


def train(encoder: Path, wordnet: Path, out: Path, plan: Plan, say: Callable[[str], None]) -> None:
    """Distil the sentence-transformers model in the folder `encoder` into a table."""
    distil = needed("crawlguide.training.embedding_distil")
    teacher = distil.encoder(encoder)
    pieces = word_pieces_of(teacher.vocabulary)
    rows = [*pieces, *technical(set(pieces), plan.words)]
    whole = [row for row in rows if not row.startswith("##")]
    senses = read_senses(wordnet)
    known = sorted({word for sense in senses for word in sense.words})
    phrases = phrases_of(whole, plan.phrases, seed=0) + phrases_of(known, plan.phrases, seed=2)
    lessons = distil.gathered(teacher, rows, texts(senses) + phrases)
    table = distil.made(lessons, len(pieces), len(rows), distil.Options(dims=plan.dims, steps=plan.steps))
    save(out, rows, *distil.rounded(table))
    say(f"{out}: {len(rows)} rows, {out.stat().st_size} bytes")


# Which pieces and whole words have a row of their own, and phrases made of them.

PIECE = re.compile(r"(##)?[a-z0-9]*[a-z][a-z0-9]*")  # numbers say nothing about what a text is about
WORD = re.compile(r"[A-Z]?[a-z]{2,}|[A-Z]{3,}(?![a-z])")
FEWEST_FILES = 3
LONGEST_PHRASE = 8
# Parts of the library whose names are not words of the trade, and what else was installed beside it.
ELSEWHERE = frozenset(("test", "tests", "idlelib", "lib2to3", "encodings", "site-packages", "dist-packages"))


def word_pieces_of(vocabulary: Iterable[str]) -> list[str]:
    """The pieces of an encoder's vocabulary that can occur in plain words."""
    return [piece for piece in vocabulary if PIECE.fullmatch(piece)]


def phrases_of(words: Sequence[str], count: int, seed: int) -> list[str]:
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


# WordNet: words with their definitions.


PARTS = ("noun", "verb", "adj", "adv")
EXAMPLES = re.compile(r";?\s*\"[^\"]*\"")
MARKER = re.compile(r"\((?:a|p|ip)\)$")  # how WordNet marks where an adjective may stand


@dataclass(frozen=True)
class Sense:
    words: list[str]
    gloss: str


def read_senses(folder: Path) -> list[Sense]:
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
