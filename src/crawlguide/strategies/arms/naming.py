"""Many links read at once, as bytes with a line each: words of the goal, folders, queries."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
import xxhash

from crawlguide.core.kernels import f64s, fixed_bytes, i64s, kernel, nothing, part, u8s
from crawlguide.core.url_bytes import LINE_END, find_byte, lower
from crawlguide.features.relevance.words import topic_words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crawlguide.core.definition import Goal
    from crawlguide.core.tables import F64, U8

SLASH, QUESTION, MOST_FOLDERS = 47, 63, 250
BEFORE_PATH = 3  # slashes


class Scan:
    """The words of a goal, looked for in addresses and anchors, also as parts of longer words."""

    def __init__(self, goal: Goal) -> None:
        words = [word.encode() for word in topic_words(goal)]
        self._words = np.frombuffer(b"".join(words) or b" ", np.uint8)
        self._ends = np.cumsum([len(word) for word in words], dtype=np.int64)

    def share(self, urls: Sequence[str], anchors: Sequence[str]) -> F64:
        """Which share of the words each link has."""
        return self.read(urls, anchors)[0]

    def read(self, urls: Sequence[str], anchors: Sequence[str]) -> tuple[F64, U8, U8]:
        """Of each link: which share of the words it has, how many folders, and whether its URL has a query."""
        share, folders, query = np.empty(len(urls)), np.empty(len(urls), np.uint8), np.empty(len(urls), np.uint8)
        scan(lines(urls), lines(anchors), self._words, self._ends, share, folders, query)
        return share, folders, query


def lines(texts: Sequence[str]) -> U8:
    """All texts, each on a line of its own."""
    whole = "\n".join(texts)
    if whole.count("\n") >= len(texts):
        whole = "\n".join(text.replace("\n", " ") for text in texts)
    return np.frombuffer(f"{whole}\n".encode(errors="replace"), np.uint8)


@part
def holds(text, start, end, words, first, last):  # type: ignore[no-untyped-def]
    """Whether a word stands anywhere in a piece of text, in whatever letters."""
    for place in range(start, end - (last - first) + 1):
        at = 0
        while first + at < last and lower(text[place + at]) == words[first + at]:
            at += 1
        if first + at == last:
            return True
    return False


@kernel(nothing(fixed_bytes, fixed_bytes, fixed_bytes, i64s, f64s, u8s, u8s))
def scan(urls, anchors, words, ends, share, folders, query):  # type: ignore[no-untyped-def]
    here, there = 0, 0
    for number in range(len(share)):
        until, beyond = find_byte(urls, here, len(urls), LINE_END), find_byte(anchors, there, len(anchors), LINE_END)
        found, first = 0, 0
        for last in ends:
            found += holds(urls, here, until, words, first, last) or holds(anchors, there, beyond, words, first, last)
            first = last
        share[number] = found / len(ends) if len(ends) > 0 else 0.0
        slashes, asked = 0, False
        for place in range(here, until):
            slashes += urls[place] == SLASH and not asked
            asked = asked or urls[place] == QUESTION
        folders[number], query[number] = min(slashes - BEFORE_PATH, MOST_FOLDERS), asked
        here, there = until + 1, beyond + 1


# How the arm of a link is called.

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from crawlguide.core.tables import U64

    # the names of the arms of links, by their URLs, their hosts, and the hosts of the pages they stand on
    Naming = Callable[[Sequence[str], Sequence[str], Sequence[str]], list[str]]

NUMBER = re.compile(r"\d+")
IDENTIFIER = re.compile(r"\d+|[0-9a-f]{8,}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[\w-]{16,}", re.IGNORECASE)


def by_host(urls: Sequence[str], hosts: Sequence[str], homes: Sequence[str]) -> list[str]:
    return list(hosts)


def by_group(urls: Sequence[str], hosts: Sequence[str], homes: Sequence[str]) -> list[str]:
    """feedstock's link groups: `same:` or `cross:`, and the first segment of the path."""
    return [
        ("same:" if host == home else "cross:") + (url.split("/", 4)[3].partition("?")[0] or "_root")
        for url, host, home in zip(urls, hosts, homes, strict=True)
    ]


def by_place(urls: Sequence[str], hosts: Sequence[str], homes: Sequence[str]) -> list[str]:
    """Host, and the first segment of the path if it is a folder."""
    names = []
    for url, host in zip(urls, hosts, strict=True):
        pieces = url.split("/", 4)
        names.append(f"{host}/{pieces[3]}" if len(pieces) > 4 and "?" not in pieces[3] else host)
    return names


def by_template(urls: Sequence[str], hosts: Sequence[str], homes: Sequence[str]) -> list[str]:
    """feedstock's arms: host, path with `{id}` for segments that look like one, and the sorted names of the query."""
    names = []
    for url, host in zip(urls, hosts, strict=True):
        address, _, query = url.partition("?")
        path = "/".join("{id}" if IDENTIFIER.fullmatch(one) else one for one in address.split("/")[3:])
        names.append(f"{host}/{path}?{_keys(query)}")
    return names


def by_folder(urls: Sequence[str], hosts: Sequence[str], homes: Sequence[str]) -> list[str]:
    """Host, first two folders, kind of file, names of the query; numbers are all alike."""
    names = []
    for url, host in zip(urls, hosts, strict=True):
        address, _, query = url.partition("?")
        *folders, file = address.split("/")[3:]
        kind = file.rpartition(".")[2] if "." in file else ""
        names.append(host + NUMBER.sub("#", f"/{'/'.join(folders[:2])}/.{kind}?{_keys(query)}"))
    return names


def _keys(query: str) -> str:
    return "&".join(sorted(pair.partition("=")[0] for pair in query.split("&"))) if query else ""


def hashed(names: Sequence[str]) -> U64:
    digest = xxhash.xxh3_64_intdigest
    return np.array([digest(name.encode()) for name in names], np.uint64)
