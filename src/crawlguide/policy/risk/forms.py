"""URLs as the model sees them: one text for all of them, and where the parts of each lie in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from crawlguide.core import urls as addresses

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crawlguide.core.tables import I64, U8

MOST_LETTERS = 400  # of one URL


def formed(urls: Sequence[str]) -> tuple[U8, I64]:
    """Bytes, and a row of seams for each canonical URL: start, registrable domain, end of host, of path, of all;
    whether the host is an address and whether it has a port of its own.
    """
    texts: list[bytes] = []
    seams: list[tuple[int, ...]] = []
    at = 0
    for url in urls:
        text, seam = _form(url)
        texts.append(text)
        seams.append(tuple(at + place for place in seam[:5]) + seam[5:])
        at += len(text)
    return np.frombuffer(b"".join(texts), np.uint8), np.array(seams, np.int64).reshape(len(urls), 7)


def _form(url: str) -> tuple[bytes, tuple[int, ...]]:
    queue = addresses.queue(url)
    rest = url[url.index("/", 8) : MOST_LETTERS].lower()
    host, domain = addresses.host_of(queue), addresses.domain_of(queue)
    is_address = host.startswith("[") or host.replace(".", "").isdigit()
    host = host.removeprefix("www.") if len(host) > len(domain) else host
    path = rest.partition("?")[0].rstrip("/")
    rest = path + rest[len(rest.partition("?")[0]) :]
    text = (host + (rest or "/")).encode("ascii", "replace")
    ends = len(host), len(host) + len(path), len(text)
    return text, (0, max(len(host) - len(domain), 0), *ends, int(is_address), int(queue != addresses.host_of(queue)))
