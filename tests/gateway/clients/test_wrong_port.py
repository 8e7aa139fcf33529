"""Whoever takes one port of a guide for another is told so at once, and not that no server runs there."""

from __future__ import annotations

import pytest
from tests.gateway.clients.common import Kind
from tests.gateway.conftest import Served

from crawlguide import UrlFrontierClient
from crawlguide.core.errors import CrawlGuideError, UnavailableError

IN_HTTP = "does not answer in HTTP .*: is it the port for https://, for gRPC .*grpc://"
NO_TLS = "does not speak TLS: is its address one of"
NOT_GRPC = "speaks HTTP and not gRPC: a guide answers gRPC on a port of its own, 8081"


@pytest.mark.parametrize(
    ("scheme", "port", "said"),
    [
        ("http", "grpc_url", IN_HTTP),
        ("https", "url", f"{NO_TLS} http://"),
        ("https", "grpc_url", f"{NO_TLS} http://"),
        ("grpc", "url", NOT_GRPC),
        ("grpcs", "grpc_url", f"{NO_TLS} grpc://"),
    ],
)
def test_a_client_at_the_wrong_port_says_which_ports_there_are(
    served: Served, kind: Kind, scheme: str, port: str, said: str
) -> None:
    url = f"{scheme}://{getattr(served, port).partition('://')[2]}"
    with kind(url) as guide, pytest.raises(CrawlGuideError, match=f"^{url} {said}") as problem:
        guide.stats()
    assert not isinstance(problem.value, UnavailableError)  # which would be tried again


@pytest.mark.parametrize(("port", "said"), [("url", NOT_GRPC), ("grpc_url", "does not know this call .* on 7071$")])
def test_a_client_of_urlfrontier_at_the_wrong_port_says_so(served: Served, port: str, said: str) -> None:
    address = getattr(served, port).partition("://")[2]
    with UrlFrontierClient(address) as frontier, pytest.raises(CrawlGuideError, match=f"^{address} .*{said}"):
        frontier.stats()
