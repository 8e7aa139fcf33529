"""The hard webs: each is the same everywhere, has the trait that it is named after, and can be crawled."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import unquote

import httpx
import pytest

from crawlguide import lab
from crawlguide.core.errors import ConfigError
from crawlguide.core.urls import queue
from crawlguide.lab import web as webs
from crawlguide.lab.run import Settings, run
from crawlguide.lab.synthetic import hard, kinds
from crawlguide.lab.synthetic.kinds import DrawnWeb

DOCUMENTED = (Path(__file__).resolve().parents[2] / "docs" / "lab-webs.md").read_text()


def links(web: DrawnWeb) -> list[tuple[str, str]]:
    """All links of pages that can be reached."""
    pages = web.reachable(web.tasks()[0].seeds["portal"])
    return [(page, link.url) for page in sorted(pages) for link in web.fetch(page).links]


@pytest.mark.parametrize("kind", kinds.names())
def test_a_kind_and_a_seed_are_one_web(kind: str) -> None:
    one, same, other = hard(kind, pages=300), webs.open(f"synthetic:kind={kind},pages=300"), hard(kind, 1, pages=300)
    assert one.tasks() == same.tasks()
    assert links(one) == links(same)  # type: ignore[arg-type]
    assert other.tasks() != one.tasks()
    assert one.name == f"synthetic:kind={kind},pages=300"


@pytest.mark.parametrize("kind", kinds.names())
def test_nearly_all_targets_can_be_reached(kind: str) -> None:
    web = hard(kind)
    for task in web.tasks():
        reachable = web.reachable(task.seeds["portal"]) & task.relevant
        assert len(reachable) >= 0.8 * len(task.relevant) >= 30


@pytest.mark.parametrize("kind", kinds.names())
def test_it_can_be_crawled(kind: str) -> None:
    web = hard(kind, pages=300)
    assert len(run(web, web.tasks()[-1], "layered", 0, Settings(budget=30)).relevant) == 30


@pytest.mark.parametrize("kind", kinds.names())
def test_it_is_documented(kind: str) -> None:
    assert f"| `{kind}` |" in DOCUMENTED


def test_six_of_ten_links_are_dead_although_their_hosts_answer() -> None:
    web = hard("dead")
    alive = set(web.hosts)
    dead = [web.waste(to) == "dead" for _, to in links(web)]
    assert 0.55 < sum(dead) / len(dead) < 0.65
    assert {queue(to) for _, to in links(web)} <= alive


def test_delayed_targets_lead_nowhere_but_back() -> None:
    web = hard("delayed")
    for target in web.tasks()[0].relevant:
        assert [link.anchor for link in web.fetch(target).links] == ["up"]


def test_no_seed_lies_on_a_host_with_targets() -> None:
    for task in hard("new-hosts").tasks():
        assert not {queue(seed) for seed in task.seeds["portal"]} & {queue(url) for url in task.relevant}


def test_news_have_their_date_in_the_address_and_a_story_its_days() -> None:
    for task in hard("news").tasks():
        days = {found[0] for url in task.relevant if (found := re.search(r"/2026/\d\d/\d\d/", url))}
        assert 1 < len(days) <= 14


def test_without_a_goal_the_guide_is_told_none() -> None:
    assert {task.topic for task in hard("no-goal").tasks()} == {""}
    assert {task.topic for task in hard("news").tasks()} == {task.name for task in hard("news").tasks()}


def test_non_latin_pages_say_their_topic_without_latin_letters() -> None:
    web = hard("non-latin")
    for task in web.tasks():
        assert not re.search("[a-z]", task.topic)
        titles = [web.fetch(url).title for url in sorted(task.relevant)]
        assert any(task.topic.split()[0] in title for title in titles)
        assert not any(re.search("[a-z]", title) for title in titles)
    assert any("园艺" in unquote(url) for url in web.tasks()[0].relevant)


def test_targets_of_repositories_are_files_that_lead_nowhere() -> None:
    web = hard("pdf")
    for target in web.tasks()[0].relevant:
        assert target.endswith(".pdf")
        assert not web.fetch(target).links


def test_a_host_of_single_pages_has_one() -> None:
    web = hard("single-pages")
    assert len(web.hosts) == len(web)


def test_a_single_site_is_one_host_with_queries() -> None:
    web = hard("single-site")
    assert len(web.hosts) == 1
    assert all("view=thread" in url for task in web.tasks() for url in task.relevant)


def test_a_hard_web_can_be_served() -> None:
    web = hard("news", pages=300)
    with lab.served(web, slowest_s=0) as server:
        answer = httpx.get(web.tasks()[0].seeds["portal"][0], proxy=f"http://127.0.0.1:{server.port}")
    assert answer.status_code == 200
    assert "archive" in answer.text


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("synthetic:kind=newz", r"kind: expected one of dead, .* got 'newz' \(did you mean 'news'\?\)"),
        ("synthetic:kind=news,hosts=4", "hosts: beside kind expected only seed and pages"),
        ("synthetic:kind=news,pages=10", "pages: expected `int` >= 300"),
        ("synthetic:kind=news,kind=pdf", "kind: expected once"),
    ],
)
def test_what_cannot_be_drawn_is_said(name: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        webs.open(name)
