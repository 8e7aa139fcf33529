"""A polite crawler: asks a guide what to fetch, fetches it, tells what came of it, until there is nothing left.

python examples/crawler.py http://127.0.0.1:8080 https://example.com/
"""

import signal
import sys
import time
from contextlib import suppress
from html.parser import HTMLParser
from typing import Any
from urllib.parse import urlsplit

import httpx

from crawlguide import Client

CRAWL, AGENT, MOST_BYTES = "example", "crawlguide-example", 1 << 20
ME = {"mcp_version": "2025-11", "crawler_id": AGENT, "crawl_id": CRAWL}
web = httpx.Client(headers={"user-agent": AGENT}, timeout=5)


class Links(HTMLParser):
    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[dict[str, str]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        if tag == "a" and (href := dict(attributes).get("href")):
            self.found.append({"url": href})


def fetched(url: str, robots: bool) -> dict[str, Any]:
    """What came of a fetch, as a guide wants it told. Redirects are links: the guide says when to follow them.

    A robots.txt is told as it is: the guide reads it, and gives out no URL that it forbids.
    """
    try:
        with web.stream("GET", url, follow_redirects=robots) as answer:
            page = next(answer.iter_bytes(MOST_BYTES), b"").decode(answer.encoding or "utf-8", "replace")
    except (httpx.HTTPError, httpx.InvalidURL) as problem:
        return {"url": url, "error": "timeout" if isinstance(problem, httpx.TimeoutException) else "connect"}
    told = {"url": url, "status": answer.status_code, "elapsed_ms": answer.elapsed.total_seconds() * 1_000}
    if (wait := answer.headers.get("retry-after", "")).isdecimal():
        told["retry_after_s"] = int(wait)
    if robots:
        return told | {"text": page}
    moved = [{"url": answer.headers["location"]}] if answer.has_redirect_location else []
    return told | {"outlinks": moved + Links(page).found}


def crawl(guide: Client, seeds: list[str]) -> None:
    domains = [urlsplit(seed).hostname for seed in seeds]
    guide.define(CRAWL, {"policy": {"robots": "crawler", "user_agent": AGENT, "allow_domains": domains}})
    guide.seed(CRAWL, seeds)
    while True:
        advice, received = guide.ask({**ME, "budget": {"max_urls": 5}}), time.monotonic()
        for one in advice["assigned_urls"]:
            time.sleep(max(0.0, received + one["not_before_ms"] / 1_000 - time.monotonic()))
            guide.tell({**ME, "fetches": [told := fetched(one["url"], one["kind"] == "robots")]})
            sys.stdout.write(f"{told.get('status') or told['error']} {one['url']}\n")
        if advice["metadata"]["crawl_state"] in {"exhausted", "finished"}:
            return
        time.sleep(advice["retry_after_ms"] / 1_000)


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.stderr.write("usage: python examples/crawler.py GUIDE SEED…\n")
        sys.exit(2)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with Client(sys.argv[1]) as guide, suppress(KeyboardInterrupt):
        try:
            crawl(guide, sys.argv[2:])
        finally:  # whatever ends it: others go on with what it holds
            guide.release(CRAWL, AGENT)
