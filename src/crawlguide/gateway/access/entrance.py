"""The one place that decides who may come in: for every door, before a body is read.

Without any credential configured everybody may do everything; a server then listens on its own machine alone, unless
its operator insists.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from crawlguide.core.errors import ConfigError, Unauthenticated
from crawlguide.gateway.access import api_keys, certificates
from crawlguide.gateway.access.api_keys import ApiKeys
from crawlguide.gateway.access.credential import ANYONE, Credential, grants_of
from crawlguide.gateway.access.rate_limits import RateLimit
from crawlguide.gateway.access.sessions import Sessions
from crawlguide.gateway.access.tokens import Tokens
from crawlguide.gateway.load import whose

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from crawlguide.core.config import Config

LOOPBACK = ("127.0.0.1", "::1", "localhost")
BEARER = "bearer "
FOLDER = "access"  # of the data folder: keys, and what admins did
FAILURES_PER_S = 10.0  # of one address; whoever guesses waits
SHOW_ONE = (
    "expected a credential: the header Authorization: Bearer with an API key or a token"
    " (commands: --token or CRAWLGUIDE_TOKEN)"
)


class Caller(NamedTuple):
    """What is known of somebody before anything is read: where, and what was shown."""

    address: str
    authorization: str = ""
    certificate: Mapping[str, Any] | None = None  # of the connection, verified


class Entrance:
    """Credentials of all kinds, and how often each may come."""

    def __init__(self, config: Config, now: Callable[[], float] = time.time) -> None:
        options = config.access
        self._now = now
        self._keys = ApiKeys(keys_file(config))
        if not self._keys.configured and (options.keys or self._keys.were_there):
            raise ConfigError(f"access.keys: {self._keys.path} is gone; `crawlguide keys create` makes a new one")
        self._tokens = Tokens(options, now) if options.jwt_keys else None
        self._by_certificate = bool(config.server.tls_client_ca)
        self._certificate_scopes = options.certificate_scopes
        grants_of(options.certificate_scopes)  # what is wrong with them is said at the start
        self._address_limit = RateLimit("your address", options.address_requests_per_s)
        self._credential_limit = RateLimit("your credential", options.requests_per_s)
        self._tenant_limit = RateLimit("your tenant", 0.0)
        self._tenant_rates = {tenant.name: tenant.requests_per_s for tenant in config.tenant}
        self._failures = RateLimit("credentials that were refused", FAILURES_PER_S)
        self.insecure = config.server.insecure
        self.sessions = Sessions()

    @property
    def required(self) -> bool:
        """Whether a credential has to be shown."""
        return self._by_certificate or self._tokens is not None or self._keys.configured

    def admit(self, caller: Caller) -> Credential:
        """Who this is. Raises `Unauthenticated` and `RateLimited`; what it may do is for the credential to say."""
        address = whose(caller.address)
        if self.insecure or self.required:
            self._address_limit.take(address)
        if not self.required:
            return ANYONE
        try:
            credential = self.identify(caller)
        except Unauthenticated:
            self._failures.take(address)
            raise
        self._credential_limit.take((credential.tenant, credential.name))
        self._tenant_limit.take(credential.tenant, self._tenant_rate(credential.tenant))
        return credential

    @property
    def version(self) -> tuple[int, int]:
        """Another one: somebody who was known may not be known any more."""
        return self._keys.version, self._tokens.version if self._tokens is not None else 0

    def identify(self, caller: Caller) -> Credential:
        """The same for somebody who has been admitted before: nothing is counted."""
        text = caller.authorization
        if not self.required:
            return ANYONE
        if text:
            if not text.lower().startswith(BEARER):
                raise Unauthenticated(SHOW_ONE)
            credential = self._bearer(text[len(BEARER) :].strip())
        elif caller.certificate and self._by_certificate:
            credential = certificates.credential(caller.certificate, self._certificate_scopes)
        else:
            raise Unauthenticated(SHOW_ONE)
        if credential.expires <= self._now():
            raise Unauthenticated(f"{credential.name} has expired; make a new one")
        return credential

    def check_host(self, host: str) -> None:
        """Listen beyond this machine only with credentials, or with the word of the operator. Raises `ConfigError`."""
        if host not in LOOPBACK and not self.required and not self.insecure:
            raise ConfigError(
                f"server.host: {host!r} can be reached by others, and no credential is configured:"
                " make one with `crawlguide keys create`, or say --insecure"
            )

    def _bearer(self, text: str) -> Credential:
        if text.startswith(f"{api_keys.PREFIX}_") or self._tokens is None:
            return self._keys.credential(text)
        return self._tokens.credential(text)

    def _tenant_rate(self, tenant: str) -> float:
        return self._tenant_rates.get(tenant, self._tenant_rates.get("*", 0.0))


def keys_file(config: Config) -> Path:
    """Where the API keys are kept."""
    if config.access.keys:
        return Path(config.access.keys)
    if config.store.data == ":memory:":
        return Path("crawlguide-keys.json")
    return Path(config.store.data) / FOLDER / api_keys.FILE
