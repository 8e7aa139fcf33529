"""URLs, exports and explanations through a client."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from tests.gateway.clients.common import (
    FREE,
    asking,
    given,
    numbers,
    pages,
)

from crawlguide.core import errors
from crawlguide.core.errors import NotFound
from crawlguide.gateway.client import calls

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture
def large(guide: Any, crawl: str) -> str:
    """A crawl whose URLs fill three pages."""
    guide.define(crawl, {"policy": FREE})
    assert guide.seed(crawl, pages(2_500)) == 2_500
    return crawl


def test_urls_come_from_all_pages(guide: Any, large: str) -> None:
    found = [one["url"] for one in guide.urls(large)]
    assert len(found) == 2_500
    assert set(found) == set(pages(2_500))


def test_urls_of_a_state_or_a_host_come_alone(guide: Any, large: str) -> None:
    held = given(guide.ask(asking(large, 40)))
    assert {one["url"] for one in guide.urls(large, "leased")} == set(held)
    assert {one["crawler_id"] for one in guide.urls(large, state="leased")} == {"c-1"}
    of_host = [one["url"] for one in guide.urls(large, host="h3.example")]
    assert set(of_host) == {url for url in pages(2_500) if "//h3." in url}
    assert list(guide.urls(large, "dropped")) == []


def test_urls_need_not_be_read_to_the_end(guide: Any, large: str) -> None:
    found = guide.urls(large)
    assert next(found)["state"] == "queued"
    found.close()
    assert numbers(guide, large)["queued"] == 2_500


def test_an_export_is_lines_of_json(guide: Any, large: str, client: httpx.Client) -> None:
    lines = list(guide.export(large))
    assert b"\n".join([*lines, b""]) == client.get(f"/v1/crawls/{large}/export").content
    assert json.loads(lines[0])["crawl"] == large
    assert {json.loads(line)["url"] for line in lines[1:]} == set(pages(2_500))


def test_a_line_of_an_export_holds_whatever_its_text_holds(guide: Any, crawl: str) -> None:
    strange = "a\u2028b\u2029c\x85d\x0be\x1cf"
    guide.seed(crawl, [{"url": "https://a.example/", "metadata": {"text": strange}}])
    _, line = guide.export(crawl)
    assert json.loads(line)["metadata"] == {"text": strange}


def test_an_export_need_not_be_read_to_the_end(guide: Any, large: str) -> None:
    lines = guide.export(large)
    next(lines)
    lines.close()
    assert numbers(guide, large)["queued"] == 2_500


def test_lines_are_put_together_from_any_pieces() -> None:
    lines, text = calls.Lines(), b'{"a": 1}\n{"b": 2}\n{"c": 3}'
    found = [line for at in range(len(text)) for line in lines.of(text[at : at + 1])]
    assert [*found, *lines.rest()] == text.split(b"\n")
    assert list(calls.Lines().rest()) == []


def test_a_url_is_explained(guide: Any, crawl: str) -> None:
    guide.seed(crawl, ["https://a.example/?b=c&d=ä#e"])
    found = guide.explain(crawl, "https://a.example/?b=c&d=ä#e")
    assert (found["state"], found["canonical"]) == ("queued", "https://a.example/?b=c&d=%C3%A4")
    assert found["words"]


def test_a_crawl_is_deleted(guide: Any, crawl: str) -> None:
    guide.define(crawl, {})
    guide.delete(crawl)
    with pytest.raises(NotFound):
        guide.stats(crawl)


@pytest.mark.parametrize(
    "step",
    [
        lambda guide: guide.delete("nobody-made-this"),
        lambda guide: guide.explain("nobody-made-this", "https://a.example/"),
        lambda guide: list(guide.urls("nobody-made-this")),
        lambda guide: list(guide.export("nobody-made-this")),
    ],
)
def test_looking_into_a_crawl_that_is_not_there_says_so(guide: Any, step: Callable[[Any], Any]) -> None:
    with pytest.raises(NotFound, match="nobody-made-this"):
        step(guide)


def test_text_that_cannot_be_sent_is_refused_by_name(guide: Any) -> None:
    with pytest.raises(errors.MalformedRequest, match=r"^url: ") as refused:
        guide.explain("default", "https://a.example/\ud800")
    assert refused.value.field == "url"
    with pytest.raises(errors.MalformedRequest, match=r"^crawl_id: "):
        guide.pause("\ud800")
