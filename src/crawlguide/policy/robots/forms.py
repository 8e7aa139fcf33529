"""The form in which patterns and URLs are compared.

"%7E" and "~" are the same, and so are "%3c" and "<" (RFC 9309, 2.2.2). About the rest two readings are in use. By the
letter, as Google compares: an escaped letter or digit stays one, and a URL that is not escaped is taken as it is. And
by their meaning, as the RFC says. A canonical URL differs between the two only where somebody escaped a plain letter.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_SEAM = re.compile(r"[/?;]")
_ESCAPE = re.compile(rb"%[0-9a-fA-F]{2}")
_FOREIGN = re.compile(rb"[\x80-\xff]")
_ODD = re.compile(rb"[\x00-\x09\x0b-\x20\x7f\"<>\\^`{|}]")
_STARS, _DOLLARS = re.compile(rb"[*$]"), re.compile(rb"\$(?!\Z)")
_SIGNS = b"-._~"
_PLAIN = _SIGNS + b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"


def path(url: str) -> str:
    """What rules are matched against: the path with its query. Of any URL, in whatever shape."""
    seam = _seam(url)
    found = url[seam:].partition("#")[0].replace("\n", "%0A") if seam >= 0 else ""
    return found if found.startswith("/") else "/" + found


def path_of_canonical(url: str) -> str:
    """The same of a canonical URL, in a fraction of the time."""
    return url[url.index("/", 8) :]


def targets(paths: Sequence[str]) -> bytes:
    """Paths by the letter, a line for each: what happens to one happens to all at once, which costs a tenth."""
    return _by_letter("\n".join(paths).encode("utf-8", "replace"))


def pattern(text: str) -> bytes:
    """A pattern by the letter: what is not ASCII is escaped."""
    return _by_letter(_FOREIGN.sub(_escaped, text.encode("utf-8", "replace")))


def meant_targets(text: bytes) -> bytes:
    """By their meaning, paths that are known by the letter. What means more in a pattern is escaped here."""
    if not text.isascii():
        text = _FOREIGN.sub(_escaped, text)
    if b"*" in text or b"$" in text:
        text = _STARS.sub(_escaped, text)
    return _unescaped(text, _PLAIN)


def meant_pattern(text: bytes) -> bytes:
    """The same for a pattern; its stars and a last "$" keep their meaning."""
    return _unescaped(_DOLLARS.sub(_escaped, text), _PLAIN)


def _by_letter(text: bytes) -> bytes:
    return _unescaped(_ODD.sub(_escaped, text), _SIGNS)


def _seam(url: str) -> int:
    """Where the path, or what stands for it, begins; -1: nowhere."""
    begin = 2 if url.startswith("//") else 0
    seam, colon = _SEAM.search(url, begin), url.find("://", begin)
    if seam and 0 <= colon < seam.start():  # its first slash is one of "://"
        seam = _SEAM.search(url, colon + 3)
    fragment = url.find("#")
    if seam is None or 0 <= fragment < seam.start():
        return -1
    return seam.start()


def _unescaped(text: bytes, plain: bytes) -> bytes:
    """Escapes in capitals, and none for what is plain."""
    if b"%" not in text:
        return text

    def letter(found: re.Match[bytes]) -> bytes:
        code = int(found.group()[1:], 16)
        return bytes([code]) if code in plain else found.group().upper()

    return _ESCAPE.sub(letter, text)


def _escaped(found: re.Match[bytes]) -> bytes:
    return b"%%%02X" % found.group()[0]
