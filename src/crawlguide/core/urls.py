"""The canonical form of URLs (WHATWG, through ada), and what is derived from it.

The canonical form is the only one that is stored, compared, matched and sent out. Its parts are cut out by position:
`scheme://authority/path?query` as ada writes it always has one shape, so nothing parses it again.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import unquote

import ada_url
import xxhash
from publicsuffixlist import PublicSuffixList

from crawlguide.core.errors import UrlError

MAX_LENGTH = 8_192
MAX_HOST_LENGTH = 255  # of a name in DNS, however one counts; thousands of labels would only make work

# WHATWG strips blanks at the ends, and removes tabs and line ends anywhere. Any other control character, or half of a
# surrogate pair, could only be there to confuse a log or another parser.
_REMOVED = re.compile(r"[\t\n\r]")
_SUSPECT = re.compile(r"[\x00-\x1f\ud800-\udfff]")
_ENDS = "".join(map(chr, range(0x21)))
_SUFFIXES = PublicSuffixList()
_BELOW = (1 << 56) - 1

# A path that is canonical already: no segment begins with a dot, nothing is to be escaped. A host that is: lower-case
# labels, the last of letters alone (so no number, no address), none of which is punycode.
_PATH = r"(?:/(?!\.)[A-Za-z0-9_.~!$&()*+,;=:@-]*)+(?:\?[A-Za-z0-9_.~!$&()*+,;=:@/?%-]*)?"
_PLAIN_PATH = re.compile(r"(?!//)" + _PATH)
_PLAIN = re.compile(r"https?://((?:(?!xn--)[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.)+(?!xn--)[a-z]{2,})" + _PATH)
_SHAPE = re.compile(r'https?://[!"$-.0->@\[\]-~]+/[!-~]*')  # of almost all that are canonical, and of few others
_BARE = re.compile(r"[\w-]+(\.[\w-]+)+([/?]|$)")  # an address as people type it, without https://
_AUTHORITY = re.compile(r"(?:https?:[/\\]*|[/\\]{2,})([^/\\?#]*)", re.IGNORECASE)  # as WHATWG finds it


class Parts(NamedTuple):
    """The parts of a canonical URL."""

    scheme: str
    host: str
    port: str
    path: str
    query: str


def canonical(url: str, base: str | None = None) -> str:
    """The canonical form of `url`, fragment dropped; relative to `base` if given. Raises `UrlError` with the reason."""
    _check(url)
    try:
        href: str = ada_url.join_url(base, url) if base is not None else ada_url.normalize_url(url)
    except ValueError:
        hint = f"; did you mean {_shown('https://' + url)}?" if base is None and _BARE.match(url) else ""
        raise UrlError(f"not a URL: {_shown(url)}{hint}") from None
    href = href.partition("#")[0]
    if not href.startswith(("https://", "http://")):
        raise UrlError(f"scheme: expected http or https, got {_shown(href.partition(':')[0])}")
    if len(href) > MAX_LENGTH:
        raise UrlError(f"length: expected at most {MAX_LENGTH} characters, got {len(href)}")
    if href.find("/", 8) > MAX_HOST_LENGTH:
        _check_host(href)
    return href


def shaped(url: str) -> str:
    """A URL in the shape of canonical ones. Clients of URLFrontier spell theirs as they like: "" for no address at all.

    >>> shaped("HTTP://a.example"), shaped("mailto:a@b")
    ('http://a.example/', '')
    """
    if _SHAPE.fullmatch(url):
        return url
    try:
        return canonical(url)
    except UrlError:
        return ""


def resolved(url: str, base: str, base_queue: str) -> tuple[str, str]:
    """The canonical form of a link on the page `base`, and its politeness queue.

    Most links on the web are canonical already, or a plain path on the same host; those are recognised without a
    parser. A test holds that ada gives the same result for all of them.
    """
    if _PLAIN_PATH.fullmatch(url) and len(url) < MAX_LENGTH // 2:
        return base[: base.index("/", 8)] + url, base_queue
    plain = _PLAIN.fullmatch(url)
    if plain and len(url) < MAX_LENGTH and len(plain[1]) <= MAX_HOST_LENGTH:
        return url, plain[1]
    found = canonical(url, base)
    return found, queue(found)


def identity(url: str, its_queue: str | None = None) -> int:
    """The 64-bit id of a canonical URL: its domain's partition in the top byte, xxh3-64 of the URL below.

    So an id alone says where its row is in a store that is spread over many machines. A caller that knows the queue of
    the URL may pass it.
    """
    return partition(its_queue or queue(url)) << 56 | xxhash.xxh3_64_intdigest(url.encode()) & _BELOW


@lru_cache(maxsize=65_536)
def partition(queue: str) -> int:
    """From 0 to 255, the same for all hosts of a registrable domain: the first two digits of its `domain_hash`."""
    return int(domain_hash(domain_of(queue))[:2], 16)


def parts(url: str) -> Parts:
    """Split a canonical URL into its parts."""
    scheme, _, rest = url.partition("://")
    authority, slash, tail = rest.partition("/")
    path, _, query = (slash + tail).partition("?")
    host, port = _host_and_port(authority.rpartition("@")[2])
    return Parts(scheme, host, port, path, query)


def without_userinfo(url: str) -> str:
    """A canonical URL without name and password: what a stranger's page says of them is for nobody."""
    scheme, _, rest = url.partition("://")
    authority, slash, tail = rest.partition("/")
    return f"{scheme}://{authority.rpartition('@')[2]}{slash}{tail}" if "@" in authority else url


def queue(url: str) -> str:
    """The politeness queue of a canonical URL: its host, with the port where that is not the default one."""
    start = url.index("://") + 3
    end = url.index("/", start)
    found = url[start:end].rpartition("@")[2]
    return found.replace(".:", ":").rstrip(".") or found  # example.org. is the same machine as example.org


def host_of(queue: str) -> str:
    """The host of a politeness queue."""
    return _host_and_port(queue)[0]


def link_group(url: str, from_queue: str) -> str:
    """feedstock's group of a link: "same" or "cross" host, and the first segment of its path."""
    nearness = "same" if queue(url) == from_queue else "cross"
    return f"{nearness}:{parts(url).path.split('/')[1] or '_root'}"


@lru_cache(maxsize=65_536)
def registrable_domain(host: str | None) -> str | None:
    """The domain somebody registered: "a.b.example.co.uk" -> "example.co.uk"; None for a bare suffix."""
    if not host or host.startswith("."):
        return None
    found: str | None = _SUFFIXES.privatesuffix(host.lower().rstrip("."))
    return found


@lru_cache(maxsize=65_536)
def domain_of(queue: str) -> str:
    """The registrable domain that a politeness queue belongs to; an address or a bare name is its own."""
    host = host_of(queue)
    if host.startswith("[") or host.replace(".", "").isdigit():
        return host
    return registrable_domain(host) or host


def domain_hash(domain: str) -> str:
    """How a crawler names its focus: hex xxh3-64 of the registrable domain."""
    return str(xxhash.xxh3_64_hexdigest(domain.encode()))


def _host_and_port(authority: str) -> tuple[str, str]:
    host, colon, port = authority.rpartition(":")
    if not colon or port.endswith("]"):  # no port, or the colon was inside an IPv6 address
        return authority, ""
    return host, port


def _check(url: str) -> None:
    if len(url) > 2 * MAX_LENGTH:
        raise UrlError(f"length: expected at most {MAX_LENGTH} characters, got {len(url)}")
    if _SUSPECT.search(url):
        _check_controls(url)
    if len(url) > MAX_HOST_LENGTH:
        _check_written_host(url)


def _check_written_host(url: str) -> None:
    """Before it is parsed: the time that it takes to normalise a name of combining marks grows with their square."""
    found = _AUTHORITY.match(_REMOVED.sub("", url.strip(_ENDS)))
    host = found[1].rpartition("@")[2] if found else ""
    if len(host) > MAX_HOST_LENGTH:
        _check_length(_host_and_port(unquote(host))[0])


def _check_host(href: str) -> None:
    """Of a canonical URL; a name and a password may stand before the host."""
    _check_length(parts(href).host)


def _check_length(host: str) -> None:
    size = len(host.rstrip("."))
    if size > MAX_HOST_LENGTH:
        raise UrlError(f"host: expected at most {MAX_HOST_LENGTH} characters, got {size}")


def _check_controls(url: str) -> None:
    """What is left after ada removed tabs, line ends and blanks at the ends, and without fragment, must be clean."""
    kept = _REMOVED.sub("", url.strip(_ENDS)).partition("#")[0]
    if found := _SUSPECT.search(kept):
        raise UrlError(f"control character {found.group()!r} in {_shown(url)}")


def _shown(text: str) -> str:
    return repr(text if len(text) <= 100 else text[:100] + "…")
