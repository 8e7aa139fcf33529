"""`UrlFrontierClient`: what it says where it cannot work, and of what a guide refuses."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import grpc
import pytest

from crawlguide import Client, UrlFrontierClient
from crawlguide.core.errors import ConfigError, CrawlGuideError, Forbidden, UnavailableError
from crawlguide.gateway.client.urlfrontier import KnownUrl, Status, _address
from crawlguide.gateway.urlfrontier import urlfrontier_pb2 as wire
from crawlguide.gateway.urlfrontier.urlfrontier_pb2_grpc import (
    URLFrontierServicer,
    add_URLFrontierServicer_to_server,
)

if TYPE_CHECKING:
    from tests.gateway.urlfrontier.common import Frontier


def test_without_the_extra_it_says_what_to_install() -> None:
    program = "import sys; sys.modules['grpc'] = None; from crawlguide import UrlFrontierClient"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    words = "UrlFrontierClient needs grpc, which is not installed: pip install '.[grpc]'"
    assert words in ended.stderr.splitlines()[-1]
    assert "ModuleNotFoundError" not in ended.stderr


def test_a_refusal_is_said_in_the_words_of_every_other_client(frontier: Frontier) -> None:
    token = frontier.guarded.key("read", tenant="reader")
    with UrlFrontierClient(f"127.0.0.1:{frontier.port}", token=token) as client, pytest.raises(Forbidden) as refusal:
        client.delete_crawl()
    with Client(frontier.guarded.server.url, token=token) as client, pytest.raises(Forbidden) as other:
        client.delete("DEFAULT")
    assert refusal.value.message == other.value.message


@pytest.mark.parametrize("scheme", ["http", "grpc"])
def test_its_port_is_none_for_other_clients(frontier: Frontier, scheme: str) -> None:
    with Client(f"{scheme}://127.0.0.1:{frontier.port}") as client, pytest.raises(CrawlGuideError) as problem:
        client.stats()
    assert "URLFrontier" in problem.value.message
    assert not isinstance(problem.value, UnavailableError)


def test_an_address_is_no_url() -> None:
    with pytest.raises(ConfigError, match=r"expected HOST:PORT such as 127\.0\.0\.1:7071, got 'http://"):
        UrlFrontierClient("http://127.0.0.1:7071")


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("localhost", "localhost:7071"),
        ("localhost:1", "localhost:1"),
        ("::1", "[::1]:7071"),
        ("[::1]", "[::1]:7071"),
        ("[::1]:1", "[::1]:1"),
    ],
)
def test_an_address_without_a_port_gets_the_usual_one(text: str, address: str) -> None:
    assert _address(text) == address


class Forgetful(URLFrontierServicer):
    """A server that does not acknowledge all it was sent."""

    def PutURLs(self, request_iterator: Any, context: Any) -> Any:
        for item in list(request_iterator)[:1]:
            yield wire.AckMessage(ID=item.ID, status=wire.AckMessage.OK)

    def PutDiscovered(self, request_iterator: Any, context: Any) -> Any:
        list(request_iterator)
        return iter(())


def test_what_is_not_acknowledged_is_to_be_sent_again() -> None:
    server = grpc.server(ThreadPoolExecutor(2))
    add_URLFrontierServicer_to_server(Forgetful(), server)  # type: ignore[abstract]  # of 19 calls it has two
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        with UrlFrontierClient(f"127.0.0.1:{port}") as client:
            known = [KnownUrl("https://a.example/1"), KnownUrl("https://a.example/2")]
            assert client.put(known) == [Status.OK, Status.FAIL]
            assert client.discover(["https://a.example/1"]) == [Status.FAIL]
    finally:
        server.stop(None).wait()


def test_a_certificate_is_shown_over_tls_alone() -> None:
    with pytest.raises(ConfigError, match="certificate: expected tls or ca beside it"):
        UrlFrontierClient("127.0.0.1:7071", certificate=("crawler.pem", "crawler.key"))
