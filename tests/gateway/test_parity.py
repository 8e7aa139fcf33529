"""One set of methods: a guide of one's own and one that runs elsewhere, in scripts and in asyncio programs."""

from __future__ import annotations

import asyncio
import inspect
from typing import TYPE_CHECKING, Any

import pytest
from tests.gateway.conftest import Served

from crawlguide import AsyncClient, AsyncGuide, Client, Guide
from crawlguide.core.errors import MalformedRequest, NotFound
from crawlguide.store.tables.rows import STATES

if TYPE_CHECKING:
    from collections.abc import Iterator

METHODS = (
    "ask", "tell", "define", "crawl", "patch", "delete", "seed", "pause", "resume", "release", "rules", "edit_rules",
    "stats", "crawls", "explain", "urls", "export", "close",
)  # fmt: skip
KINDS = (Guide, AsyncGuide, Client, AsyncClient)
FREE = {"policy": {"robots": "ignore", "default_delay_s": 0, "max_per_host": 0}}
A, B = "https://a.example/", "https://b.example/"


def public(kind: type) -> set[str]:
    return {name for name in dir(kind) if not name.startswith("_")}


@pytest.mark.parametrize("kind", KINDS)
def test_these_methods_and_no_others(kind: type) -> None:
    assert public(kind) - {"open"} == set(METHODS)


@pytest.mark.parametrize("name", METHODS)
def test_a_method_takes_the_same_everywhere(name: str) -> None:
    def taken(kind: type) -> list[tuple[str, Any]]:
        return [(one.name, one.default) for one in inspect.signature(getattr(kind, name)).parameters.values()]

    assert [taken(kind) for kind in KINDS] == [taken(Guide)] * len(KINDS)


class Awaited:
    """An object whose methods are awaited for us, and whose iterators are read to their end."""

    def __init__(self, kind: Any, *words: Any) -> None:
        self._runner = asyncio.Runner()
        self._inner = kind(*words)

    def close(self) -> None:
        self._runner.run(self._inner.close())
        self._runner.close()

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._inner, name)

        async def listed(items: Any) -> list[Any]:
            return [item async for item in items]

        def call(*words: Any) -> Any:
            given = method(*words)
            return iter(self._runner.run(listed(given))) if inspect.isasyncgen(given) else self._runner.run(given)

        return call


@pytest.fixture(params=["Guide", "AsyncGuide", "Client", "AsyncClient"])
def guide(request: pytest.FixtureRequest, served: Served) -> Iterator[Any]:
    ways: dict[str, Any] = {
        "Guide": Guide.open,
        "AsyncGuide": lambda: Awaited(AsyncGuide.open),
        "Client": lambda: Client(served.url),
        "AsyncClient": lambda: Awaited(AsyncClient, served.url),
    }
    made = ways[request.param]()
    yield made
    made.close()


def asking(crawl: str, max_urls: int = 1) -> dict[str, Any]:
    return {"mcp_version": "2025-11", "crawler_id": "c-1", "crawl_id": crawl, "budget": {"max_urls": max_urls}}


def test_a_whole_life_through_each_of_them(guide: Any, crawl: str) -> None:
    assert guide.define(crawl, FREE) is True
    assert guide.seed(crawl, [A, B]) == 2
    assert len(guide.ask(asking(crawl, 5))["assigned_urls"]) == 2
    assert guide.release(crawl, "c-1") == 2
    assert guide.release(crawl, "c-1") == 0
    rules = guide.edit_rules(crawl, {"ban": {"hosts": ["a.example"]}, "priority": {"urls": {B: 0.9}}})
    assert guide.rules(crawl) == rules
    assert rules["ban"] == {"urls": [], "hosts": ["a.example"], "patterns": []}
    assert [one["url"] for one in guide.urls(crawl, "dropped")] == [A]
    assert {one["url"]: one["state"] for one in guide.urls(crawl)} == {A: "dropped", B: "queued"}
    assert [one["url"] for one in guide.urls(crawl, None, "b.example")] == [B]
    assert guide.explain(crawl, B)["rules"] == ["rules.priority.urls sets its priority to 0.9"]
    changed = guide.patch(crawl, {"limits": {"max_pages": 7}})
    assert (changed["crawl_id"], changed["state"]) == (crawl, "running")
    assert guide.crawl(crawl) == changed
    assert changed["definition"]["limits"]["max_pages"] == 7
    assert changed["definition"]["rules"] == rules
    lines = list(guide.export(crawl))
    assert lines[0].startswith(b'{"crawl":"%b"' % crawl.encode())
    assert len(lines) == 3
    assert not any(line.endswith(b"\n") for line in lines)
    guide.delete(crawl)
    with pytest.raises(NotFound):
        guide.stats(crawl)


@pytest.mark.parametrize(
    "name", ["crawl", "patch", "delete", "release", "rules", "edit_rules", "explain", "urls", "export"]
)
def test_none_of_these_makes_a_crawl(guide: Any, crawl: str, name: str) -> None:
    words: dict[str, Any] = {"patch": {}, "release": "c-1", "edit_rules": {}, "explain": A}
    given = [words[name]] if name in words else []
    with pytest.raises(NotFound):
        list(getattr(guide, name)(crawl, *given) or ())
    assert crawl not in guide.stats()["crawls"]


@pytest.mark.parametrize("name", ["", "a/b", "x" * 201, "\ud800", None, 7])
def test_what_is_no_name_of_a_crawl_is_refused_alike(guide: Any, name: Any) -> None:
    with pytest.raises(MalformedRequest) as wrong:
        guide.rules(name)
    assert wrong.value.field == "crawl_id"


def test_a_state_that_is_none_is_refused_alike(guide: Any, crawl: str) -> None:
    guide.define(crawl, FREE)
    with pytest.raises(MalformedRequest) as wrong:
        list(guide.urls(crawl, "gone"))
    assert wrong.value.field == "state"
    assert all(state in wrong.value.message for state in STATES)


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        ({"ban": {"patterns": ["("]}}, "ban.patterns[0]: expected an RE2 pattern, got '(': missing ): (?:()"),
        ({"ban": {"urls": 7}}, "ban.urls: expected a list of at most 10000 URLs, got 7"),
        ({"ban": {"url": []}}, "ban.url: unknown field; expected one of hosts, patterns, urls"),
        ({"priority": {"hosts": {"a": "x"}}}, 'priority.hosts[...]: expected a number from 0 to 100, got "x"'),
    ],
)
def test_a_wrong_edit_is_refused_in_the_same_words(guide: Any, crawl: str, edit: Any, message: str) -> None:
    guide.define(crawl, FREE)
    with pytest.raises(MalformedRequest) as wrong:
        guide.edit_rules(crawl, edit)
    assert wrong.value.message == message


def test_an_iterator_that_is_left_early_disturbs_nobody(guide: Any, crawl: str) -> None:
    guide.define(crawl, FREE)
    guide.seed(crawl, [f"{A}{number}" for number in range(1_500)])
    assert next(guide.urls(crawl))["url"].startswith(A)
    assert next(guide.export(crawl))
    assert guide.stats(crawl)["crawls"][crawl]["queued"] == 1_500
