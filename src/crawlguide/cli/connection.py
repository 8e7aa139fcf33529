"""Who answers commands about a crawl: a server over HTTP, or a data folder opened in this process."""

from __future__ import annotations

import socket
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from crawlguide.cli.common import check_place, say, settings
from crawlguide.core.errors import ConfigError, UnavailableError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from crawlguide.core.config import Config
    from crawlguide.gateway.client.verbs import Verbs

CONNECT_S = 5.0
RETRIES = 2  # a person waits: what does not pass by then is said


@contextmanager
def answering(url: str | None, data: str | None, config: Path | None, *, new: bool = False) -> Iterator[Verbs]:
    """The folder if one is named (a `new` one is made), else the server that is named or configured."""
    from crawlguide import Client

    options = settings(config, {"store.data": data})
    guide: Verbs
    if data is not None:
        check_place(options, data, url, must_exist=not new)
        from crawlguide import Guide

        guide = Guide.open(Path(options.store.data), config=options)
    else:
        guide = Client(check_answers(url or configured(options)), retries=RETRIES)
    with closing(guide):
        yield guide
        if isinstance(guide, Client) and guide.notice.text:
            say(f"crawlguide: {guide.notice.text}")


def configured(options: Config) -> str:
    """Where `crawlguide serve` listens with the same configuration."""
    host, port = options.server.host, options.server.port
    if port == 0:
        raise ConfigError("--url: expected one, since server.port is 0 and the server has picked its port by itself")
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 - whoever listens everywhere, here too
    scheme = "https" if options.server.tls_certificate else "http"
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"


def check_answers(url: str) -> str:
    """The address, if anybody listens there."""
    from crawlguide.gateway.arguments import SCHEMES, address

    parts = urlsplit(address(url))
    port = parts.port or SCHEMES[parts.scheme]
    try:
        socket.create_connection((parts.hostname or "", port), CONNECT_S).close()
    except OSError as problem:
        option = "--grpc-port" if parts.scheme.startswith("grpc") else "--port"
        start = "crawlguide serve" if port == 8080 else f"crawlguide serve {option} {port}"
        why = problem.strerror or str(problem) or type(problem).__name__
        where = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"  # without a password
        raise UnavailableError(
            f"no server answers at {where} ({why}): start one with `{start}`, or open a folder with --data"
        ) from None
    return url
