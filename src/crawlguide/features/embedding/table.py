"""The table of word pieces that comes with the package, and what it makes of texts (docs/embedding.md)."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import cache
from io import BytesIO
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING
from zipfile import BadZipFile

import numpy as np
import numpy.typing as npt

from crawlguide.core.errors import ConfigError
from crawlguide.features.embedding import kernels

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crawlguide.core.tables import I32, U64

SHIPPED = Path(__file__).with_name("table.npz")
ROOM = 1 << 16  # places in the index: about two for each piece
MARKS = re.compile(r"[\u0300-\u036f]+")  # accents, once they stand apart from their letters
F32 = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Embedding:
    """A vector for each word piece. A text is the sum of its pieces, one long."""

    table: npt.NDArray[np.int8]
    scale: F32  # of each row; how much a piece says is in it
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
        plain = [text if text.isascii() else _plain(text) for text in texts]
        out = np.empty((len(plain), self.dims), np.float32)
        ends = np.fromiter(accumulate(map(len, plain)), np.int64, len(plain))
        letters = np.frombuffer("".join(plain).encode("ascii"), np.uint8)
        kernels.embed(letters, ends, self.keys, self.rows, self.table, self.scale, out)
        return out


def indexed(vocabulary: Sequence[str], table: npt.NDArray[np.int8], scale: F32) -> Embedding:
    """An embedding of these pieces; row by row."""
    keys, rows = np.zeros(ROOM, np.uint64), np.full(ROOM, -1, np.int32)
    lines = "".join(f"{piece}\n" for piece in vocabulary)
    kernels.index(np.frombuffer(lines.encode("ascii"), np.uint8), keys, rows)
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


def _plain(text: str) -> str:
    """ASCII: letters without their accents, a question mark for what has no such form and so ends a word."""
    return MARKS.sub("", unicodedata.normalize("NFKD", text)).encode("ascii", "replace").decode("ascii")
