"""The synthetic web: everything about it is known, and it is the same in every process."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pytest

from crawlguide.core.definition import Goal
from crawlguide.core.errors import ConfigError
from crawlguide.core.types import Page as JudgedPage
from crawlguide.core.urls import canonical
from crawlguide.features.relevance import judge
from crawlguide.lab import synthetic, web
from crawlguide.lab.synthetic.world import DEAD_LINK

if TYPE_CHECKING:
    from crawlguide.lab.pages import Page
    from crawlguide.lab.synthetic import SyntheticWeb

SMALL = {"pages": 600, "hosts": 10, "topics": 6}
PRINT_ONE = """
from crawlguide.lab import synthetic
web = synthetic.make(5, pages=300, hosts=6)
pages = [web.fetch(url) for task in web.tasks() for url in sorted(task.relevant)]
print(web.tasks()[0].seeds, pages)
"""


@pytest.fixture(scope="module")
def made() -> SyntheticWeb:
    return synthetic.make(1, **SMALL, traps=0.2, duplicates=0.2, redirects=0.2, failing=0.3, robots=0.5, mirrors=2)


def crawled(its: SyntheticWeb, most: int = 2_500) -> dict[str, Page]:
    """Breadth-first from the home pages, into everything but no further than `most`."""
    found: dict[str, Page] = {}
    waiting = list(its.tasks()[0].seeds["portal"])
    for url in waiting:
        if url in found:
            continue
        found[url] = page = its.fetch(url)
        waiting += [link.url for link in page.links if link.url not in found]
        waiting += [page.redirected_to] if page.redirected_to else []
        if len(found) == most:
            break
    return found


def test_one_seed_gives_one_web_in_every_process() -> None:
    said = [
        subprocess.run(
            [sys.executable, "-c", PRINT_ONE], check=True, capture_output=True, env={"PYTHONHASHSEED": chance}
        ).stdout
        for chance in ("1", "2")
    ]
    assert said[0] == said[1]
    assert len(said[0]) > 10_000


def test_another_seed_gives_another_web() -> None:
    assert synthetic.make(1, **SMALL).tasks()[0].relevant != synthetic.make(2, **SMALL).tasks()[0].relevant


@pytest.mark.parametrize("homophily", [0.0, 0.5, 0.9])
def test_homophily_is_what_was_asked_for(homophily: float) -> None:
    """Without focus, hosts say nothing of topics: a link is alike by design, or else by the size of the topic."""
    its = synthetic.make(3, pages=4_000, hosts=10, topics=6, focus=0, homophily=homophily)
    shares = [len(task.relevant) / 4_000 for task in its.tasks()]
    expected = homophily + (1 - homophily) * sum(share**2 for share in shares)
    assert same_topic(its) == pytest.approx(expected, abs=0.03)


def same_topic(its: SyntheticWeb) -> float:
    """The share of links between pages with a topic that lead to the same one: what `homophily` came to."""
    graph, topic = its._world.graph, its._world.pages.topic
    source = np.repeat(np.arange(len(its)), np.diff(graph.first))
    between = (topic[source] >= 0) & (topic[graph.to] >= 0) & (graph.form != DEAD_LINK)
    return float((topic[source] == topic[graph.to])[between].mean())


def test_where_nothing_fails_every_page_is_reachable_from_everywhere() -> None:
    its = synthetic.make(1, **SMALL, failing=0)
    for task in its.tasks():
        for seeds in task.seeds.values():
            assert len(its.reachable(seeds)) == len(its)


def test_following_links_finds_what_is_said_to_be_reachable() -> None:
    its = synthetic.make(4, **SMALL, traps=0)
    found = crawled(its, 100_000)
    good = {url for url, page in found.items() if page.status == 200 and its.waste(url) is None}
    assert good == its.reachable(its.tasks()[0].seeds["portal"])


def test_what_is_relevant_reads_like_it(made: SyntheticWeb) -> None:
    task, other = made.tasks()[:2]
    goal = Goal(topic=task.name)

    def judged(url: str) -> float:
        page = made.fetch(url)
        return judge(JudgedPage(page.url, page.title, page.text, page.status), goal)

    assert min(map(judged, task.relevant)) > 0.5 > max(map(judged, other.relevant))


def test_a_hub_is_off_topic_and_leads_to_one() -> None:
    its = synthetic.make(2, pages=1_000, hosts=10, topics=5, hubs=5, failing=0, mirrors=0)
    hubs = [url for url, page in crawled(its).items() if page.title.startswith("Links worth")]
    assert len(hubs) == 5
    for hub in hubs:
        links = [link.url for link in its.fetch(hub).links]
        best = max(sum(its.is_relevant(task, url) for url in links) for task in its.tasks())
        assert not any(its.is_relevant(task, hub) for task in its.tasks())
        assert best > 0.7 * len(links)


def test_waste_is_what_a_fetch_meets(made: SyntheticWeb) -> None:
    """The truth about every address agrees with what was seen there."""
    seen: dict[str, str] = {}
    for url, page in crawled(made).items():
        waste = made.waste(url)
        assert (waste == "dead") == (page.status == 404)
        assert (waste == "error") == (page.status in {0, 500, 503})
        if page.status == 200 and waste is None and page.content_hash:
            assert seen.setdefault(page.content_hash, url) == url
    kinds = Counter(map(made.waste, crawled(made)))
    assert min(kinds[kind] for kind in ("trap", "duplicate", "dead", "error", None)) > 10


def test_a_copy_shows_what_its_page_shows(made: SyntheticWeb) -> None:
    copies = [url for url in crawled(made) if made.waste(url) == "duplicate"]
    assert any("/print/" in url for url in copies)
    assert any("//mirror." in url for url in copies)
    for url in copies:
        page = url.replace("/print/", "/").replace("//mirror.", "//")
        assert made.fetch(url).content_hash == made.fetch(page).content_hash
        assert not any(made.is_relevant(task, url) for task in made.tasks())


def test_an_old_address_leads_to_its_page(made: SyntheticWeb) -> None:
    moved = [page for page in crawled(made).values() if page.status == 301]
    assert moved
    for page in moved:
        assert made.fetch(page.redirected_to or "").status in {200, 0, 500, 503}


@pytest.mark.parametrize("path", ["/calendar/", "/view/", "/browse/", "/list?"])
def test_a_trap_has_no_end(path: str) -> None:
    its = synthetic.make(6, **SMALL, traps=0.5)
    inside = [url for url in crawled(its, 2_000) if path in url and its.waste(url) == "trap"][:1]
    seen = set(inside)
    for url in inside:
        ahead = [link.url for link in its.fetch(url).links if its.waste(link.url) == "trap" and link.url not in seen]
        seen.update(ahead)
        inside += ahead
        if len(seen) > 2_000:
            return
    pytest.fail(f"{path} ended after {len(seen)} pages")


def test_an_address_like_that_of_a_trap_on_a_host_without_is_dead() -> None:
    its = synthetic.make(6, **SMALL, traps=0)
    assert {its.fetch(f"http://{host}/calendar/2026/11").status for host in its.hosts} == {404}


def test_slow_hosts_are_slow() -> None:
    its = synthetic.make(8, **SMALL, slow=0.5, failing=0, mirrors=0)
    elapsed = [its.fetch(f"http://{host}/").elapsed_ms or 0.0 for host in its.hosts]
    assert sum(ms > 500 for ms in elapsed) == 5


def test_failing_hosts_fail_at_their_rate() -> None:
    its = synthetic.make(8, pages=3_000, hosts=10, failing=1.0, failure_rate=0.4, traps=0)
    assert sum(len(task.relevant) for task in its.tasks()) / 3_000 == pytest.approx(0.6, abs=0.04)
    failed = [page for page in crawled(its, 20_000).values() if page.status in {0, 500, 503}]
    assert {(page.status, page.error) for page in failed} == {(0, "timeout"), (500, None), (503, None)}


def test_trouble_passes() -> None:
    its = synthetic.make(8, **SMALL, failing=1.0, failure_rate=0.5)
    failing = [url for url in crawled(its) if its.waste(url) == "error"]
    later = [its.fetch(url, at=3_600.0).status == 200 for url in failing]
    assert 0.3 < sum(later) / len(later) < 0.7


def test_pages_change_at_their_known_rate(made: SyntheticWeb) -> None:
    urls = [url for task in made.tasks() for url in task.relevant if made.change_rate(url) > 0]
    days = [86_400.0 * day for day in range(8)]
    expected = sum(min(1.0, made.change_rate(url) * 86_400) for url in urls) * 7
    hashes = [[made.fetch(url, at).content_hash for at in days] for url in urls]
    changes = sum(one != other for its in hashes for one, other in pairwise(its))
    assert 0.5 * expected < changes < expected * 1.1
    still = [url for url in made.tasks()[0].relevant if made.change_rate(url) == 0]
    then = [made.fetch(url).content_hash for url in still]
    later = [made.fetch(url, at=1e7).content_hash for url in still]
    answered = [(one, other) for one, other in zip(then, later, strict=True) if one and other]
    assert len(answered) > len(still) / 2  # some host may be failing at either moment
    assert all(one == other for one, other in answered)


def test_robots_rules_and_sitemaps_say_what_is_so(made: SyntheticWeb) -> None:
    files = {host: made.fetch(f"http://{host}/robots.txt") for host in made.hosts}
    ruled = [host for host, page in files.items() if "Disallow: /members/" in page.text]
    assert len(ruled) >= 5
    private = [url for url in crawled(made) if "/members/" in url and made.waste(url) is None]
    assert private
    assert all(made.forbidden(url) for url in private)
    for host, page in files.items():
        if "Sitemap:" not in page.text:
            assert made.fetch(f"http://{host}/sitemap.xml").status == 404
            continue
        index = made.fetch(f"http://{host}/sitemap.xml").text
        assert f"http://{host}/sitemap-1.xml" in index
        assert f"<loc>http://{host}/</loc>" in made.fetch(f"http://{host}/sitemap-1.xml").text


def test_every_address_is_in_its_one_form(made: SyntheticWeb) -> None:
    assert all(canonical(url) == url for url in crawled(made))


def test_any_spelling_of_an_address_finds_its_page(made: SyntheticWeb) -> None:
    url = next(iter(made.tasks()[0].relevant))
    assert made.fetch(url.replace("http://", "HTTP://") + "#part").title == made.fetch(url).title


@pytest.mark.parametrize("url", ["", "nonsense", "ftp://x.example/", "http://nobody.example/", "http://[::1"])
def test_what_the_web_does_not_hold_is_a_404(made: SyntheticWeb, url: str) -> None:
    assert made.fetch(url).status == 404
    assert made.waste(url) == "dead"


def test_a_web_is_opened_by_its_name() -> None:
    its = web.open("synthetic:seed=3, pages=300,hosts=5,homophily=0.9")
    assert its.name == "synthetic:seed=3,pages=300,hosts=5,homophily=0.9"
    assert web.open(its.name).tasks()[0].relevant == its.tasks()[0].relevant
    assert web.open("synthetic").name == "synthetic"


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("synthetic:homofily=1", "unknown option 'homofily'; did you mean homophily?"),
        ("synthetic:xyz=1", "unknown option 'xyz'; known are seed, pages"),
        ("synthetic:pages=many", "pages: expected `int`, got `str`"),
        ("synthetic:dead=1", "dead: expected `float` <= 0.9"),
        ("synthetic:pages", "expected option=value, got 'pages'"),
        ("synthetic:pages=500,pages=600", "pages: expected once, got it twice"),
        ("synthetic:pages=40,hosts=20", "pages: expected at least 2 × hosts + hubs + topics = 68, got 40"),
        ("synthetic:hosts=3,mirrors=4", "mirrors: expected at most hosts = 3, got 4"),
    ],
)
def test_a_wrong_option_is_named(text: str, wrong: str) -> None:
    with pytest.raises(ConfigError) as caught:
        web.open(text)
    assert wrong in caught.value.message


def test_dead_links_are_as_many_as_was_asked_for() -> None:
    its = synthetic.make(0, **SMALL, traps=0, duplicates=0, mirrors=0, dead=0.25)
    pages = its.reachable(its.tasks()[0].seeds["portal"])
    links = [link.url for url in pages for link in its.fetch(url).links]
    assert sum(its.waste(url) == "dead" for url in links) / len(links) == pytest.approx(0.25, abs=0.01)


def test_the_smallest_webs_work_too() -> None:
    its = synthetic.make(0, pages=20, hosts=1, topics=2, hubs=0, mirrors=0, links=1, dead=0.9)
    assert its.tasks()[0].relevant <= its.reachable(its.tasks()[0].seeds["portal"])
