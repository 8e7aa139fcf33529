"""/docs: every endpoint and message for people, under the same strict policy as the status page."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from crawlguide.gateway.reference import reference
from crawlguide.gateway.routes import ROUTES

if TYPE_CHECKING:
    import httpx


@pytest.fixture(scope="module")
def page(client: httpx.Client) -> httpx.Response:
    return client.get("/docs")


def test_the_page_is_there_and_loads_nothing_from_elsewhere(page: httpx.Response) -> None:
    assert page.status_code == 200
    assert page.headers["content-security-policy"].startswith("default-src 'none'")
    assert not re.search(r"<script|http-equiv|https?://(?!www\.w3\.org)", page.text)


def test_every_endpoint_is_named_with_what_it_does(page: httpx.Response) -> None:
    for route in ROUTES:
        assert f"<code>{route.path}</code>" in page.text
        assert route.summary.replace("'", "&#39;") in page.text


def test_every_link_leads_to_a_message_on_the_page(page: httpx.Response) -> None:
    links = set(re.findall(r'href="#(\w+)"', page.text))
    assert len(links) > 20
    assert links <= set(re.findall(r'id="(\w+)"', page.text))


@pytest.mark.parametrize(
    ("message", "field", "kind", "needed"),
    [
        ("AskMessage", "mcp_version", '"2025-11"', True),
        ("AskMessage", "context", "Context", False),
        ("Fetch", "outlinks", "a list of Outlink", False),
        ("SeedsMessage", "urls", "a list of text or SeedMessage", True),
        ("Policy", "max_retries", "an integer from 0 to 100", False),
        ("StatsMessage", "uptime_s", "a number", True),
    ],
)
def test_kinds_are_said_in_words(message: str, field: str, kind: str, needed: bool) -> None:
    fields = {one.name: one.fields for one in reference().messages}[message]
    found = next(one for one in fields if one.name == field)
    assert (found.kind, found.needed) == (kind, needed)


def test_a_page_that_is_not_there_says_where_all_are(client: httpx.Client) -> None:
    assert client.get("/v1/nxet").json()["error"]["message"] == "no such page: /v1/nxet; /docs lists all there are"
