"""The one place that decides who may come in: for every door, before a body is read.

Without any credential configured everybody may do everything; a server then listens on its own machine alone, unless
its operator insists.
"""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from crawlguide.core.bounded import Bounded
from crawlguide.core.config import TenantOptions
from crawlguide.core.errors import ConfigError, Unauthenticated
from crawlguide.gateway.access import api_keys, certificates
from crawlguide.gateway.access.api_keys import ApiKeys
from crawlguide.gateway.access.credential import ANYONE, Credential, checked_tenant, grants_of
from crawlguide.gateway.access.logins import Logins
from crawlguide.gateway.access.rate_limits import RateLimit
from crawlguide.gateway.access.tokens import Tokens
from crawlguide.gateway.load import whose

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from crawlguide.core.config import AccessOptions, Config

LOOPBACK = ("127.0.0.1", "::1", "localhost")
BEARER = "bearer "
FOLDER = "access"  # of the data folder: keys, and what admins did
MOST_FAMILIAR = 100_000
UNBOUND = TenantOptions(name="*")
OPEN_HEADER = "crawlguide-insecure"  # of an answer over HTTP, and a trailer of one over gRPC
OPEN_WORDS = "anybody who reaches this address may use it: the server was started with --insecure"
SHOW_ONE = (
    "expected a credential: the header Authorization: Bearer with an API key or a token"
    " (commands: --token or CRAWLGUIDE_TOKEN)"
)


class Caller(NamedTuple):
    """What is known of somebody before anything is read: where, and what was shown."""

    address: str
    authorization: str = ""
    certificate: Mapping[str, Any] | None = None  # of the connection, verified
    is_shared: bool = False  # everybody's, as that of a message bus: one must not use up what others need there

    @property
    def logged(self) -> dict[str, str]:
        """As the fields of a log event name somebody who was not let in: what is shown may be a lie."""
        claimed = api_keys.claimed(self.authorization)
        return {"address": self.address} | ({"claims": claimed} if claimed else {})


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
        self._of_certificate = partial(
            certificates.credential, scopes=options.certificate_scopes, default_tenant=options.default_tenant
        )
        _check(options)
        self._address_limit = RateLimit("your address", options.address_requests_per_s)
        self._credential_limit = RateLimit("your credential", options.requests_per_s)
        self._tenant_limit = RateLimit("your tenant", 0.0)
        self._tenants = {tenant.name: tenant for tenant in config.tenant}
        self._most_sockets = options.max_sockets
        self._failures = RateLimit("credentials that were refused", options.address_failures_per_s)
        self._familiar: Bounded[tuple[str, int], None] = Bounded(MOST_FAMILIAR)  # addresses with what was right there
        self.insecure = config.server.insecure
        self.logins = Logins()

    @property
    def required(self) -> bool:
        """Whether a credential has to be shown."""
        return self._by_certificate or self._tokens is not None or self._keys.configured

    @property
    def is_open_to_all(self) -> bool:
        """By the word of the operator. Every answer to a person says so."""
        return self.insecure and not self.required

    def knock(self, address: str) -> None:
        """One more request of an address, whatever it wants. Raises `RateLimited`."""
        if self.insecure or self.required:
            self._address_limit.take(whose(address))

    def admit(self, caller: Caller) -> Credential:
        """Who this is. Raises `Unauthenticated` and `RateLimited`; what it may do is for the credential to say."""
        if not caller.is_shared:
            self.knock(caller.address)
        return self.recognize(caller)

    def recognize(self, caller: Caller) -> Credential:
        """The same for somebody who has knocked."""
        if not self.required:
            return ANYONE
        credential = self.identify_newcomer(caller)
        self._credential_limit.take((credential.tenant, credential.name))
        self._tenant_limit.take(credential.tenant, self._quota(credential.tenant).requests_per_s)
        return credential

    def identify_newcomer(self, caller: Caller) -> Credential:
        """Who this is, for somebody of whom no request is counted yet.

        Where too much was wrong lately nothing new is looked at: a guess must not come true sooner than others. What
        was right there before still is: many share the address of a proxy, and one of them may guess.
        """
        if caller.is_shared:
            return self.identify(caller)
        address = whose(caller.address)
        shown = address, hash(caller.authorization)
        if caller.authorization and shown not in self._familiar:
            self._failures.check(address)
        try:
            credential = self.identify(caller)
        except Unauthenticated:
            self._familiar.pop(shown, None)
            if caller.authorization:  # who shows nothing guesses nothing
                self._failures.take(address)
            raise
        self._familiar[shown] = None
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
            credential = self._of_certificate(caller.certificate)
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

    def most_sockets(self, tenant: str) -> tuple[int, int]:
        """How many sockets a credential of a tenant may have at once, and the tenant itself; 0: no bound."""
        return self._most_sockets, self._quota(tenant).max_sockets

    def _quota(self, tenant: str) -> TenantOptions:
        return self._tenants.get(tenant) or self._tenants.get("*") or UNBOUND


def _check(options: AccessOptions) -> None:
    """What is wrong with options that count later is said at the start."""
    grants_of(options.certificate_scopes)
    if options.default_tenant:
        checked_tenant(options.default_tenant, "access.default_tenant")


def keys_file(config: Config) -> Path:
    """Where the API keys are kept."""
    if config.access.keys:
        return Path(config.access.keys)
    if config.store.data == ":memory:":
        return Path("crawlguide-keys.json")
    return Path(config.store.data) / FOLDER / api_keys.FILE
