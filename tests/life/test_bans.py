"""URLs, hosts and patterns that people ban while a crawl runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from crawlguide import Guide
from crawlguide.core.config import Config
from crawlguide.core.definition import Bans, Definition, HandRules, Policy, Priorities, PriorityEdit, RulesEdit
from crawlguide.core.errors import MalformedRequest, NotFound
from crawlguide.core.messages import SeedsMessage
from crawlguide.core.types import Crawl
from crawlguide.gateway.opening import open_guide
from crawlguide.guide.crawl import crawls as crawls_module
from crawlguide.guide.crawl.active_crawl import CrawlRecord
from crawlguide.testing import ManualClock
from tests.guide.common import UNPACED
from tests.life.common import A, B, numbers, policy
from tests.support import asked, fetched, state_of, tell

if TYPE_CHECKING:
    from pathlib import Path


BANS = [{"urls": [A + "1#part"]}, {"hosts": ["A.org"]}, {"patterns": ["/1$"]}]


@pytest.mark.parametrize("ban", BANS)
def test_what_is_banned_is_dropped_and_comes_back_when_it_is_not(guide: Guide, ban: dict[str, Any]) -> None:
    guide.seed("default", [A + "1", B + "2"])
    guide.edit_rules("default", {"ban": ban})
    assert asked(guide) == [B + "2"]
    assert numbers(guide)["dropped"] == {"banned": 1}
    guide.edit_rules("default", {"unban": ban})
    assert asked(guide) == [A + "1"]
    assert numbers(guide)["dropped"] == {}


@pytest.mark.parametrize("ban", BANS)
def test_what_is_banned_is_dropped_on_sight(guide: Guide, ban: dict[str, Any]) -> None:
    guide.edit_rules("default", {"ban": ban})
    guide.seed("default", [A + "1"])
    tell(guide, fetched(B, A + "1", "https://a.org:8080/1"))
    banned_by_host_too = 2 if "urls" not in ban else 1
    assert numbers(guide)["dropped"] == {"banned": banned_by_host_too}


def test_a_host_is_banned_without_its_sub_domains(guide: Guide) -> None:
    guide.edit_rules("default", {"ban": {"hosts": ["a.org"]}})
    guide.seed("default", [A, "https://www.a.org/"])
    assert asked(guide) == ["https://www.a.org/"]


def test_what_a_crawler_holds_when_it_is_banned_is_not_given_again(guide: Guide, clock: ManualClock) -> None:
    guide.seed("default", [A, B])
    asked(guide, "c-1")
    guide.edit_rules("default", {"ban": {"hosts": ["a.org"]}})
    clock.advance(1_000.0)
    assert asked(guide, "c-2") == [B]
    assert state_of(guide, A) == "dropped"


def test_a_link_to_what_is_no_longer_banned_brings_it_back(guide: Guide, monkeypatch: pytest.MonkeyPatch) -> None:
    guide.edit_rules("default", {"ban": {"hosts": ["a.org"]}})
    guide.seed("default", [A])
    monkeypatch.setattr(crawls_module, "PAGES_AT_ONCE", 0)  # nothing is renewed at once
    guide.edit_rules("default", {"unban": {"hosts": ["a.org"]}})
    assert state_of(guide, A) == "dropped"
    tell(guide, fetched(B, A))
    assert state_of(guide, A) == "queued"


def test_what_is_unbanned_but_out_of_scope_stays_out(guide: Guide) -> None:
    guide.seed("default", [A])
    guide.edit_rules("default", {"ban": {"urls": [A]}})
    policy(guide, deny_domains=["a.org"])
    assert state_of(guide, A) == "dropped"
    policy(guide)
    assert asked(guide) == [A]


def test_what_is_banned_and_unbanned_at_once_is_not_banned(guide: Guide) -> None:
    edit = {"ban": {"hosts": ["a.org", "b.org"]}, "unban": {"hosts": ["a.org"]}}
    assert guide.edit_rules("default", edit)["ban"]["hosts"] == ["b.org"]


def test_explain_names_the_rule_that_bans(guide: Guide) -> None:
    guide.seed("default", [A + "archive/1"])
    guide.edit_rules("default", {"ban": {"patterns": ["/archive/"]}})
    found = guide.explain("default", A + "archive/1")
    assert (found["state"], found["reason"]) == ("dropped", "banned")
    assert {"name": "banned", "verdict": "forbid", "why": "rules.ban.patterns holds '/archive/'"} in found["filters"]
    assert found["needs"] == ["it is unbanned: rules.ban.patterns holds '/archive/'"]
    with pytest.raises(NotFound, match=r"rules\.ban\.patterns holds"):
        guide.explain("default", A + "archive/2")


@pytest.mark.parametrize(
    ("edit", "field"),
    [
        ({"ban": {"patterns": ["ok", "("]}}, "ban.patterns[1]"),
        ({"ban": {"patterns": ["(?=x)"]}}, "ban.patterns[0]"),
        ({"ban": {"patterns": [r"\Qa"]}}, "ban.patterns[0]"),
        ({"ban": {"patterns": [""]}}, "ban.patterns[0]"),
        ({"ban": {"patterns": ["x" * 1_001]}}, "ban.patterns[0]"),
        ({"ban": {"urls": ["ftp://a.org/"]}}, "ban.urls[0]"),
        ({"unban": {"hosts": ["no host"]}}, "unban.hosts[0]"),
        ({"priority": {"urls": {A: 2}}}, "priority.urls[...]"),
        ({"priority": {"hosts": {"a.org": -1}}}, "priority.hosts[...]"),
        ({"priority": {"patterns": {"[": 1}}}, "priority.patterns"),
        ({"prioritie": {}}, "prioritie"),
    ],
)
def test_a_wrong_rule_is_refused_by_name_and_changes_nothing(guide: Guide, edit: dict[str, Any], field: str) -> None:
    before = guide.edit_rules("default", {"ban": {"hosts": ["a.org"]}})
    with pytest.raises(MalformedRequest) as wrong:
        guide.edit_rules("default", edit)
    assert wrong.value.field == field
    assert guide.rules("default") == before


def test_rules_of_a_crawl_that_is_not_there_are_not_found(guide: Guide) -> None:
    with pytest.raises(NotFound):
        guide.rules("nobody")
    with pytest.raises(NotFound):
        guide.edit_rules("nobody", {})


def test_a_new_definition_replaces_the_rules_with_all_the_rest(guide: Guide) -> None:
    guide.edit_rules("default", {"ban": {"hosts": ["a.org"]}, "priority": {"urls": {A: 0.5}}})
    guide.define("default", {"policy": UNPACED})
    assert guide.rules("default") == {
        "ban": {"urls": [], "hosts": [], "patterns": []},
        "priority": {"urls": {}, "hosts": {}, "patterns": {}},
    }


def test_rules_survive_a_restart(tmp_path: Path, clock: ManualClock) -> None:
    with Guide.open(tmp_path / "data", clock=clock) as guide:
        policy(guide)
        guide.seed("default", [A, B])
        rules = guide.edit_rules("default", {"ban": {"hosts": ["a.org"]}, "priority": {"patterns": {"x": 2}}})
    with Guide.open(tmp_path / "data", clock=clock) as guide:
        assert guide.rules("default") == rules
        assert asked(guide) == [B]


def test_a_host_may_be_given_as_a_url() -> None:
    with Guide.open(":memory:") as guide:
        guide.define("default", {})
        rules = guide.edit_rules("default", {"ban": {"hosts": ["https://a.org/x"]}, "priority": {"hosts": {B: 2}}})
        assert rules["ban"]["hosts"] == ["a.org"]
        assert rules["priority"]["hosts"] == {"b.org": 2}


STARS = ["*.c.org", "https://*.c.org/", "c.*", "*"]


@pytest.mark.parametrize("host", STARS)
@pytest.mark.parametrize("field", ["ban", "priority"])
def test_a_rule_for_a_host_with_a_star_is_refused_however_it_comes(guide: Guide, field: str, host: str) -> None:
    rule = {field: {"hosts": [host] if field == "ban" else {host: 2}}}
    before = guide.rules("default")
    for change in (
        lambda: guide.define("default", {"policy": UNPACED, "rules": rule}),
        lambda: guide.define("new", {"rules": rule}),
        lambda: guide.patch("default", {"rules": rule}),
        lambda: guide.edit_rules("default", rule),
    ):
        with pytest.raises(MalformedRequest, match=rf"^rules\.{field}\.hosts: expected one host, got '") as wrong:
            change()
        assert wrong.value.field == f"rules.{field}.hosts"
    assert guide.rules("default") == before


@pytest.mark.parametrize("domain", ["c.*", "*", "https://a.*.org/"])
def test_a_domain_has_no_star_but_before_it(guide: Guide, domain: str) -> None:
    for change in (
        {"allow_domains": [domain]},
        {"domain_weights": {domain: 2}},
        {"robots_exceptions": [domain]},
        {"crawlers": {"me*": {"deny_domains": [domain]}}},
    ):
        with pytest.raises(MalformedRequest, match=r"^policy\.[\w.*]+: expected a domain, got '"):
            guide.patch("default", {"policy": change})


async def test_what_was_taken_before_is_opened_and_may_be_lifted() -> None:
    """An older version took hosts with a star; a crawl with such rules goes on, and each can be lifted alone."""
    guide, crawl = open_guide(":memory:", Config()), Crawl("default", "old")
    old = Definition(
        policy=Policy(allow_domains=("*", "a.org")),
        rules=HandRules(Bans(hosts=("*.c.org", "c.*")), Priorities(hosts={"*.d.org": 2.0})),
    )
    await guide.store.crawl_put(crawl, msgspec.json.encode(CrawlRecord(old)), 0.0)
    await guide.seed(crawl, SeedsMessage([A]))
    rules = await guide.edit_rules(crawl, RulesEdit(unban=Bans(hosts=("*.c.org",))))
    assert rules.ban.hosts == ("c.*",)
    rules = await guide.edit_rules(crawl, RulesEdit(priority=PriorityEdit(hosts={"*.d.org": None})))
    assert rules.priority.hosts == {}
    await guide.close()
