"""Distil a sentence encoder into the table of word pieces that comes with the package, and write it."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from crawlguide.core.errors import ConfigError
from crawlguide.features.embedding.table import SHIPPED, save
from crawlguide.training.embedding import wordnet, words
from crawlguide.training.embedding.encoding import encoder
from crawlguide.training.embedding.fitting import Options, made, rounded
from crawlguide.training.embedding.lessons import gathered


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m crawlguide.training.embedding", description=__doc__)
    parser.add_argument("--encoder", type=Path, required=True, help="folder of a sentence-transformers model")
    parser.add_argument("--wordnet", type=Path, required=True, help="folder of WordNet 3.0 (data.noun …)")
    parser.add_argument("--out", type=Path, default=SHIPPED, help="where the table goes")
    parser.add_argument("--words", type=int, default=1_000, help="whole words beside the encoder's pieces")
    parser.add_argument("--phrases", type=int, default=400_000, help="of these words, and as many of WordNet's")
    parser.add_argument("--dims", type=int, default=Options.dims)
    parser.add_argument("--steps", type=int, default=Options.steps)
    given = parser.parse_args()
    teacher = encoder(given.encoder)
    pieces = words.pieces(teacher.vocabulary)
    rows = [*pieces, *words.technical(set(pieces), given.words)]
    whole = [row for row in rows if not row.startswith("##")]
    senses = wordnet.senses(given.wordnet)
    known = sorted({word for sense in senses for word in sense.words})
    phrases = words.phrases(whole, given.phrases, seed=0) + words.phrases(known, given.phrases, seed=2)
    lessons = gathered(teacher, rows, wordnet.texts(senses) + phrases)
    table = made(lessons, len(pieces), len(rows), Options(dims=given.dims, steps=given.steps))
    save(given.out, rows, *rounded(table))
    sys.stdout.write(f"{given.out}: {len(rows)} rows, {given.out.stat().st_size} bytes\n")


if __name__ == "__main__":
    try:
        main()
    except ConfigError as wrong:
        sys.exit(wrong.message)
