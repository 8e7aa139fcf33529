"""How links are grouped into arms: the name of the arm of each link, by URL, host, and the host of its page."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
import xxhash

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from crawlguide.core.tables import U64

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
        names.append(f"{host}/{path}?{_query_names(query)}")
    return names


def by_folder(urls: Sequence[str], hosts: Sequence[str], homes: Sequence[str]) -> list[str]:
    """Host, first two folders, file extension, names of the query; numbers are all alike."""
    names = []
    for url, host in zip(urls, hosts, strict=True):
        address, _, query = url.partition("?")
        *folders, file = address.split("/")[3:]
        extension = file.rpartition(".")[2] if "." in file else ""
        names.append(host + NUMBER.sub("#", f"/{'/'.join(folders[:2])}/.{extension}?{_query_names(query)}"))
    return names


def _query_names(query: str) -> str:
    return "&".join(sorted(pair.partition("=")[0] for pair in query.split("&"))) if query else ""


def hashed(names: Sequence[str]) -> U64:
    digest = xxhash.xxh3_64_intdigest
    return np.array([digest(name.encode()) for name in names], np.uint64)
