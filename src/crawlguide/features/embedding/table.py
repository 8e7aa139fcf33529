"""The table of word pieces that comes with the package, and the vectors of texts (docs/embedding.md)."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING
from zipfile import BadZipFile

import numpy as np
import numpy.typing as npt

from crawlguide.core.columns import coded
from crawlguide.core.errors import ConfigError
from crawlguide.features.embedding import url_words, word_pieces
from crawlguide.features.embedding.url_words import SILENT, name_of, words_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crawlguide.core.columns import Coded
    from crawlguide.core.tables import I32, I64, U64

SHIPPED = Path(__file__).with_name("table.npz")
ROOM = 1 << 16  # places in the index: about two for each piece
MARKS = re.compile(r"[\u0300-\u036f]+")  # accents, once they stand apart from their letters
LONG_FORMS = re.compile(r"[\u3200-\u321e\u327c\u327d\u3300-\u3357\u337f\ufb50-\ufdff\ufe70-\ufeff]+")
F32 = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Embedding:
    """A vector for each word piece. The vector of a text is the sum of its pieces, scaled to length one."""

    table: npt.NDArray[np.int8]
    scale: F32  # of each row; it includes how telling a piece is
    keys: U64
    rows: I32

    @property
    def dims(self) -> int:
        return len(self.table[0])

    @staticmethod
    def load(path: Path = SHIPPED) -> Embedding:
        """Read once for the whole process. Only arrays are read, never code."""
        return _load(path)

    def embed(self, texts: Sequence[str]) -> F32:
        """A row of length one for each text; zeros for one without a known word."""
        return self.embed_coded(coded([plain(text) for text in texts]))

    def embed_coded(self, texts: Coded) -> F32:
        """The same for texts that are ASCII and in the form for kernels."""
        return normalised(self.sums(texts))

    def sums_of_addresses(self, urls: Sequence[str], form: Coded, queues: Sequence[str], queue: I64) -> F32:
        """The sums of the words of canonical URLs (`words_of`), in a small part of the time.

        `form` holds the URLs in the form for kernels; `queue` is the number of each URL's politeness queue in `queues`.
        """
        names = self.sums(coded([plain(name_of(name)) for name in queues]))
        found, odd = np.empty((len(urls), self.dims), np.float32), np.empty(len(urls), np.uint8)
        url_words.add_up(
            form.letters, form.ends, queue, names, SILENT_CODES, np.empty(len(form.letters), np.uint8), self.keys,
            self.rows, self.table, self.scale, found, odd,
        )  # fmt: skip
        rest = np.flatnonzero(odd)
        if len(rest):
            found[rest] = self.sums(coded([plain(words_of(urls[number])) for number in rest.tolist()]))
        return found

    def sums(self, texts: Coded) -> F32:
        """The sum of the rows of each text's pieces, which `embed_coded` scales to length one."""
        found = np.empty((len(texts.ends), self.dims), np.float32)
        word_pieces.add_up(texts.letters, texts.ends, self.keys, self.rows, self.table, self.scale, found)
        return found


def hash_word(word: str) -> int:
    """The hash of a word, as kernels compute it."""
    code = int(word_pieces.START)
    for byte in word.encode("ascii"):
        code = (code ^ byte) * int(word_pieces.STEP) % 2**64
    return code


SILENT_CODES = np.array([hash_word(word) for word in sorted(SILENT)], np.uint64)


def normalised(rows: F32) -> F32:
    word_pieces.normalise(rows)
    return rows


def indexed(vocabulary: Sequence[str], table: npt.NDArray[np.int8], scale: F32) -> Embedding:
    """An embedding of these pieces; row by row."""
    keys, rows = np.zeros(ROOM, np.uint64), np.full(ROOM, -1, np.int32)
    lines = "".join(f"{piece}\n" for piece in vocabulary)
    word_pieces.index(np.frombuffer(lines.encode("ascii"), np.uint8), keys, rows)
    return Embedding(table, scale, keys, rows)


def save(path: Path, vocabulary: Sequence[str], table: npt.NDArray[np.int8], scale: F32) -> None:
    """Not compressed: rows of random-looking bytes would hardly shrink, and load five times as slowly."""
    np.savez(path, table=table, scale=scale, vocabulary=np.frombuffer("\n".join(vocabulary).encode("ascii"), np.uint8))


@cache
def _load(path: Path) -> Embedding:
    try:
        with np.load(BytesIO(path.read_bytes()), allow_pickle=False) as stored:
            table, scale, letters = stored["table"], stored["scale"], stored["vocabulary"]
        vocabulary = letters.tobytes().decode("ascii").split("\n")
    except (OSError, EOFError, ValueError, KeyError, BadZipFile) as problem:
        raise ConfigError(f"{path}: expected a table of word pieces, got something else: {problem}") from None
    if table.dtype != np.int8 or scale.dtype != np.float32 or not len(vocabulary) == len(table) == len(scale):
        raise ConfigError(
            f"{path}: expected a row of bytes for each of {len(vocabulary)} pieces, got {table.dtype}{table.shape}"
        )
    return indexed(vocabulary, table, scale)


def plain(text: str) -> str:
    """A text in ASCII: letters without accents, a question mark for what has no such form and so ends a word.

    Letters of which each stands for up to eighteen without such a form are left out before they are spelled out.
    """
    if text.isascii():
        return text
    spelled = unicodedata.normalize("NFKD", LONG_FORMS.sub("?", text))
    return MARKS.sub("", spelled).encode("ascii", "replace").decode("ascii")
