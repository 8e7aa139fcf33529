"""The words of a URL: as a text (`words_of`), and as a sum of vectors, by a kernel that needs no strings.

The kernel does for ASCII what `words_of` does. A URL that is not ASCII once its escapes are decoded is marked instead,
and left to `words_of`.
"""

from __future__ import annotations

import re
from functools import lru_cache
from urllib.parse import unquote

import numpy as np

from crawlguide.core import urls
from crawlguide.core.kernels import f32s, fixed_bytes, i32s, i64s, kernel, matrix_f32, nothing, part, u8s, u64s
from crawlguide.core.url_bytes import is_digit
from crawlguide.features.embedding.word_pieces import LONGEST_PIECE, LONGEST_WORD, START, add_word, hash_byte, matrix_i8

WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[^\W\d_A-Z]+|\d+")
# Words that say how a page is made or served, and nothing about its subject.
SILENT = frozenset(
    ("www", "http", "https", "html", "htm", "xhtml", "shtml", "php", "asp", "aspx", "jsp", "cgi", "index", "default")
)
MOST_DIGITS = 4  # longer numbers are codes
SLASH, PERCENT = 47, 37
SCHEME = 8  # bytes: the slashes of `https://` are among them


def words_of(url: str) -> str:
    """The words of a canonical URL, in lower case: the name its domain was registered by, its path and its query.

    >>> words_of("https://docs.example.org/en/HowTo/regular-expressions2.html?q=caf%C3%A9")
    'example en how to regular expressions 2 q café'
    """
    start = url.index("/", 8)
    tail = url[start:]
    words = WORD.findall(unquote(tail, errors="ignore") if "%" in tail else tail)
    kept = [low for word in words if (low := word.lower()) not in SILENT and not _is_code(low)]
    return " ".join((name_of(urls.queue(url)), *kept)).strip()


@lru_cache(maxsize=65_536)
def name_of(queue: str) -> str:
    """The name in a politeness queue: `example` of `docs.example.co.uk`; nothing of an IP address."""
    domain = urls.domain_of(queue)
    name = domain.partition(".")[0]
    return "" if domain.startswith("[") or name.isdigit() else " ".join(WORD.findall(name))


def _is_code(word: str) -> bool:
    return len(word) > MOST_DIGITS and word.isdigit()


@part
def is_lower(byte):  # type: ignore[no-untyped-def]
    return 97 <= byte <= 122


@part
def is_upper(byte):  # type: ignore[no-untyped-def]
    return 65 <= byte <= 90


@part
def digit_value(byte):  # type: ignore[no-untyped-def]
    """The value of a hexadecimal digit; -1: it is none."""
    if is_digit(byte):
        return byte - 48
    if 97 <= byte <= 102:
        return byte - 87
    return byte - 55 if 65 <= byte <= 70 else -1


@part
def decode_escapes(text, start, end, plain):  # type: ignore[no-untyped-def]
    """Copies a piece of text with its escapes decoded; returns its length, -1: not all of it is ASCII."""
    size = 0
    while start < end:
        byte = np.int64(text[start])
        if byte == PERCENT and start + 2 < end:
            high, low = digit_value(np.int64(text[start + 1])), digit_value(np.int64(text[start + 2]))
            if high >= 0 and low >= 0:
                byte, start = 16 * high + low, start + 2
        if byte > 127:
            return -1
        plain[size] = byte
        size, start = size + 1, start + 1
    return size


@part
def word_end(text, start, end):  # type: ignore[no-untyped-def]
    """Where the word that begins here ends; `start`: none does. Of `HTTPServer` the S belongs to what follows."""
    at = start
    while at < end and is_digit(text[at]):
        at += 1
    if at > start:
        return at
    while at < end and is_upper(text[at]):
        at += 1
    if at - start > 1:
        return at - 1 if at < end and is_lower(text[at]) else at
    while at < end and is_lower(text[at]):
        at += 1
    return at


@part
def is_telling(text, start, end, silent):  # type: ignore[no-untyped-def]
    """Whether a word is neither a code nor one of the silent words."""
    if is_digit(text[start]):
        return end - start <= MOST_DIGITS
    code = START
    for at in range(start, end):
        code = hash_byte(code, text[at] + 32 if is_upper(text[at]) else text[at])
    for known in silent:
        if known == code:
            return False
    return end - start <= LONGEST_WORD


@kernel(nothing(fixed_bytes, i64s, i64s, matrix_f32, u64s, u8s, u64s, i32s, matrix_i8, f32s, matrix_f32, u8s))
def add_up(urls, ends, name, names, silent, plain, keys, rows, table, scale, out, odd):  # type: ignore[no-untyped-def]
    """One row of `out` for each URL: the vector of its domain's name in `names` plus those of the words after its host.

    `plain` has room for the longest URL; `odd` gets a 1 where the URL is left to `words_of`.
    """
    codes, begin = np.empty(LONGEST_PIECE, np.uint64), 0
    for number in range(len(ends)):
        at = begin + SCHEME
        while at < ends[number] and urls[at] != SLASH:  # every canonical URL has one; of another nothing else is read
            at += 1
        size = decode_escapes(urls, at, ends[number], plain)
        odd[number], begin = size < 0, ends[number]
        out[number, :] = names[name[number]]
        at = 0
        while at < size:
            stop = word_end(plain, at, size)
            if stop > at and is_telling(plain, at, stop, silent):
                add_word(plain, at, stop, keys, rows, codes, table, scale, out[number])
            at = max(stop, at + 1)
