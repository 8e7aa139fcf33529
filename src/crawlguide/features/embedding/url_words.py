"""What a URL says in words."""

from __future__ import annotations

import re
from functools import lru_cache
from urllib.parse import unquote

import numpy as np

from crawlguide.core import urls
from crawlguide.core.kernels import f32s, fixed_bytes, i32s, i64s, kernel, matrix_f32, nothing, part, u8s, u64s
from crawlguide.core.url_bytes import is_digit
from crawlguide.features.embedding.word_pieces import LONGEST_PIECE, LONGEST_WORD, START, add_word, matrix_i8, mixed

WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[^\W\d_A-Z]+|\d+")
# How a page is made or served says nothing about what it is about.
SILENT = frozenset(
    ("www", "http", "https", "html", "htm", "xhtml", "shtml", "php", "asp", "aspx", "jsp", "cgi", "index", "default")
)
MOST_DIGITS_OF_A_WORD = 4  # longer numbers are codes


def words_of(url: str) -> str:
    """The words of a canonical URL, in small letters: the name its domain was registered by, its path and its query.

    >>> words_of("https://docs.example.org/en/HowTo/regular-expressions2.html?q=caf%C3%A9")
    'example en how to regular expressions 2 q café'
    """
    start = url.index("/", 8)
    tail = url[start:]
    words = WORD.findall(unquote(tail, errors="ignore") if "%" in tail else tail)
    said = [small for word in words if (small := word.lower()) not in SILENT and not _is_code(small)]
    return " ".join((name_of(urls.queue(url)), *said)).strip()


@lru_cache(maxsize=65_536)
def name_of(queue: str) -> str:
    """What a politeness queue is called: `example` of `docs.example.co.uk`; nothing of an address."""
    domain = urls.domain_of(queue)
    name = domain.partition(".")[0]
    return "" if domain.startswith("[") or name.isdigit() else " ".join(WORD.findall(name))


def _is_code(word: str) -> bool:
    return len(word) > MOST_DIGITS_OF_A_WORD and word.isdigit()


# The words of URLs become vectors without a string in between: what `words_of` says of ASCII, over bytes.
#
# A URL that is not ASCII once its escapes are read is marked instead, and left to `words_of`.

SLASH, PERCENT = 47, 37
BEHIND_SCHEME = 8  # no slash of `https://` stands behind this place
MOST_DIGITS = 4  # longer numbers are codes


@part
def small(byte):  # type: ignore[no-untyped-def]
    return 97 <= byte <= 122


@part
def capital(byte):  # type: ignore[no-untyped-def]
    return 65 <= byte <= 90


@part
def digit_value(byte):  # type: ignore[no-untyped-def]
    """Of a hexadecimal digit; -1: it is none."""
    if is_digit(byte):
        return byte - 48
    if 97 <= byte <= 102:
        return byte - 87
    return byte - 55 if 65 <= byte <= 70 else -1


@part
def read_escapes(text, start, end, plain):  # type: ignore[no-untyped-def]
    """Copies a piece of text with its escapes read; returns its length, -1: not all of it is ASCII."""
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
    while at < end and capital(text[at]):
        at += 1
    if at - start > 1:
        return at - 1 if at < end and small(text[at]) else at
    while at < end and small(text[at]):
        at += 1
    return at


@part
def says_something(text, start, end, silent):  # type: ignore[no-untyped-def]
    """No code, nor one of the words that say how a page is made or served."""
    if is_digit(text[start]):
        return end - start <= MOST_DIGITS
    code = START
    for at in range(start, end):
        code = mixed(code, text[at] + 32 if capital(text[at]) else text[at])
    for known in silent:
        if known == code:
            return False
    return end - start <= LONGEST_WORD


@kernel(nothing(fixed_bytes, i64s, i64s, matrix_f32, u64s, u8s, u64s, i32s, matrix_i8, f32s, matrix_f32, u8s))
def add_up(urls, ends, name, names, silent, plain, keys, rows, table, scale, out, odd):  # type: ignore[no-untyped-def]
    """One row of `out` for each URL: that of the name of its domain in `names`, and the words behind its host.

    `plain` has room for the longest URL; `odd` gets a 1 where `words_of` has to say what it says.
    """
    codes, begin = np.empty(LONGEST_PIECE, np.uint64), 0
    for number in range(len(ends)):
        at = begin + BEHIND_SCHEME
        while urls[at] != SLASH:
            at += 1
        size = read_escapes(urls, at, ends[number], plain)
        odd[number], begin = size < 0, ends[number]
        out[number, :] = names[name[number]]
        at = 0
        while at < size:
            stop = word_end(plain, at, size)
            if stop > at and says_something(plain, at, stop, silent):
                add_word(plain, at, stop, keys, rows, codes, table, scale, out[number])
            at = max(stop, at + 1)
