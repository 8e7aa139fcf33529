"""The status page in a real browser, full of texts that would like to be more than text.

Needs the Debian package chromium, and the corpora in ../shared for the hostile part.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

import httpx
import pytest
from tests.browsing import HANDLERS, in_browser, is_bright, watch
from tests.gateway.conftest import serving

from crawlguide.core.messages import VERSION
from crawlguide.gateway.dashboard import formatting, views

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, Page
    from tests.gateway.conftest import Served

CORPORA = Path(__file__).resolve().parents[3] / "shared" / "corpora"
FREE = {"robots": "ignore", "default_delay_s": 0, "max_per_host": 0}
TOGETHER = views.DECISIONS_SHOWN  # so many texts are told in one crawl: its page shows all of them
PHONE = 390
FOREIGN = "img, iframe, object, embed, form, input, style, audio, video, math, base, template, script:not([src])"
LOOK = """() => ({
  texts: [...document.querySelectorAll("bdi")].map(one => one.textContent),
  foreign: document.querySelectorAll("FOREIGN").length,
  scripts: document.scripts.length,
  handlers: HANDLERS,
  links: [...document.links].map(one => [one.protocol, one.host, one.rel]),
  wide: document.documentElement.scrollWidth,
  violations: window.violations,
})""".replace("FOREIGN", FOREIGN).replace("HANDLERS", HANDLERS)
WATCH = """window.violations = [];
document.addEventListener("securitypolicyviolation", one => window.violations.push(one.violatedDirective));"""

pytestmark = in_browser
hostile = pytest.mark.skipif(not CORPORA.is_dir(), reason=f"the corpora are not here: {CORPORA}")


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("browsed")) as server:
        yield server
        assert server.stop() == 0
        assert "Traceback" not in server.said()


@pytest.fixture(scope="module")
def client(served: Served) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=served.url, timeout=30.0, trust_env=False) as door:
        yield door


class Watched:
    """A page of the browser and all that it should not have done."""

    def __init__(self, page: Page, served: Served) -> None:
        self.page, self.served = page, served
        page.add_init_script(WATCH)
        self.wrong = watch(page, lambda url: url.startswith((served.url + "/", "data:image/svg+xml,")))

    def look(self, path: str) -> dict[str, Any]:
        """What is on a page, after checking that all of it is ours."""
        self.page.goto(self.served.url + path)
        self.page.evaluate("renew()")  # what the script would do in a while
        seen: dict[str, Any] = self.page.evaluate(LOOK)
        assert (self.wrong, seen["violations"]) == ([], [])
        assert (seen["foreign"], seen["handlers"], seen["scripts"]) == (0, 0, 1)
        assert seen["wide"] <= self.page.viewport_size["width"]  # type: ignore[index]
        here = urlsplit(self.served.url).netloc
        for protocol, host, rel in seen["links"]:
            assert protocol in {"http:", "https:"}
            assert host == here or rel == "noreferrer noopener nofollow"
        return seen


@pytest.fixture
def watched(browser: Browser, served: Served) -> Iterator[Watched]:
    with browser.new_context(viewport={"width": PHONE, "height": 800}) as context:
        yield Watched(context.new_page(), served)


def texts() -> list[str]:
    """All strings of the corpora, each once."""
    found: dict[str, None] = {}
    for name, field in (("naughty_strings.jsonl", "s"), ("html_cases.jsonl", "input")):
        for line in (CORPORA / name).read_text().splitlines():
            row = json.loads(line)
            text = row.get(field)
            if isinstance(text, str) and text:
                found[json.loads(f'"{text}"') if row.get("double_escaped") else text] = None
    return list(found)


def is_name(text: str) -> bool:
    return 1 <= len(text) <= 200 and "/" not in text and text not in {".", ".."}


def say(client: httpx.Client, method: str, path: str, message: Any) -> httpx.Response:
    """Texts may hold halves of characters, which JSON can say and UTF-8 cannot."""
    return client.request(method, path, content=json.dumps(message))


def fetch(number: int, text: str) -> dict[str, Any]:
    """A page with a text for its title, its anchors, the path of a link and a whole link."""
    links = [f"https://h{number}.example/{text}", text, f"https://h{number}.example/"]
    outlinks = [{"url": link, "anchor": text, "rel": text} for link in links]
    return {"url": f"https://p.example/{number}", "status": 200, "title": text, "text": text, "outlinks": outlinks}


def made(client: httpx.Client, number: int, part: list[str]) -> str:
    """A crawl with a name, a goal, pages and links of these texts, as far as they are taken."""
    crawl = next(filter(is_name, part), f"crawl {number}")
    goal = {"topic": part[0], "keywords": [text for text in part if len(text) <= 253][:12]}
    path = "/v1/crawls/" + quote(crawl.encode("utf-8", "surrogatepass"), safe="")
    if not say(client, "PUT", path, {"goal": goal, "policy": FREE}).is_success:
        crawl = f"crawl {number}"
        say(client, "PUT", f"/v1/crawls/{quote(crawl)}", {"policy": FREE}).raise_for_status()
    report = {"mcp_version": VERSION, "crawl_id": crawl, "crawler_id": "c"}
    fetches = [fetch(place, text) for place, text in enumerate(part)]
    if not say(client, "POST", "/v1/report", report | {"fetches": fetches}).is_success:  # one of them is no text
        for one in fetches:
            say(client, "POST", "/v1/report", report | {"fetches": [one]})
    return crawl


def given(client: httpx.Client, crawl: str, crawler: str) -> bool:
    """Whether a crawler of that name is given something; if not, because that cannot be a name."""
    ask = {"mcp_version": VERSION, "crawl_id": crawl, "crawler_id": crawler, "budget": {"max_urls": 1}}
    answer = say(client, "POST", "/v1/next", ask)
    assert answer.status_code in {200, 400}
    return answer.is_success and bool(answer.json()["assigned_urls"])


@hostile
@pytest.mark.parametrize("quarter", range(4))
def test_whatever_is_told_stays_text(client: httpx.Client, watched: Watched, quarter: int) -> None:
    every, shown = texts()[quarter::4], 0
    assert len(every) > 250
    for start in range(0, len(every), TOGETHER):
        part = every[start : start + TOGETHER]
        crawl = made(client, 4 * start + quarter, part)
        names = [text for text in part if given(client, crawl, text)]
        seen = set(watched.look(f"/crawls/{quote(crawl, safe='')}")["texts"])
        assert {formatting.visible(text) for text in (crawl, *names)} <= seen
        shown += len(names)
    assert shown > 0.9 * len(every)


@hostile
def test_crawls_of_any_name_are_listed_by_it(client: httpx.Client, watched: Watched) -> None:
    names = [text for text in texts()[:500] if is_name(text)]
    made = {name for name in names if client.put("/v1/crawls/" + quote(name, safe=""), json={}).is_success}
    assert len(made) > 200
    seen, page = set[str](), 1
    while more := watched.look(f"/?page={page}")["texts"]:
        seen.update(more)
        page += 1
    assert {formatting.visible(name) for name in made} <= seen
    assert page > 2


def fetched(client: httpx.Client, crawl: str, *pages: int) -> None:
    fetches = [{"url": f"https://a.example/{number}", "status": 200, "relevance": 1} for number in pages]
    report = {"mcp_version": VERSION, "crawler_id": "c", "crawl_id": crawl, "fetches": fetches}
    client.post("/v1/report", json=report).raise_for_status()


def test_the_page_renews_itself_and_says_when_nobody_answers(client: httpx.Client, watched: Watched) -> None:
    fetched(client, "live", 0)
    page = watched.page
    watched.look("/crawls/live")
    page.evaluate("window.same = true")
    fetched(client, "live", *range(1, 41))
    page.get_by_text("41 of 41 fetches").wait_for(timeout=10_000)
    assert page.evaluate("window.same")
    page.route("**/crawls/live", lambda route: route.abort())
    page.get_by_text("no answer; trying again").wait_for(timeout=10_000)
    page.unroute("**/crawls/live")
    page.get_by_text("no answer; trying again").wait_for(state="hidden", timeout=10_000)
    assert page.evaluate("window.same")


def test_the_page_can_do_without_scripts(client: httpx.Client, served: Served, browser: Browser) -> None:
    fetched(client, "plain", 0)
    with browser.new_context(java_script_enabled=False) as context:
        page = context.new_page()
        page.goto(f"{served.url}/crawls/plain")
        assert page.get_by_text("1 of 1 fetches").is_visible()
        assert page.locator("noscript meta[http-equiv=refresh]").count() == 1


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_follows_the_colours_of_the_reader(served: Served, browser: Browser, scheme: Any) -> None:
    with browser.new_context(color_scheme=scheme) as context:
        page = context.new_page()
        page.goto(served.url)
        assert is_bright(page) == (scheme == "light")
