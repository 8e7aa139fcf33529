"""Configuration: flags over environment over file, into frozen structs that refuse a typo.

Precedence is flags > environment (`CRAWLGUIDE_SERVER_PORT=8080`) > `crawlguide.toml`.
"""

from __future__ import annotations

import difflib
import tomllib
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args, get_origin

import msgspec
from msgspec import Meta

from crawlguide.core import faults
from crawlguide.core.definition import AUTO, Crawler, Definition, Policy, Share
from crawlguide.core.errors import ConfigError
from crawlguide.core.type_words import in_words
from crawlguide.core.types import TENANT, TENANT_WORDS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

PREFIX = "CRAWLGUIDE_"
TABLES = ("predict", "tenant")  # lists of tables instead of sections
NOT_KEYS = (*(PREFIX + name for name in ("CONFIG", "TOKEN", "CA", "CERTIFICATE", "CERTIFICATE_KEY")), faults.VARIABLE)
EVERY_CRAWLER = EVERY_TENANT = "*"
POLICIES = ("slow_domain_ms", "unreliable_threshold", "domain_max_pages")
Port = Annotated[int, Meta(ge=0, le=65_535)]
Positive = Annotated[int, Meta(ge=1)]
Rate = Annotated[float, Meta(ge=0, le=1e9)]


class Section(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One `[section]` of the file."""


class ServerOptions(Section, frozen=True):
    """The doors that listen: for HTTP and WebSockets always, others where they are wanted."""

    host: str = "127.0.0.1"
    port: Port = 8080
    grpc: bool = False
    grpc_port: Port = 8081
    frontier: bool = False
    frontier_port: Port = 7071
    insecure: bool = False
    tls_certificate: str = ""
    tls_key: str = ""
    tls_client_ca: str = ""
    allowed_hosts: tuple[str, ...] = ()
    max_connections: Positive = 20_000
    max_connections_per_address: Annotated[int, Meta(ge=0)] = 0
    max_bodies_bytes: Positive = 256 * 1024 * 1024
    max_message_bytes: Positive = 4 * 1024 * 1024
    max_requests: Positive = 10_000
    keep_alive_s: Annotated[int, Meta(ge=1, le=3_600)] = 60
    drain_s: Annotated[int, Meta(ge=0, le=3_600)] = 10
    max_sockets: Positive = 10_000
    socket_in_flight: Positive = 64
    socket_buffer_bytes: Positive = 1024 * 1024
    socket_stall_s: Annotated[float, Meta(gt=0, le=3_600)] = 30.0
    log_format: Literal["text", "json"] = "text"
    log_level: Literal["debug", "info", "warning", "error"] = "info"

    @property
    def ports(self) -> dict[str, int]:
        """The port of every door that is wanted, by its setting; 0: it picks one."""
        wanted = (("port", True), ("grpc_port", self.grpc), ("frontier_port", self.frontier))
        return {f"server.{name}": getattr(self, name) for name, is_wanted in wanted if is_wanted}


class BusOptions(Section, frozen=True):
    """The door for message buses: the addresses of the servers, of each kind or none."""

    nats: str = ""
    nats_user: str = ""
    nats_password: str = ""
    nats_credentials: str = ""
    kafka: str = ""
    kafka_security: Literal["plaintext", "ssl", "sasl_plaintext", "sasl_ssl"] = "plaintext"
    kafka_mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] = "SCRAM-SHA-512"
    kafka_user: str = ""
    kafka_password: str = ""
    tls_ca: str = ""
    prefix: str = "crawlguide"
    group: Annotated[str, Meta(pattern="^[A-Za-z0-9_-]{0,100}$")] = ""
    in_flight: Positive = 256
    redeliver_s: Annotated[float, Meta(ge=0.5, le=3_600)] = 30.0
    events: bool = True
    spool_bytes: Annotated[int, Meta(ge=1_048_576)] = 256 * 1024 * 1024

    @property
    def is_wanted(self) -> bool:
        return bool(self.nats or self.kafka)


class AccessOptions(Section, frozen=True):
    """Who may come in, and how often."""

    keys: str = ""
    jwt_keys: str = ""
    jwt_issuer: str = ""
    jwt_audience: str = "crawlguide"
    certificate_scopes: tuple[str, ...] = ("ask", "tell")
    default_tenant: str = ""
    requests_per_s: Rate = 500.0
    address_requests_per_s: Rate = 2_000.0
    address_failures_per_s: Rate = 10.0
    max_sockets: Annotated[int, Meta(ge=0)] = 1_000


class TenantOptions(Section, frozen=True):
    """One `[[tenant]]`: how much a tenant may have; 0 means no bound. The name `*` stands for all others."""

    name: str
    max_crawls: Annotated[int, Meta(ge=0)] = 0
    max_urls: Annotated[int, Meta(ge=0)] = 0
    max_bytes: Annotated[int, Meta(ge=0)] = 0
    requests_per_s: Rate = 0.0
    max_sockets: Annotated[int, Meta(ge=0)] = 0

    def __post_init__(self) -> None:
        if self.name != EVERY_TENANT and not TENANT.fullmatch(self.name):
            raise ValueError(f"name: expected * or {TENANT_WORDS}, got {self.name[:80]!r}")


class StoreOptions(Section, frozen=True):
    """Where the guide remembers, and how much."""

    data: str = "crawlguide-data"
    max_urls: Positive = 20_000_000
    max_urls_per_host: Positive = 5_000_000
    max_links: Positive = 100_000_000
    max_done: Positive = 20_000_000
    keep_done_days: Annotated[float, Meta(gt=0)] = 180.0
    politeness_queue: Literal["host", "ip"] = "host"
    politeness_groups: tuple[str, ...] = ()


class CrawlsOptions(Section, frozen=True):
    """What crawls may be and use."""

    auto_create: bool = True
    max_auto_created: Positive = 10_000
    max_loaded: Positive = 200
    plugins: tuple[str, ...] = ()


class GuideOptions(Section, frozen=True):
    """How asks are answered."""

    candidates: Annotated[int, Meta(ge=1, le=100_000)] = 200
    filters: tuple[str, ...] = (
        "seen", "scope", "banned", "min-p", "crawlers", "traps", "risk", "domains", "politeness", "diversity", "robots",
        "rules", "budget",
    )  # fmt: skip
    freshness_tau_s: Annotated[float, Meta(gt=0)] = 7 * 86_400.0
    slow_ms: Annotated[float, Meta(gt=0)] = 5_000.0
    heavy_bytes: Annotated[float, Meta(gt=0)] = 1_048_576.0
    default_fetch_ms: Annotated[float, Meta(gt=0)] = 500.0
    default_bytes: Annotated[float, Meta(gt=0)] = 65_536.0
    upkeep_every_s: Annotated[float, Meta(gt=0)] = 1.0
    rules: str = ""
    rules_timeout_ms: Annotated[float, Meta(gt=0, le=10_000)] = 50.0
    predict_budget_ms: Annotated[float, Meta(gt=0, le=600_000)] = 250.0


class Select(Section, frozen=True):
    """What crawls do that leave it open, by the names of forager's `[select]`; 0: nothing is said here."""

    pages_per_round: Annotated[int, Meta(ge=0, le=1_000_000)] = 0
    slow_domain_ms: Annotated[float, Meta(ge=0, le=1e9)] | Literal["auto"] = 0.0
    unreliable_threshold: Share | Literal["auto"] = 0.0
    domain_max_pages: Annotated[int, Meta(ge=0, le=10**9)] | Literal["auto"] = 0
    max_depth: Annotated[int, Meta(ge=0, le=64)] = 0
    min_samples_per_split: Annotated[int, Meta(ge=0, le=128)] = 0

    def __post_init__(self) -> None:
        if self.min_samples_per_split == 1:
            raise ValueError("min_samples_per_split: expected 0 or an integer from 2 to 128, got 1")

    def over(self, definition: Definition, strategy: Mapping[str, Any]) -> Definition:
        """The definition as it counts: with these values where it leaves a field as it is by default.

        Strategy `tres` has options of the same names. For others they are bounds of the crawl's policy, and an answer
        holds at most `pages_per_round` URLs.
        """
        given = {name: value for name, value in msgspec.structs.asdict(self).items() if value}
        if given and strategy.get("kind") == "tres":
            options = {name: value for name, value in given.items() if value != AUTO}  # that is what it does by itself
            return msgspec.structs.replace(definition, strategy={**options, **strategy, **definition.strategy})
        policy, usual = definition.policy, Policy()
        left_open = (name for name in POLICIES if getattr(policy, name) == getattr(usual, name))
        new = {name: given[name] for name in left_open if name in given}
        if self.pages_per_round and EVERY_CRAWLER not in policy.crawlers:
            new["crawlers"] = {**policy.crawlers, EVERY_CRAWLER: Crawler(max_urls=self.pages_per_round)}
        return msgspec.structs.replace(definition, policy=msgspec.structs.replace(policy, **new)) if new else definition


class OutgoingOptions(Section, frozen=True):
    """Requests of our own, for robots.txt and sitemaps."""

    ports: tuple[Annotated[int, Meta(ge=1, le=65_535)], ...] = (80, 443, 8080, 8443)
    allow_networks: tuple[str, ...] = ()
    timeout_s: Annotated[float, Meta(gt=0, le=600)] = 15.0


class Config(Section, frozen=True):
    """Everything an operator can set."""

    server: ServerOptions = ServerOptions()
    bus: BusOptions = BusOptions()
    access: AccessOptions = AccessOptions()
    store: StoreOptions = StoreOptions()
    crawls: CrawlsOptions = CrawlsOptions()
    guide: GuideOptions = GuideOptions()
    select: Select = Select()
    outgoing: OutgoingOptions = OutgoingOptions()
    predict: tuple[dict[str, Any], ...] = ()  # [[predict]] tables: the strategy of crawls that name none
    tenant: tuple[TenantOptions, ...] = ()  # [[tenant]] tables: quotas

    def __post_init__(self) -> None:
        for name, tables in Counter(one.name for one in self.tenant).items():
            if tables > 1:
                raise ValueError(f"tenant: expected one table [[tenant]] for each name, got {tables} for {name!r}")


def load(
    path: Path | None = None, environment: Mapping[str, str] | None = None, flags: Mapping[str, Any] | None = None
) -> Config:
    """Read the file if there is one, then the environment, then the flags (dotted keys; None means not given)."""
    tree: dict[str, Any] = {}
    for key, value in _file(path).items() if path else ():
        _put(tree, key, value, str(path))
    for key, value in _environment(environment or {}).items():
        _put(tree, key, value, f"environment variable {_variable(key)}")
    for key, value in (flags or {}).items():
        if value is not None:
            _put(tree, key, value, f"flag for {key}")
    return _convert(tree, path)


def keys() -> dict[str, tuple[Any, Any]]:
    """Every dotted key with its type and default, for documentation and for finding the nearest one."""
    return {
        f"{section.name}.{option.name}": (option.type, option.default)
        for section in sections()
        for option in msgspec.structs.fields(section.type)
    }


def sections() -> list[Any]:
    """Every section, with its name, type and default; `TABLES` are none of them."""
    return [field for field in msgspec.structs.fields(Config) if isinstance(field.default, Section)]


def _file(path: Path) -> dict[str, Any]:
    try:
        tree = tomllib.loads(path.read_text())
    except FileNotFoundError:
        raise ConfigError(f"{path}: no such file") from None
    except OSError as problem:
        raise ConfigError(f"{path}: cannot be read: {problem.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as wrong:
        raise ConfigError(f"{path}: not TOML: {wrong}") from None
    return dict(_flat(tree, str(path)))


def _flat(tree: Mapping[str, Any], where: str) -> Iterator[tuple[str, Any]]:
    named = {section.name for section in sections()}
    for name, section in tree.items():
        if name in TABLES:
            yield name, section
            continue
        if name in named and not isinstance(section, dict):
            raise ConfigError(f"{where}: {name}: expected a section [{name}], got {str(section)[:80]!r}")
        if not isinstance(section, dict) or (not section and name not in named):
            raise ConfigError(_unknown(name, where))
        for option, value in section.items():
            yield f"{name}.{option}", value


def _variable(key: str) -> str:
    return PREFIX + key.replace(".", "_").upper()


def _environment(environment: Mapping[str, str]) -> dict[str, Any]:
    known = {_variable(key): key for key in keys()}
    found: dict[str, Any] = {}
    for variable, value in environment.items():
        if not variable.startswith(PREFIX) or variable in NOT_KEYS:
            continue
        if variable not in known:
            raise ConfigError(_unknown(variable, "the environment", list(known)))
        found[known[variable]] = value
    return found


def _put(tree: dict[str, Any], key: str, value: Any, where: str) -> None:
    if key in TABLES:
        if not isinstance(value, list) or not all(isinstance(table, dict) for table in value):
            raise ConfigError(f"{where}: {key}: expected tables [[{key}]], got {str(value)[:80]!r}")
        tree[key] = value
        return
    if key not in keys():
        raise ConfigError(_unknown(key, where))
    kind, _ = keys()[key]
    written = isinstance(value, str)
    if written and _is_tuple(kind):
        value = [part.strip() for part in value.split(",") if part.strip()]
    try:
        msgspec.convert(value, kind, strict=not written)
    except msgspec.ValidationError:
        raise ConfigError(f"{where}: {key}: expected {in_words(kind)}, got {value!r}") from None
    section, _, option = key.partition(".")
    tree.setdefault(section, {})[option] = value


def _is_tuple(kind: Any) -> bool:
    return get_origin(kind) is tuple or (get_origin(kind) is Annotated and _is_tuple(get_args(kind)[0]))


def _unknown(key: str, where: str, known: Sequence[str] = ()) -> str:
    near = difflib.get_close_matches(key, known, 1, 0.5) if known else nearest(key)
    return f"{where}: unknown key {key!r}" + (f"; did you mean {' or '.join(map(repr, near))}?" if near else "")


def nearest(key: str) -> list[str]:
    """What an unknown key may mean: the same option of another section, else what is spelt most alike."""
    options: dict[str, list[str]] = {}
    for known in keys():
        options.setdefault(known.partition(".")[2], []).append(known)
    names = [*keys(), *options, *(section.name for section in sections()), *TABLES]
    near = [key.rpartition(".")[2]]
    if near[0] not in options:
        near = difflib.get_close_matches(key, names, 1, 0.5)
    return [known for name in near for known in options.get(name, [name])]


def _convert(tree: Mapping[str, Any], path: Path | None) -> Config:
    try:
        return msgspec.convert(tree, Config, strict=False)
    except msgspec.ValidationError as wrong:
        raise ConfigError(f"{path or 'configuration'}: {wrong}") from None
