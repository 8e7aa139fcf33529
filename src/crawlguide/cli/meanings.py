"""What every key of the configuration means and takes, in one line each: for `init` and `config explain`.

docs/configuration.md says the same in the same words; a test compares them.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, get_args, get_origin

WORDS = {int: "an integer", float: "a number", str: "text", bool: "true or false"}
MEANINGS = {
    "server.host": "address to listen on; without credentials only a loopback address is accepted",
    "server.allowed_hosts": "names besides this machine's own by which it may be called; `*`: any",
    "server.port": "port for HTTP and WebSockets; 0 picks a free one",
    "server.max_message_bytes": "larger messages are refused with `too_large`",
    "server.max_requests": "requests at once; beyond, `unavailable`",
    "server.keep_alive_s": "an idle connection is closed after so long",
    "server.drain_s": "on SIGTERM, requests that run may take so long to end",
    "server.max_sockets": "open WebSockets; the next one is refused with 503",
    "server.socket_in_flight": (
        "messages of one socket that are worked on at once, and its subscriptions; beyond, it is not read"
    ),
    "server.socket_buffer_bytes": (
        "bytes sent to a socket that it has not taken; beyond, it is neither read nor pushed to"
    ),
    "server.socket_stall_s": "a socket that has not taken what was sent for so long is cut",
    "server.log_format": "how the log is written, a line for each event: `text` for people, `json` for programs",
    "server.log_level": "what is logged: `debug`, `info`, `warning` or `error`, each with all that is worse",
    "store.data": "the folder to remember in (also `--data`); `:memory:` forgets at the end",
    "store.max_urls": "waiting URLs of one crawl; beyond, the lowest-ranked go",
    "store.max_urls_per_host": "waiting URLs of one host in one crawl; beyond, the lowest-ranked go",
    "store.max_links": "links of one crawl kept in the link table; evidence counts beyond",
    "store.max_done": (
        "URLs of a crawl that are kept after they were fetched or dropped; over it the oldest are forgotten"
    ),
    "store.politeness_queue": "what is asked politely: each `host`, or each `ip` with all hosts that were found there",
    "store.politeness_groups": "hosts that share one pace, with their sub-domains: `shops = a.example b.example`",
    "store.keep_done_days": (
        "days after which a fetched or dropped URL is forgotten; a link that leads there later makes it new again"
    ),
    "crawls.auto_create": "an ask, a tell or seeds for an unknown crawl create it; otherwise `not_found`",
    "crawls.plugins": "modules of your own that a crawl's `strategy` may name as a `kind`, such as `acme.models.mine`",
    "guide.candidates": "candidates looked at for an ask (more if it asks for more)",
    "guide.filters": "filters in their order",
    "guide.freshness_tau_s": "freshness = 1 − exp(−age / this)",
    "guide.slow_ms": "a fetch that takes so long costs the most",
    "guide.heavy_bytes": "a page so large costs the most",
    "guide.default_fetch_ms": "estimate for a host nobody has fetched yet",
    "guide.default_bytes": "the same for bytes",
    "guide.upkeep_every_s": "how often leases and answers that ended are cleared",
    "guide.rules": "the operator's rules: a file or a folder in Rego; empty means none",
    "guide.rules_timeout_ms": "rules that take longer for up to 200 URLs are stopped",
    "guide.predict_budget_ms": "a predictor that takes longer for up to 200 URLs is passed over for a while",
    "outgoing.ports": "ports that the guide itself may connect to, for robots.txt; an empty list means any",
    "outgoing.allow_networks": "networks beyond the public Internet that it may connect to, such as `10.0.0.0/8`",
    "outgoing.timeout_s": "one such request, with its redirects, may take so long",
}


def kind_in_words(kind: Any) -> str:
    """What a key takes: Annotated[int, Meta(ge=1)] -> "an integer from 1"."""
    origin, parts = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return kind_in_words(parts[0]) + "".join(map(_bounds, parts[1:]))
    if origin is Literal:
        return f"one of {', '.join(parts)}"
    if origin is tuple:
        return f"a list, each {kind_in_words(parts[0])}"
    return WORDS[kind]


def _bounds(meta: Any) -> str:
    words = {"gt": "above", "ge": "from", "lt": "below", "le": "to"}
    found = {word: getattr(meta, name, None) for name, word in words.items()}
    return "".join(f" {word} {bound}" for word, bound in found.items() if bound is not None)
