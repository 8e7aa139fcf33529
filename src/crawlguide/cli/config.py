"""crawlguide config show, check, explain; and what every key means, in the words of docs/configuration.md."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from crawlguide.cli.common import ConfigOption, JsonOption, app, config_file, say_json, settings
from crawlguide.core.errors import ConfigError, MalformedRequest
from crawlguide.core.telemetry import printable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from crawlguide.core.config import Config

config = typer.Typer(help="Show, check and explain the configuration.", no_args_is_help=True)
app.add_typer(config, name="config")
DataFlag = Annotated[str | None, typer.Option("--data", help="As for serve.")]
HostFlag = Annotated[str | None, typer.Option("--host", help="As for serve.")]
PortFlag = Annotated[int | None, typer.Option("--port", help="As for serve.")]
MEANINGS = {
    "server.host": "address to listen on; beyond loopback only with credentials, or `--insecure`",
    "server.allowed_hosts": "names accepted in the `Host` header besides those of this machine; `*`: any",
    "server.port": "port for HTTP and WebSockets; 0 picks a free one",
    "server.tls_certificate": "PEM file of the certificate, and of its chain; with it all doors speak TLS only",
    "server.tls_key": "PEM file of its private key; empty: it is in the file of the certificate",
    "server.tls_client_ca": "PEM file of authorities: a client that shows a certificate shows one of theirs",
    "server.grpc": "answer over gRPC, too (also `--grpc-port`)",
    "server.grpc_port": "its port; 0 picks a free one",
    "server.frontier": "answer clients of URLFrontier, too (also `--frontier-port`)",
    "server.frontier_port": "its port; 0 picks a free one",
    "server.max_connections": "connections of each port at once; fewer where the system allows fewer open files",
    "server.max_connections_per_address": (
        "the same of one address, or one IPv6 network (/64); 0: 2,000, and 12,000 of this machine"
    ),
    "server.max_bodies_bytes": "bytes of requests and messages that are being received or answered at once",
    "server.max_message_bytes": "larger messages are refused with `too_large`",
    "server.max_requests": "requests at once; more are refused with `unavailable`",
    "server.keep_alive_s": "an idle connection is closed after so many seconds",
    "server.drain_s": "on SIGTERM, running requests may take so many seconds to finish",
    "server.max_sockets": "open WebSockets; more are refused with 503",
    "server.socket_in_flight": "messages of one socket or stream that are processed at once; subscriptions of a socket",
    "server.socket_buffer_bytes": (
        "bytes sent to a socket that it has not read; beyond, it is neither read nor pushed to"
    ),
    "server.socket_stall_s": "a socket or stream that has not read anything for so many seconds is closed",
    "server.log_format": "format of the log, one line for each event: `text` for people, `json` for programs",
    "server.log_level": "lowest level that is logged: `debug`, `info`, `warning` or `error`",
    "bus.nats": "address of a NATS server whose messages are answered, such as `nats://127.0.0.1:4222`; "
    "with `tls://` nothing is shown to it unencrypted",
    "bus.nats_user": "user at NATS",
    "bus.nats_password": "its password; better in the environment than in a file",
    "bus.nats_credentials": "a `.creds` file for NATS, instead of a user; takes the package `nkeys`",
    "bus.kafka": "addresses of Kafka brokers whose messages are answered, such as `127.0.0.1:9092`",
    "bus.kafka_security": "how Kafka is spoken to: `plaintext`, `ssl`, `sasl_plaintext` or `sasl_ssl`",
    "bus.kafka_mechanism": "how the user is shown to Kafka, with SASL",
    "bus.kafka_user": "user at Kafka, with SASL",
    "bus.kafka_password": "its password",
    "bus.tls_ca": "PEM file of authorities for TLS to a bus, which NATS then has to speak; empty: those of the system",
    "bus.prefix": "what the names of all subjects and topics begin with",
    "bus.group": "guides of one group share the messages; empty: named like the prefix",
    "bus.in_flight": "messages of a bus in work at once, the bus keeps the rest; and as many requests of NATS",
    "bus.redeliver_s": "a message whose guide was lost comes again after so many seconds (Kafka: at least 6)",
    "bus.events": "stream fetches, decisions and states of crawls out",
    "bus.spool_bytes": "events kept on disk for a bus that is unreachable; beyond, the oldest are lost and counted",
    "store.data": "the data folder (also `--data`); `:memory:` keeps nothing on disk",
    "store.max_urls": "queued URLs of one crawl; beyond, the lowest-ranked are forgotten",
    "store.max_urls_per_host": "queued URLs of one host in one crawl; beyond, the lowest-ranked are forgotten",
    "store.max_links": "links of one crawl in the link table; more count as evidence but are not stored",
    "store.max_done": "fetched or dropped URLs of a crawl that are kept; beyond, the oldest are forgotten",
    "store.politeness_queue": "what is paced: each `host`, or each `ip` with all hosts at that address",
    "store.politeness_groups": "hosts that share one pace, with their sub-domains: `shops = a.example b.example`",
    "store.keep_done_days": (
        "days after which a fetched or dropped URL is forgotten; a later link to it makes it new again"
    ),
    "crawls.auto_create": "an ask, a report or seeds for an unknown crawl create it; otherwise `not_found`",
    "crawls.max_auto_created": "crawls of a tenant that nobody has defined; beyond, `rate_limited`",
    "crawls.max_loaded": "crawls in memory with all they need; of more, those used the longest ago are unloaded",
    "crawls.plugins": "your own modules that a crawl's `strategy` may name as a `kind`, such as `acme.models.mine`",
    "guide.candidates": "candidates of an ask (more if it asks for more)",
    "guide.filters": "filters, in their order",
    "guide.freshness_tau_s": "τ in freshness = 1 − exp(−age / τ)",
    "guide.slow_ms": "a fetch that takes so long has the full cost",
    "guide.heavy_bytes": "a page of this size has the full cost",
    "guide.default_fetch_ms": "estimated duration of a fetch from a host without fetches",
    "guide.default_bytes": "estimated size of a page of a host without fetches",
    "guide.upkeep_every_s": "seconds between two upkeeps, which end expired leases and answers",
    "guide.rules": "the operator's Rego rules: a file or a folder; empty means none",
    "guide.rules_timeout_ms": "rules that take longer for up to 200 URLs are stopped",
    "guide.predict_budget_ms": "a predictor that takes longer for up to 200 URLs is skipped for a while",
    "server.insecure": "listen for everybody without any credential, as `--insecure`",
    "access.keys": "the file of API keys; empty means keys.json in the data folder",
    "access.jwt_keys": "a JWKS, or public keys in PEM, of whoever signs tokens; empty means no tokens",
    "access.jwt_issuer": "what `iss` of a token has to say",
    "access.jwt_audience": "what `aud` of a token has to say",
    "access.certificate_scopes": "what a crawler may do that shows a client certificate",
    "access.default_tenant": "tenant of tokens and certificates that name none; empty: they are refused",
    "access.requests_per_s": "requests a second of one credential, bursts of two seconds; 0 means no limit",
    "access.address_requests_per_s": "the same of one address, before its credential is looked at",
    "access.address_failures_per_s": "wrong credentials a second of one address; beyond, new ones are not looked at",
    "access.max_sockets": "WebSockets, gRPC and URLFrontier streams of one credential at once; 0 means no limit",
    "select.pages_per_round": "URLs that one answer holds at most; `tres`: pages of a round (forager: 50)",
    "select.slow_domain_ms": "`policy.slow_domain_ms` where a crawl leaves it open (forager: auto, 3000)",
    "select.unreliable_threshold": "the same for `policy.unreliable_threshold` (forager: auto, 0.3)",
    "select.domain_max_pages": "the same for `policy.domain_max_pages` (forager: auto, 100)",
    "select.max_depth": "depth of the tree of strategy `tres` (forager: 18)",
    "select.min_samples_per_split": "pages from which on a leaf of that tree is split (forager: 5)",
    "outgoing.ports": "ports it may connect to itself, for robots.txt and sitemaps; an empty list means any",
    "outgoing.allow_networks": "networks beyond the public Internet that it may connect to, such as `10.0.0.0/8`",
    "outgoing.timeout_s": "how long one such request, with its redirects, may take",
}


@config.command("show")
def show_(
    data: DataFlag = None,
    host: HostFlag = None,
    port: PortFlag = None,
    path: ConfigOption = None,
    json: JsonOption = False,
) -> None:
    """Show every key, its value and where it comes from.

    That is a default, a file, an environment variable or a flag.

    Example: crawlguide config show

    Example: crawlguide config show --port 9090 --json
    """
    from crawlguide.cli.init import toml
    from crawlguide.cli.printing import show, table

    flags = {"server.host": host, "server.port": port, "store.data": data}
    values, sources = _shown(_flat(settings(path, flags))), _sources(config_file(path), flags)
    if json:
        say_json({key: {"value": value, "source": sources.get(key, "default")} for key, value in values.items()})
        return
    rows = [(key, toml(value), sources.get(key, "default")) for key, value in values.items()]
    show(table(("key", "value", "from"), rows))


@config.command()
def check(
    data: DataFlag = None,
    host: HostFlag = None,
    port: PortFlag = None,
    path: ConfigOption = None,
    json: JsonOption = False,
) -> None:
    """Say whether a server could start with this configuration.

    Ends with 0 if so, with 2 and the reason if not.

    Example: crawlguide config check

    Example: crawlguide config check --config settings.toml
    """
    flags = {"server.host": host, "server.port": port, "store.data": data}
    file = config_file(path)
    try:
        _check_use(settings(path, flags))
    except ConfigError as wrong:
        if json:
            say_json({"good": False, "file": file and str(file), "message": wrong.message})
        raise
    changed = len(_sources(file, flags))
    if json:
        say_json({"good": True, "file": file and str(file), "set": changed})
    else:
        typer.echo(printable(f"good: {file or 'no file'}, {changed} {'key' if changed == 1 else 'keys'} set"))


@config.command()
def explain(
    key: Annotated[str, typer.Argument(metavar="KEY", help="Such as server.port.")], json: JsonOption = False
) -> None:
    """Say what a key means and takes, its default and its variable.

    Example: crawlguide config explain server.port
    """
    from crawlguide.cli.init import toml
    from crawlguide.core.config import keys
    from crawlguide.core.type_words import in_words

    if key not in keys():
        raise ConfigError(_unknown(key))
    kind, default = keys()[key]
    about = {"key": key, "meaning": MEANINGS[key], "type": in_words(kind)}
    if json:
        say_json({**about, "default": default, "environment": variable(key)})
        return
    for name, words in {**about, "default": toml(default), "environment": variable(key)}.items():
        typer.echo(f"{name:<12} {words}")


def variable(key: str) -> str:
    """The environment variable that sets a key."""
    from crawlguide.core.config import PREFIX

    return PREFIX + key.replace(".", "_").upper()


def _flat(options: Config) -> dict[str, Any]:
    import msgspec

    from crawlguide.core.config import TABLES

    tree = msgspec.to_builtins(options)
    tables = {name: tree.pop(name) for name in TABLES}
    found = {f"{section}.{name}": value for section, values in tree.items() for name, value in values.items()}
    return found | {name: value for name, value in tables.items() if value}


def _shown(values: dict[str, Any]) -> dict[str, Any]:
    """Without passwords, wherever they stand."""
    from crawlguide.core.telemetry import without_secrets

    hidden = {key: "***" for key, value in values.items() if key.endswith("_password") and value}
    return {key: without_secrets(value) if isinstance(value, str) else value for key, value in values.items()} | hidden


def _sources(file: Path | None, flags: Mapping[str, Any]) -> dict[str, str]:
    """Where each key that is not left at its default comes from; the last one that names it counts."""
    from crawlguide.core.config import TABLES, keys

    tree = tomllib.loads(file.read_text()) if file is not None else {}
    found = {name: f"file {file}" for name in TABLES if tree.pop(name, None)}
    found |= {f"{section}.{name}": f"file {file}" for section, options in tree.items() for name in options}
    found |= {key: f"environment {variable(key)}" for key in keys() if variable(key) in os.environ}
    return found | {key: "flag" for key, value in flags.items() if value is not None}


def _check_use(options: Config) -> None:
    """What a server refuses later than loading: addresses of other machines, filters that are not there."""
    from crawlguide.core.definition import Definition
    from crawlguide.gateway.listener import bound
    from crawlguide.gateway.serve import check_listening
    from crawlguide.guide.crawl import composition

    check_listening(options)
    if options.bus.is_wanted:
        from crawlguide.gateway.bus.messages import check

        check(options.bus)
    bound(options.server.host, 0).close()
    try:
        composition.filters(options.guide.filters, Definition())
        composition.check_default(options)
    except MalformedRequest as wrong:
        raise ConfigError(wrong.message) from None


def _unknown(key: str) -> str:
    from crawlguide.core.config import keys, nearest

    named = [one for one in keys() if variable(one) == key.upper() or one.startswith(f"{key}.")]
    near = ", ".join(named or nearest(key))
    return f"unknown key {key!r}" + (f"; did you mean {near}?" if near else "; `config show` lists all")
