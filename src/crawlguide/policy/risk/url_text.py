"""URLs as the model reads them: `host/path?query` in lower case, one text for all, and where the parts of each are."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from crawlguide.core import urls as addresses
from crawlguide.core.kernels import fixed_bytes, i64s, kernel, matrix_i64, nothing, part, u8s
from crawlguide.core.url_bytes import LINE_END, find_byte, host_start, is_digit, lower

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crawlguide.core.tables import I64, U8

MOST_BYTES = 400  # of one URL that are read
BOUNDS = 7
NOWHERE = "http://-/"  # stands for what is no address


def url_texts(urls: Sequence[str]) -> tuple[U8, I64]:
    """Bytes, and a row of bounds for each canonical URL: where it starts, its registrable domain starts, its host, its
    path and all of it end; whether the host is an IP address and whether it has a port.
    """
    urls = [addresses.shaped(url) or NOWHERE for url in urls]
    sizes = [_domain_size(url[url.index("//") + 2 : url.index("/", 8)].rpartition("@")[2]) for url in urls]
    text = np.frombuffer("\n".join(urls).encode("ascii", "replace"), np.uint8)
    out, bounds = np.empty(len(text) + len(urls), np.uint8), np.empty((len(urls), BOUNDS), np.int64)
    write_texts(text, np.array(sizes, np.int64), out, bounds)
    return out, bounds


@lru_cache(maxsize=65_536)
def _domain_size(authority: str) -> int:
    """Length of the registrable domain. Names and passwords, which may be long, must not be remembered with it."""
    return len(addresses.domain_of(addresses.queue(f"http://{authority}/")))


@part
def host_bounds(text, start, end):  # type: ignore[no-untyped-def]
    """Where the host begins and ends within scheme://authority, and whether a port follows it."""
    first = host_start(text, start, end)
    last = end
    while last > first and is_digit(text[last - 1]):
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
        digits += is_digit(text[place])
        others += text[place] != 46
    return end > start and (text[start] == 91 or (digits > 0 and digits == others))  # [


@part
def copy_lower(text, start, end, out, at):  # type: ignore[no-untyped-def]
    """In lower case; returns where it ends."""
    for place in range(start, end):
        out[at] = lower(text[place])
        at += 1
    return at


@part
def starts_www(text, start, end):  # type: ignore[no-untyped-def]
    same = end - start > 3 and text[start + 3] == 46
    for place in range(start, start + 3 if same else start):
        same = same and text[place] == 119
    return same


@kernel(nothing(fixed_bytes, i64s, u8s, matrix_i64))
def write_texts(text, domains, out, bounds):  # type: ignore[no-untyped-def]
    """host/path?query of each line, without www., the port and slashes at the end of the path."""
    start, at = 0, 0
    for row in range(len(domains)):
        end = find_byte(text, start, len(text), LINE_END)
        path = find_byte(text, min(start + 8, end), end, 47)
        host, host_end, port = host_bounds(text, start, path)
        address = is_address(text, host, host_end)
        if host_end - host > domains[row] and starts_www(text, host, host_end):
            host += 4
        stop = max(min(end, start + MOST_BYTES), path)
        mark = find_byte(text, path, stop, 63)
        path_end = mark
        while path_end > path and text[path_end - 1] == 47:
            path_end -= 1
        first, at = at, copy_lower(text, host, host_end, out, at)
        bounds[row, 0], bounds[row, 1], bounds[row, 2] = first, max(at - domains[row], first), at
        at = copy_lower(text, path, path_end, out, at)
        bounds[row, 3] = at
        at = copy_lower(text, mark, stop, out, at)
        if at == bounds[row, 2]:
            out[at] = 47
            at += 1
        bounds[row, 4], bounds[row, 5], bounds[row, 6] = at, address, port
        start = end + 1
