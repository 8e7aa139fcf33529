"""Scrapy on a served web: a plain spider that follows every link.

.venv-peers/scrapy/bin/python -m bench.peers.scrapy_crawl PROXY SEED PAGES CONCURRENCY
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from typing import Any

from scrapy import Request, Spider, signals
from scrapy.crawler import CrawlerProcess
from scrapy.http import HtmlResponse
from scrapy.linkextractors import LinkExtractor


class Links(Spider):
    """Reads title, text and links with their anchors; follows them all."""

    name = "links"
    handle_httpstatus_all = True
    proxy, seed = "", ""
    links = LinkExtractor()

    async def start(self) -> Any:
        yield self._request(self.seed)

    def _request(self, url: str) -> Request:
        return Request(url, meta={"proxy": self.proxy})

    def parse(self, response: Any, **_: Any) -> Iterator[Any]:
        if not isinstance(response, HtmlResponse):
            yield {"url": response.url, "status": response.status}
            return
        found = self.links.extract_links(response)
        yield {
            "url": response.url,
            "status": response.status,
            "title": response.css("title::text").get(),
            "text": " ".join(response.xpath("//body//text()").getall()),
            "links": [(link.url, link.text) for link in found],
        }
        for link in found:
            yield self._request(link.url)


def settings(pages: int, concurrency: int) -> dict[str, Any]:
    return {
        "ROBOTSTXT_OBEY": True,
        "DOWNLOAD_DELAY": 0,
        "CONCURRENT_REQUESTS": concurrency,
        "CONCURRENT_REQUESTS_PER_DOMAIN": concurrency,
        "CLOSESPIDER_PAGECOUNT": pages,
        "COOKIES_ENABLED": False,
        "TELNETCONSOLE_ENABLED": False,
        "RETRY_ENABLED": False,
        "LOG_LEVEL": "ERROR",
        "FEEDS": {"pages.jsonl": {"format": "jsonlines"}},
    }


def main() -> None:
    Links.proxy, Links.seed, pages, concurrency = sys.argv[1:5]
    process = CrawlerProcess(settings(int(pages), int(concurrency)))
    crawler = process.create_crawler(Links)
    began: list[float] = []
    ended: list[float] = []
    crawler.signals.connect(lambda: began.append(time.process_time()), signals.spider_opened, weak=False)
    crawler.signals.connect(lambda: ended.append(time.process_time()), signals.spider_closed, weak=False)
    process.crawl(crawler)
    process.start()
    stats = crawler.stats.get_stats() if crawler.stats else {}
    requests = stats["downloader/response_count"] - stats.get("robotstxt/response_count", 0)
    good = stats.get("downloader/response_status_count/200", 0) - stats.get("robotstxt/response_status_count/200", 0)
    print(json.dumps({"requests": requests, "pages": good, "cpu_s": ended[0] - began[0]}))


if __name__ == "__main__":
    main()
