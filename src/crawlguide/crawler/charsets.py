"""Bytes of a page to text, as the HTML standard says: byte order mark, server, the page itself, then a guess."""

from __future__ import annotations

import re

import webencodings
from charset_normalizer import from_bytes

PRESCAN_BYTES = 1_024
SAMPLE_BYTES, ENOUGH_TO_GUESS = 4_096, 24  # bytes beyond ASCII from which a guess is better than the usual
BYTE_ORDER_MARKS = ((b"\xef\xbb\xbf", "utf-8"), (b"\xfe\xff", "utf-16-be"), (b"\xff\xfe", "utf-16-le"))
GUESSED = (
    "cp1252",
    "cp1251",
    "koi8_r",
    "cp1253",
    "cp1255",
    "cp1256",
    "shift_jis",
    "euc_jp",
    "gb18030",
    "big5",
    "euc_kr",
)
_COMMENT = re.compile(rb"<!--.*?(?:-->|\Z)", re.DOTALL)
_META = re.compile(
    rb"<(?:meta\b[^>]*?\bcharset\s*=|\?xml\b[^>]*?\bencoding\s*=)\s*[\"']?\s*([\w.:-]{1,40})", re.IGNORECASE
)
_BEYOND_ASCII = re.compile(rb"[\x80-\xff]")
_CODE_PAGE = re.compile(r"(?:cp|ibm)-?(\d{3,4})")
MARKUP = bytes(range(0x20, 0x7F))
WITH_OTHERS = ("utf-16-le", "utf-16-be", "iso2022_jp", "cp1361")  # bytes of ASCII are parts of other letters, too


def decoded(body: bytes, charset: str = "") -> str:
    """The text; `charset` is what the server says. Never raises: what cannot be read is replaced."""
    for mark, unicode in BYTE_ORDER_MARKS:
        if body.startswith(mark):
            return body[len(mark) :].decode(unicode, "replace")
    codec = _codec(charset) or _declared(body)
    if codec is not None:
        return _text(body, codec)
    try:
        return body.decode()
    except UnicodeDecodeError:
        return _text(body, _guessed(body))


def shows_markup(body: bytes, charset: str = "") -> bool:
    """Whether "<", ">" and quotes can be counted in the bytes: each is itself, and nothing else looks like them."""
    if body.startswith(tuple(mark for mark, _ in BYTE_ORDER_MARKS)):
        return body.startswith(BYTE_ORDER_MARKS[0][0])
    codec = _codec(charset) or _declared(body) or "utf-8"
    return codec not in WITH_OTHERS and _text(MARKUP, codec) == MARKUP.decode()  # not so in EBCDIC


def _declared(body: bytes) -> str | None:
    """By a <meta> or an XML declaration at the beginning. Whoever could read that knows that it is not UTF-16."""
    found = _META.search(_COMMENT.sub(b"", body[:PRESCAN_BYTES]))
    codec = _codec(found[1].decode("ascii", "replace")) if found else None
    return "utf-8" if codec is not None and codec.startswith("utf-16") else codec


def _codec(label: str) -> str | None:
    """Python's name for a label of the web; None for one that the web does not know."""
    known = webencodings.lookup(label)
    if known is not None:
        return str(known.codec_info.name)
    page = _CODE_PAGE.fullmatch(label.strip().lower())
    return f"cp{page[1]}" if page else None


def _text(body: bytes, codec: str) -> str:
    try:
        return body.decode(codec, "replace")
    except LookupError:  # a code page that Python has not, or a codec of webencodings' own
        return body.decode("cp1252", "replace")


def _guessed(body: bytes) -> str:
    """For pages that do not say, by what stands after the first byte that tells."""
    first = _BEYOND_ASCII.search(body)
    sample = body[first.start() if first else 0 :][:SAMPLE_BYTES]
    beyond = len(_BEYOND_ASCII.findall(sample))
    if sample.decode("utf-8", "replace").count("\ufffd") * 20 < beyond:  # a few broken letters, or cut off
        return "utf-8"
    if beyond < ENOUGH_TO_GUESS:
        return "cp1252"
    best = from_bytes(sample, cp_isolation=list(GUESSED), steps=4, chunk_size=512).best()
    return best.encoding if best is not None else "cp1252"
