"""The Scrapy spider of the demo: nothing in it knows of a guide but one line of its settings."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import scrapy

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scrapy.http import HtmlResponse


class DemoSpider(scrapy.Spider):
    name = "demo"
    start_urls = os.environ.get("DEMO_SEEDS", "").split()
    custom_settings = {  # noqa: RUF012 - as Scrapy wants it
        "ADDONS": {"crawlguide.integrations.scrapy.Addon": 500},
        "CRAWLGUIDE_URL": os.environ.get("DEMO_GUIDE", ""),
        "CRAWLGUIDE_CRAWL": "demo",
        "CLOSESPIDER_PAGECOUNT": int(os.environ.get("DEMO_PAGES", "0")),
        "CONCURRENT_REQUESTS": 8,
        "LOG_LEVEL": "WARNING",
    }

    def parse(self, response: HtmlResponse) -> Iterator[Any]:  # type: ignore[override]  # the usual way of Scrapy
        yield {"url": response.url, "title": response.css("title::text").get()}
        yield from response.follow_all(css="a")
