"""URLs as the model sees them: one text for all of them, and where the parts of each lie in it."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from crawlguide.core import urls as addresses
from crawlguide.core.kernels import fixed_bytes, i64s, kernel, matrix_i64, nothing, part, u8s
from crawlguide.core.url_bytes import LINE_END, find_byte

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crawlguide.core.tables import I64, U8

MOST_LETTERS = 400  # of one URL
SEAMS = 7


def formed(urls: Sequence[str]) -> tuple[U8, I64]:
    """Bytes, and a row of seams for each canonical URL: start, registrable domain, end of host, of path, of all;
    whether the host is an address and whether it has a port of its own.
    """
    sizes = [_domain_size(url[url.index("//") + 2 : url.index("/", 8)]) for url in urls]
    text = np.frombuffer("\n".join(urls).encode("ascii", "replace"), np.uint8)
    out, seams = np.empty(len(text) + len(urls), np.uint8), np.empty((len(urls), SEAMS), np.int64)
    form(text, np.array(sizes, np.int64), out, seams)
    return out, seams


@lru_cache(maxsize=65_536)
def _domain_size(authority: str) -> int:
    """Letters of the registrable domain."""
    return len(addresses.domain_of(addresses.queue(f"http://{authority}/")))


@part
def host_in(text, start, end):  # type: ignore[no-untyped-def]
    """Where the host begins and ends within scheme://authority, and whether a port follows it."""
    first = find_byte(text, start, end, 47) + 2
    for place in range(first, end):
        if text[place] == 64:  # @
            first = place + 1
    last = end
    while last > first and 48 <= text[last - 1] <= 57:
        last -= 1
    if last > first and text[last - 1] == 58:  # :
        last -= 1
        return first, (last - 1 if last > first and text[last - 1] == 46 else last), True
    last = end
    while last > first and text[last - 1] == 46:  # example.org. is example.org
        last -= 1
    return first, (last if last > first else end), False


@part
def is_address(text, start, end):  # type: ignore[no-untyped-def]
    digits, others = 0, 0
    for place in range(start, end):
        digits += 48 <= text[place] <= 57
        others += text[place] != 46
    return end > start and (text[start] == 91 or (digits > 0 and digits == others))  # [


@part
def copy(text, start, end, out, at):  # type: ignore[no-untyped-def]
    """In small letters; returns where it ends."""
    for place in range(start, end):
        byte = text[place]
        out[at] = byte + 32 if 65 <= byte <= 90 else byte
        at += 1
    return at


@part
def starts_www(text, start, end):  # type: ignore[no-untyped-def]
    same = end - start > 3 and text[start + 3] == 46
    for place in range(start, start + 3 if same else start):
        same = same and text[place] == 119
    return same


@kernel(nothing(fixed_bytes, i64s, u8s, matrix_i64))
def form(text, domains, out, seams):  # type: ignore[no-untyped-def]
    """host/path?query of each line: without www., port and the slashes at the end of the path."""
    start, at = 0, 0
    for row in range(len(domains)):
        end = find_byte(text, start, len(text), LINE_END)
        path = find_byte(text, min(start + 8, end), end, 47)
        host, host_end, port = host_in(text, start, path)
        address = is_address(text, host, host_end)
        if host_end - host > domains[row] and starts_www(text, host, host_end):
            host += 4
        stop = max(min(end, start + MOST_LETTERS), path)
        mark = find_byte(text, path, stop, 63)
        path_end = mark
        while path_end > path and text[path_end - 1] == 47:
            path_end -= 1
        first, at = at, copy(text, host, host_end, out, at)
        seams[row, 0], seams[row, 1], seams[row, 2] = first, max(at - domains[row], first), at
        at = copy(text, path, path_end, out, at)
        seams[row, 3] = at
        at = copy(text, mark, stop, out, at)
        if at == seams[row, 2]:
            out[at] = 47
            at += 1
        seams[row, 4], seams[row, 5], seams[row, 6] = at, address, port
        start = end + 1
