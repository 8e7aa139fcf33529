"""What is found out about a link when it is found is remembered: no ask reads its text for it."""

from __future__ import annotations

from typing import Any

import numpy as np

from crawlguide.core.definition import Definition
from crawlguide.core.protocols import JudgesLinks
from crawlguide.policy import risk
from crawlguide.policy.robots import Robots, allowed
from crawlguide.policy.robots.cache import CachedRobots, RobotsCache, RobotsRules
from tests.support import NOW, batch, question

PLAIN, BAD = "https://a.org/story", "http://paypal.com.secure-login.tk/webscr/login.php"


class Unread:
    """A column of texts that nobody may read."""

    def __getitem__(self, rows: Any) -> Any:
        raise AssertionError("a text was read")

    def tolist(self) -> Any:
        raise AssertionError("a text was read")


def seen(rule: JudgesLinks, url: str, queue: str, page: str) -> Any:
    """The batch of one URL, found by a link on a page, whose text nobody can read any more."""
    found = batch([url], depth=[1.0])
    rule.judge_links([queue], [url], [page], found.id)
    return found.attach(url=Unread())


def robots(body: bytes, read: float = NOW) -> Robots:
    known = RobotsCache(fetched=True)
    known.put("https://a.org", CachedRobots(body, read, read, 0, 1))
    known.compiled("https://a.org", "bot", RobotsRules.read(body, "bot"))
    return Robots("obey", "bot", known)


def test_what_robots_txt_permits_is_not_read_again() -> None:
    for body in (b"", b"User-agent: *\nDisallow: /private"):
        rule = robots(body)
        assert rule.keep(seen(rule, PLAIN, "a.org", "a.org"), question()).tolist() == [True]


def test_hosts_with_the_same_and_with_other_files_are_judged_together_as_each_alone() -> None:
    files = [b"", b"User-agent: *\nDisallow: /*?x=", b"User-agent: *\nDisallow: /a", b"User-agent: *\nDisallow: /a"]
    paths = ["a/1", "b?x=1", "c", "robots.txt", "robots.txt?x=2"]
    rule, urls = Robots("obey", "bot", RobotsCache(fetched=True)), list[str]()
    for number, body in enumerate(files):
        origin = f"https://h{number}.org"
        rule.cache.put(origin, CachedRobots(body, NOW, NOW, 0, 1))
        rule.cache.compiled(origin, "bot", RobotsRules.read(body, "bot"))
        urls += [f"{origin}/{path}" for path in paths]
    found = batch(sorted(urls, key=lambda url: url[::-1]))  # hosts mixed
    alone = [allowed(files[int(url[9])], "bot", url) for url in found.url.tolist()]
    assert rule.keep(found, question()).tolist() == alone
    assert rule.settled(found, question()).tolist() == alone
    links = rule.judge_links([url[8:14] for url in found.url.tolist()], found.url.tolist(), [], found.id)
    assert [why is None for why in links] == alone
    assert not all(alone)


def test_another_robots_txt_is_asked_again() -> None:
    rule, body = robots(b""), b"User-agent: *\nDisallow: /story"
    rule.judge_links(["a.org"], [PLAIN], ["a.org"], (found := batch([PLAIN])).id)
    rule.cache.put("https://a.org", CachedRobots(body, NOW, NOW, 0, 2))
    rule.cache.compiled("https://a.org", "bot", RobotsRules.read(body, "bot"))
    assert rule.keep(found, question()).tolist() == [False]


def test_a_file_that_is_due_is_asked_again() -> None:
    rule = robots(b"", NOW - 86_000.0)
    rule.judge_links(["a.org"], [PLAIN], ["a.org"], (found := batch([PLAIN])).id)
    assert not rule.settled(found, question())[0]


def test_a_queue_whose_file_was_forgotten_stands_for_nothing() -> None:
    known = RobotsCache()
    known.stands.put("a.org", 7, NOW)
    known.stands.put("b.org", 8, NOW)
    known.stands.forget("a.org")
    known.stands.put("c.org", 9, NOW)
    stamps, due = known.stands.of(["a.org", "b.org", "c.org"])
    assert stamps.tolist() == [0, 8, 9]
    assert due.tolist() == [-np.inf, NOW, NOW]


def test_a_link_within_its_domain_is_not_judged_whoever_finds_it_later() -> None:
    rule = risk.build(Definition())
    assert isinstance(rule, risk.Risk)
    found = seen(rule, BAD, "paypal.com.secure-login.tk", "www.secure-login.tk")
    assert rule.keep(found, question()).tolist() == [True]
    rule.judge_links(["paypal.com.secure-login.tk"], [BAD], ["elsewhere.org"], found.id)
    assert rule.keep(found, question()).tolist() == [True]


def test_one_that_enters_a_domain_is_judged_once() -> None:
    rule = risk.build(Definition())
    assert isinstance(rule, risk.Risk)
    assert rule.keep(seen(rule, BAD, "paypal.com.secure-login.tk", "a.org"), question()).tolist() == [False]
