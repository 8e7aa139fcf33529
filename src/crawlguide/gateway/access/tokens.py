"""JSON Web Tokens of somebody else's making: which key may sign with which algorithm is decided here, not by the token.

The keys come from one file: a JWKS, or public keys in PEM. A token names one by `kid`, which is looked up among them
and nowhere else; keys without a name are tried, as far as the algorithm is theirs. `aud`, `exp` and `iss` have to be
there and right. What it may do stands in `scope` (words as `crawlguide keys create --scope` takes them; others are
somebody else's), whose it is in `tenant`.
"""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jwt
import msgspec
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import load_pem_public_key
from jwt.utils import base64url_decode

from crawlguide.core.bounded import Bounded
from crawlguide.core.clock import iso
from crawlguide.core.errors import ConfigError, MalformedRequest, Unauthenticated
from crawlguide.core.telemetry import ERROR, happened
from crawlguide.gateway import strict
from crawlguide.gateway.access.credential import Credential, checked_crawls, checked_tenant, grants_of, known_words
from crawlguide.gateway.watched_files import WatchedFiles

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
MOST_NAMELESS = 8  # each may have to be tried
NO_TENANT = "it names no tenant (the claim `tenant`), and access.default_tenant is not set"
MEANT_FOR_ANOTHER = {  # which is wanted is not for everybody to know
    jwt.InvalidAudienceError: "aud: expected what access.jwt_audience names, got another",
    jwt.InvalidIssuerError: "iss: expected what access.jwt_issuer names, got another",
}
BY_THE_CLAIM = "the claim `scope` of a token says what it may do"
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
        self._default_tenant = options.default_tenant
        path = Path(options.jwt_keys)
        self._file = WatchedFiles([path], lambda: keys_of(path))
        self._remembered: Bounded[str, Credential] = Bounded(REMEMBERED)
        self._remembered_of = 0  # this version of the file

    @property
    def version(self) -> int:
        """Of the file of keys, as it is now."""
        self._file.content()
        return self._file.version

    def credential(self, text: str) -> Credential:
        """Whose token this is. Raises `Unauthenticated`, and says what is wrong with it."""
        keys = self._file.content() or []
        if self._remembered_of != self._file.version:  # what a key that is gone has signed counts no longer
            self._remembered.clear()
            self._remembered_of = self._file.version
        found = self._remembered.get(text)
        if found is None:
            found = self._remembered[text] = self._verified(text, keys)
        return found

    def _verified(self, text: str, keys: list[SigningKey]) -> Credential:
        if len(text) > LONGEST:
            raise Unauthenticated(f"the token is longer than {LONGEST} characters")
        try:
            claims = self._claims(text, _candidates(jwt.get_unverified_header(text), keys))
            _check_parts(text)
            self._check_times(claims)
            return _credential(claims, self._default_tenant)
        except (
            jwt.PyJWTError,
            msgspec.DecodeError,
            ConfigError,
            MalformedRequest,
            ValueError,
            TypeError,
            RecursionError,
        ) as wrong:
            raise Unauthenticated(f"the token is refused: {_said(wrong)}") from None

    def _claims(self, text: str, keys: list[SigningKey]) -> dict[str, Any]:
        """What it says, if one of these keys has signed it."""
        wanted: Any = {"audience": self._audience, "issuer": self._issuer, "options": OPTIONS}
        for key in keys[:-1]:
            with suppress(jwt.InvalidSignatureError):
                return jwt.decode(text, key.key, list(key.algorithms), **wanted)
        return jwt.decode(text, keys[-1].key, list(keys[-1].algorithms), **wanted)

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


def _check_parts(text: str) -> None:
    """Names that are repeated are read differently elsewhere, and halves of letters can be written nowhere."""
    for part in text.split(".")[:2]:
        content = base64url_decode(part)
        strict.check(content)
        msgspec.json.decode(content)


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
    nameless = sum(key.name is None for key in keys)
    if nameless > MOST_NAMELESS:
        raise ConfigError(f"{path}: expected at most {MOST_NAMELESS} keys without a name (kid), got {nameless}")
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


def _candidates(header: Mapping[str, Any], keys: list[SigningKey]) -> list[SigningKey]:
    """The key that a token names, else those without a name; of these, whose algorithm it is. One at least."""
    if "crit" in header:
        raise ConfigError("it has extensions that have to be understood (crit), and none is known here")
    name, nameless = header.get("kid"), [key for key in keys if key.name is None]
    named = [key for key in keys if name is not None and key.name == name]
    found = named or nameless or (keys if name is None and len(keys) == 1 else [])
    if not found:
        raise ConfigError("it names no key (kid)" if name is None else "it names no key of this server")
    fitting = [key for key in found if header.get("alg") in key.algorithms]
    if not fitting:
        raise ConfigError("its algorithm is not one of its key")
    return fitting


def _credential(claims: Mapping[str, Any], default_tenant: str) -> Credential:
    scope = claims.get("scope", "")
    if not isinstance(scope, str | list):
        raise ConfigError("scope: expected text or a list of texts")
    words = known_words(scope.split() if isinstance(scope, str) else scope)
    crawls = checked_crawls(claims.get("crawl", "*"))
    crawler = claims.get("crawler_id")
    if crawler is not None and not isinstance(crawler, str):
        raise ConfigError("crawler_id: expected text")
    if "tenant" not in claims and not default_tenant:
        raise ConfigError(NO_TENANT)
    tenant = checked_tenant(claims.get("tenant", default_tenant))
    subject = str(claims.get("sub", "without a subject"))[:80]
    expires = float(claims["exp"]) + LEEWAY_S
    return Credential(f"token {subject!r}", tenant, grants_of(words, crawls), crawler, expires, BY_THE_CLAIM)


def _said(wrong: Exception) -> str:
    for kind, words in MEANT_FOR_ANOTHER.items():
        if isinstance(wrong, kind):
            return words
    return str(wrong)[:200] or type(wrong).__name__
