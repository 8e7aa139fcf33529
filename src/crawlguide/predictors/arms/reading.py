"""How the arm of a link is called."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
import xxhash

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from crawlguide.core.tables import U64

    # the names of the arms of links, by their URLs, their hosts, and the hosts of the pages they stand on
    Naming = Callable[[Sequence[str], Sequence[str], Sequence[str]], list[str]]

NUMBER = re.compile(r"\d+")
IDENTIFIER = re.compile(r"\d+|[0-9a-f]{8,}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[\w-]{16,}", re.IGNORECASE)


def by_host(urls: Sequence[str], hosts: Sequence[str], homes: Sequence[str]) -> list[str]:  # noqa: ARG001 - see Naming
    return list(hosts)


def by_group(urls: Sequence[str], hosts: Sequence[str], homes: Sequence[str]) -> list[str]:
    """feedstock's link groups: `same:` or `cross:`, and the first segment of the path."""
    return [
        ("same:" if host == home else "cross:") + (url.split("/", 4)[3].partition("?")[0] or "_root")
        for url, host, home in zip(urls, hosts, homes, strict=True)
    ]


def by_place(urls: Sequence[str], hosts: Sequence[str], homes: Sequence[str]) -> list[str]:  # noqa: ARG001 - see Naming
    """Host, and the first segment of the path if it is a folder."""
    names = []
    for url, host in zip(urls, hosts, strict=True):
        pieces = url.split("/", 4)
        names.append(f"{host}/{pieces[3]}" if len(pieces) > 4 and "?" not in pieces[3] else host)
    return names


def by_template(urls: Sequence[str], hosts: Sequence[str], homes: Sequence[str]) -> list[str]:  # noqa: ARG001 - see Naming
    """feedstock's arms: host, path with `{id}` for segments that look like one, and the sorted names of the query."""
    names = []
    for url, host in zip(urls, hosts, strict=True):
        address, _, query = url.partition("?")
        path = "/".join("{id}" if IDENTIFIER.fullmatch(one) else one for one in address.split("/")[3:])
        names.append(f"{host}/{path}?{_keys(query)}")
    return names


def by_folder(urls: Sequence[str], hosts: Sequence[str], homes: Sequence[str]) -> list[str]:  # noqa: ARG001 - see Naming
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
