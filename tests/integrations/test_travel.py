"""What comes with a URL from a guide that others share decides nothing but how its page is read."""

from __future__ import annotations

from typing import Any

import pytest
from scrapy import Request, Spider

from crawlguide.integrations.scrapy.travel import packed, unpacked

URL = "https://a.example/"


class Plants(Spider):
    name = "plants"

    def parse(self, response: Any) -> None: ...

    def details(self, response: Any) -> None: ...

    def _private(self, response: Any) -> None: ...


def test_what_a_spider_sends_comes_back() -> None:
    spider = Plants()
    sent = Request(URL, spider.details, cb_kwargs={"page": 2}, meta={"kind": "rose"}, headers={"Accept-Language": "de"})
    metadata = packed(sent, spider)
    assert metadata is not None
    back = unpacked(URL, metadata, spider)
    assert (back.callback, back.cb_kwargs, back.meta["kind"]) == (spider.details, {"page": 2}, "rose")
    assert back.headers["Accept-Language"] == b"de"


@pytest.mark.parametrize(
    "more",
    [
        {"headers": {"Authorization": "Basic c2VjcmV0"}},
        {"headers": {"Cookie": "a=b"}},
        {"headers": {"Host": "b.example"}},
        {"cookies": {"a": "b"}},
        {"meta": {"proxy": "http://user:secret@127.0.0.1:1"}},
    ],
)
def test_no_secret_travels(more: dict[str, Any]) -> None:
    assert packed(Request(URL, **more), Plants()) is None


@pytest.mark.parametrize("name", ["_private", "__init__", "__class__", "close", "update_settings", "nowhere", 7, None])
def test_only_public_methods_of_the_spider_itself_are_called(name: Any) -> None:
    assert unpacked(URL, {"scrapy": {"callback": name}}, Plants()).callback is None


@pytest.mark.parametrize(
    "said",
    [
        {"method": "POST", "body": "x", "url": "https://b.example/", "priority": 10},
        {"meta": {"proxy": "http://127.0.0.1:1", "bindaddress": "127.0.0.2", "cookiejar": 1, "allow_offsite": True}},
        {"headers": {"Authorization": ["x"], "X-A": ["b\r\nX-B: c"]}},
        {"headers": {"Host": ["b.example"], "CONTENT-LENGTH": ["5"], " Transfer-Encoding": ["chunked"]}},
        {"headers": {"Connection": ["close"], "Upgrade": ["h2c"], "Expect": ["100-continue"]}},
        {"cookies": {"a": "b"}},
        {"headers": 5},
        {"meta": []},
        {"encoding": "no-such-encoding"},
        "text",
    ],
)
def test_a_stranger_decides_nothing_about_a_request(said: Any) -> None:
    found = unpacked(URL, {"scrapy": said}, Plants())
    assert (found.url, found.method, found.body, found.priority, found.cookies) == (URL, "GET", b"", 0, {})
    assert not found.meta
    assert not found.headers
