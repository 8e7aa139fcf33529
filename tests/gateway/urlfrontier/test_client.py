"""`UrlFrontierClient`: what it says where it cannot work, and of what a guide refuses."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from crawlguide import Client, UrlFrontierClient
from crawlguide.core.errors import ConfigError, CrawlGuideError, Forbidden, UnavailableError

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
