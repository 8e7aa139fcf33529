"""A credential: whose it is, and what it may do with which crawls. Its tenant is where a tenant comes from, always."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from crawlguide.core.errors import ConfigError, Forbidden
from crawlguide.core.messages import DEFAULT_TENANT
from crawlguide.core.types import TENANT, TENANT_WORDS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from crawlguide.core.errors import NotFound

ASK, TELL, READ, ADMIN = "ask", "tell", "read", "admin"
IMPORT, METRICS, ROBOTS_OVERRIDE = "import", "metrics", "robots:override"
SCOPES = (ASK, TELL, READ, ADMIN, IMPORT, METRICS, ROBOTS_OVERRIDE)
INCLUDED = {  # whoever runs a crawl may do all with it but ignore robots.txt
    ADMIN: (ASK, TELL, READ, ADMIN, IMPORT, METRICS),
}
EVERY_CRAWL = "*"


class Grant(NamedTuple):
    """One scope for one crawl (`news`), for all whose names begin alike (`news-*`) or for every crawl (`*`)."""

    scope: str
    crawls: str = EVERY_CRAWL

    def covers(self, crawl: str) -> bool:
        if self.crawls.endswith("*"):
            return crawl.startswith(self.crawls[:-1])
        return crawl == self.crawls

    def __str__(self) -> str:
        return self.scope if self.crawls == EVERY_CRAWL else f"{self.scope}@{self.crawls}"


@dataclass(frozen=True)
class Credential:
    """Somebody who came in. `name` is what logs call it: never a secret."""

    name: str
    tenant: str = DEFAULT_TENANT
    grants: tuple[Grant, ...] = ()
    crawler_id: str | None = None  # it speaks for this crawler alone
    expires: float = float("inf")
    advice: str = "`crawlguide keys create --scope {scope}` makes one that has it"  # to whom a scope is missing

    @property
    def logged(self) -> dict[str, str]:
        """As the fields of a log event name it; where no credential is wanted there is nothing to say."""
        return {} if self is ANYONE else {"credential": self.name, "tenant": self.tenant}

    @property
    def is_operator(self) -> bool:
        """Whether it may see what belongs to no single tenant: copies of the whole folder."""
        return self.tenant == DEFAULT_TENANT and self.may(ADMIN)

    @property
    def measures_all(self) -> bool:
        """Whether it may see the figures of the process and of every tenant."""
        return self.tenant == DEFAULT_TENANT and self.may(METRICS)

    def may(self, scope: str, crawl: str | None = None) -> bool:
        """Whether it has a scope for a crawl; without a name, for every crawl."""
        return any(
            scope in INCLUDED.get(grant.scope, (grant.scope,))
            and (grant.crawls == EVERY_CRAWL if crawl is None else grant.covers(crawl))
            for grant in self.grants
        )

    def may_some(self, scope: str) -> bool:
        """Whether it has a scope for any crawl at all."""
        return any(scope in INCLUDED.get(grant.scope, (grant.scope,)) for grant in self.grants)

    def check_some(self, scope: str) -> None:
        """Raise `Forbidden` unless it has a scope for any crawl at all."""
        if not self.may_some(scope):
            raise self._lacking(scope, "any crawl")

    def _lacking(self, scope: str, where: str) -> Forbidden:
        has, advice = ", ".join(map(str, self.grants)) or "nothing", self.advice.format(scope=scope)
        return Forbidden(f"{self.name} has not the scope {scope} for {where}; it has {has}; {advice}")

    def check(self, scope: str, crawl: str | None = None) -> None:
        """Raise `Forbidden`, in words that say what is missing and what is there."""
        if not self.may(scope, crawl):
            where = "all crawls" if crawl is None else f"crawl {crawl[:200]!r}"
            raise self._lacking(scope, where)

    def check_crawler(self, crawler_id: str) -> None:
        if self.crawler_id is not None and crawler_id != self.crawler_id:
            words = f"crawler_id: {self.name} speaks for {self.crawler_id!r} alone, got {crawler_id[:200]!r}"
            raise Forbidden(words, field="crawler_id")


ANYONE = Credential("anyone", grants=(Grant(ADMIN), Grant(ROBOTS_OVERRIDE)))


def without_hint(problem: NotFound, credential: Credential) -> NotFound:
    """A name that is almost right is told only to whoever may look at all of them."""
    if credential.may(READ):
        return problem
    return problem.without_hint()


def known_words(texts: Iterable[str]) -> list[str]:
    """Those that name a scope of ours: whoever makes tokens for many services writes others' words into them, too."""
    return [text for text in texts if not isinstance(text, str) or text.partition("@")[0] in SCOPES]


def grants_of(texts: Iterable[str], crawls: str = EVERY_CRAWL) -> tuple[Grant, ...]:
    """`ask`, `read@news-*`: grants, each for `crawls` unless it names its own. Raises `ConfigError`."""
    grants = []
    for text in texts:
        if not isinstance(text, str):
            raise ConfigError(f"scope: expected words, got {str(text)[:80]!r}")
        scope, at, own = text.partition("@")
        if scope not in SCOPES:
            raise ConfigError(f"scope: expected one of {', '.join(SCOPES)}, got {scope[:80]!r}")
        grants.append(Grant(scope, checked_crawls(own if at else crawls)))
    return tuple(dict.fromkeys(grants))


def checked_crawls(text: object) -> str:
    if not isinstance(text, str):
        raise ConfigError(f"crawl: expected text, got {str(text)[:80]!r}")
    if not 1 <= len(text) <= 200 or "*" in text[:-1] or "/" in text:
        raise ConfigError(f"crawl: expected a name, or the beginning of names and a *, got {text[:80]!r}")
    return text


def checked_tenant(text: object, field: str = "tenant") -> str:
    if not isinstance(text, str) or not TENANT.fullmatch(text):
        raise ConfigError(f"{field}: expected {TENANT_WORDS}, got {str(text)[:80]!r}")
    return text
