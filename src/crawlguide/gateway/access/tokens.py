"""JSON Web Tokens of somebody else's making: which key may sign with which algorithm is decided here, not by the token.

The keys come from one file: a JWKS, or public keys in PEM. A token names one by `kid`, which is looked up among them
and nowhere else. `aud`, `exp` and `iss` have to be there and right. What it may do stands in `scope` (words as
`crawlguide keys create --scope` takes them), whose it is in `tenant`.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jwt
import msgspec
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import load_pem_public_key

from crawlguide.core.clock import iso
from crawlguide.core.errors import ConfigError, Unauthenticated
from crawlguide.core.telemetry import ERROR, happened
from crawlguide.gateway.access.credential import Credential, checked_crawls, checked_tenant, grants_of
from crawlguide.gateway.watched_files import WatchedFiles
from crawlguide.guide.local import DEFAULT_TENANT

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from crawlguide.core.config import AccessOptions

ALGORITHMS = {"RSA": ("RS256", "PS256"), "EC": ("ES256",), "OKP": ("EdDSA",), "oct": ("HS256",)}  # by kind of key
SHORTEST_SECRET, SHORTEST_RSA_BITS = 32, 2_048
LEEWAY_S = 30.0  # by which clocks may differ
LATEST = 253_402_300_799  # the end of the year 9999
LONGEST = 8_192  # characters of a token
OPTIONS: Any = {
    "require": ["exp", "aud", "iss"],
    "verify_exp": False,
    "verify_nbf": False,
    "verify_iat": False,
}  # `_check_times` does that
REMEMBERED = 10_000  # tokens whose signature was checked already
PEM_BEGINS, PEM_ENDS = b"-----BEGIN", b"-----END PUBLIC KEY-----"


@dataclass(frozen=True)
class SigningKey:
    """A key, and the algorithms with which it may have signed."""

    key: Any
    algorithms: tuple[str, ...]
    name: str | None = None  # `kid`


class JsonWebKeys(msgspec.Struct):
    """A JWKS."""

    keys: list[dict[str, Any]]


class Tokens:
    """Tokens that one issuer made for this server."""

    def __init__(self, options: AccessOptions, now: Callable[[], float] = time.time) -> None:
        if not (options.jwt_issuer and options.jwt_audience):
            raise ConfigError("access.jwt_issuer and access.jwt_audience: expected both beside access.jwt_keys")
        if not Path(options.jwt_keys).is_file():
            raise ConfigError(f"access.jwt_keys: no such file: {options.jwt_keys}")
        self._issuer, self._audience, self._now = options.jwt_issuer, options.jwt_audience, now
        path = Path(options.jwt_keys)
        self._file = WatchedFiles([path], lambda: keys_of(path))
        self._remembered: dict[str, Credential] = {}
        self._version = 0

    @property
    def version(self) -> int:
        """Of the file of keys, as it is now."""
        self._file.content()
        return self._file.version

    def credential(self, text: str) -> Credential:
        """Whose token this is. Raises `Unauthenticated`, and says what is wrong with it."""
        keys = self._file.content() or []
        if self._version != self._file.version:  # what a key that is gone has signed counts no longer
            self._remembered.clear()
            self._version = self._file.version
        found = self._remembered.get(text)
        if found is None:
            found = self._verified(text, keys)
            if len(self._remembered) >= REMEMBERED:
                del self._remembered[next(iter(self._remembered))]
            self._remembered[text] = found
        return found

    def _verified(self, text: str, keys: list[SigningKey]) -> Credential:
        if len(text) > LONGEST:
            raise Unauthenticated(f"the token is longer than {LONGEST} characters")
        try:
            key = _chosen(jwt.get_unverified_header(text), keys)
            claims = jwt.decode(
                text,
                key.key,
                algorithms=list(key.algorithms),
                audience=self._audience,
                issuer=self._issuer,
                leeway=LEEWAY_S,
                options=OPTIONS,
            )
            self._check_times(claims)
            return _credential(claims)
        except (jwt.PyJWTError, ConfigError, ValueError, TypeError, RecursionError) as wrong:
            raise Unauthenticated(f"the token is refused: {_said(wrong)}") from None

    def _check_times(self, claims: Mapping[str, Any]) -> None:
        """By our own clock, so that a message can say what it shows: a wrong clock is the usual reason."""
        now, shows = self._now(), f"this server's clock shows {iso(self._now())}"
        for name in ("exp", "nbf", "iat"):
            if name in claims and not _is_instant(claims[name]):
                raise ConfigError(f"{name}: expected seconds since 1970, got {str(claims[name])[:80]!r}")
        if now > claims["exp"] + LEEWAY_S:
            raise ConfigError(f"it has expired {now - claims['exp']:.0f} s ago; {shows}")
        begins = max(claims.get("nbf", 0), claims.get("iat", 0))
        if now < begins - LEEWAY_S:
            raise ConfigError(f"it begins in {begins - now:.0f} s, so one of the clocks is wrong; {shows}")


def _is_instant(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= LATEST


def keys_of(path: Path) -> list[SigningKey]:
    """The keys of a file. Raises `ConfigError` for one that nobody should trust."""
    try:
        content = path.read_bytes()
        keys = _pem_keys(content) if content.lstrip().startswith(PEM_BEGINS) else _jwks_keys(content)
    except (jwt.PyJWTError, ConfigError, ValueError, TypeError, KeyError, RecursionError) as wrong:
        raise ConfigError(f"{path}: expected a JWKS or public keys in PEM: {_said(wrong)}") from None
    if not keys:
        raise ConfigError(f"{path}: expected a JWKS or public keys in PEM, got none that can be used")
    return keys


def _pem_keys(content: bytes) -> list[SigningKey]:
    blocks = [block + PEM_ENDS for block in content.split(PEM_ENDS)[:-1]]
    return [SigningKey(key, ALGORITHMS[_checked_kind(key)]) for key in (load_pem_public_key(block) for block in blocks)]


def _jwks_keys(content: bytes) -> list[SigningKey]:
    """Those that may sign for us; others may be in the set for other purposes."""
    keys = (_signing_key(data) for data in msgspec.json.decode(content, type=JsonWebKeys).keys)
    return [key for key in keys if key is not None]


def _signing_key(data: dict[str, Any]) -> SigningKey | None:
    """Only an algorithm that fits the kind of a key counts, whatever the file says of it."""
    allowed = ALGORITHMS.get(str(data.get("kty")), ())
    named = [name for name in allowed if data.get("alg") in (None, name)]
    if not named or data.get("use", "sig") != "sig":
        return None
    try:
        key = jwt.PyJWK(data, algorithm=named[0]).key
        _checked_kind(key)
    except (jwt.PyJWTError, ConfigError, ValueError, TypeError, KeyError) as wrong:
        words = "a key of the JWKS is left out: {problem}"
        happened("credentials_unread", words, ERROR, path=str(data.get("kid"))[:80], problem=_said(wrong))
        return None
    return SigningKey(key, tuple(named), data.get("kid"))


def _checked_kind(key: Any) -> str:
    if isinstance(key, rsa.RSAPublicKey) and key.key_size >= SHORTEST_RSA_BITS:
        return "RSA"
    if isinstance(key, ec.EllipticCurvePublicKey) and isinstance(key.curve, ec.SECP256R1):
        return "EC"
    if isinstance(key, ed25519.Ed25519PublicKey):
        return "OKP"
    if isinstance(key, bytes) and len(key) >= SHORTEST_SECRET:
        return "oct"
    kinds = f"public keys of RSA ({SHORTEST_RSA_BITS} bits), P-256 or Ed25519, or {SHORTEST_SECRET} secret bytes"
    raise ConfigError(f"expected {kinds}, got another ({type(key).__name__})")


def _chosen(header: Mapping[str, Any], keys: list[SigningKey]) -> SigningKey:
    """The key that a token names; without a name, the only one there is."""
    if "crit" in header:
        raise ConfigError("it has extensions that have to be understood (crit), and none is known here")
    name = header.get("kid")
    named = [key for key in keys if key.name == name] if isinstance(name, str) else keys
    if len(named) != 1:
        raise ConfigError(
            "it names no key of this server" if name is not None or not named else "it names no key (kid)"
        )
    return named[0]


def _credential(claims: Mapping[str, Any]) -> Credential:
    scope = claims.get("scope", "")
    words = scope.split() if isinstance(scope, str) else scope
    crawls = checked_crawls(claims.get("crawl", "*"))
    crawler = claims.get("crawler_id")
    if crawler is not None and not isinstance(crawler, str):
        raise ConfigError("crawler_id: expected text")
    tenant = checked_tenant(claims.get("tenant", DEFAULT_TENANT))
    subject = str(claims.get("sub", "without a subject"))[:80]
    return Credential(f"token {subject!r}", tenant, grants_of(words, crawls), crawler, float(claims["exp"]) + LEEWAY_S)


def _said(wrong: Exception) -> str:
    return str(wrong)[:200] or type(wrong).__name__
