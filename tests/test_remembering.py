"""A strategy gets its crawl's notebook before anything else, and may begin with what another crawl has learned."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from crawlguide import Guide
from crawlguide.core.config import Config, CrawlsOptions
from crawlguide.core.errors import MalformedRequest
from crawlguide.core.types import Crawl
from crawlguide.guide.crawl.transfer import imported
from crawlguide.testing import ManualClock
from tests import tally
from tests.support import asked, fetched, tell

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CONFIG = Config(crawls=CrawlsOptions(plugins=(tally.PLUG,)))
POLICY = {"default_delay_s": 0, "max_per_host": 0, "traps": False}
GOOD, BAD = "https://good.org/", "https://bad.org/"


def definition(**strategy: Any) -> dict[str, Any]:
    return {"strategy": {"kind": tally.PLUG, **strategy}, "policy": POLICY}


def learner(guide: Guide, name: str) -> tally.Tally:
    loaded = guide._run(guide._guide._guide.crawls.get(Crawl("default", name), 0.0))
    found: Any = loaded.strategy.guarded.parts[0].predictor
    assert isinstance(found, tally.Tally)
    return found


def hosts(guide: Guide, name: str) -> dict[str, tuple[int, float]]:
    """What the learner of a crawl says of hosts: pages and what they paid."""
    sheet = learner(guide, name).hosts
    return {row["name"].decode(): (int(row["pages"]), float(row["paid"])) for row in sheet.rows[: sheet.used]}


@pytest.fixture(params=["memory", "folder"])
def guide(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Guide]:
    path = ":memory:" if request.param == "memory" else tmp_path / "data"
    with Guide.open(path, clock=ManualClock(), config=CONFIG) as opened:
        yield opened


def taught(guide: Guide, name: str = "first") -> None:
    """A crawl that has learned that one host pays and the other does not."""
    guide.define(name, definition())
    guide.seed(name, [GOOD, BAD])
    asked(guide, crawl_id=name)
    tell(guide, fetched(GOOD, GOOD + "1", relevance=1.0), fetched(BAD, BAD + "1", relevance=0.0), crawl_id=name)


LEARNED = {"good.org": (1, 1.0), "bad.org": (1, 0.0)}


def test_a_strategy_is_given_the_notebook_once_before_anything_else(guide: Guide) -> None:
    taught(guide)
    assert learner(guide, "first").remembered == 1
    assert hosts(guide, "first") == LEARNED


def test_a_new_definition_with_the_same_judge_leaves_the_learner_alone(guide: Guide) -> None:
    taught(guide)
    before = learner(guide, "first")
    guide.define("first", definition() | {"limits": {"max_pages": 100}})
    assert learner(guide, "first") is before
    assert before.remembered == 1


def test_another_judge_goes_on_from_the_same_notebook(guide: Guide) -> None:
    taught(guide)
    before = learner(guide, "first")
    guide.define("first", definition(shy=True))
    assert learner(guide, "first") is not before
    assert hosts(guide, "first") == LEARNED


def test_a_crawl_that_comes_back_after_it_was_deleted_has_learned_nothing(guide: Guide) -> None:
    taught(guide)
    guide.delete("first")
    guide.define("first", definition())
    assert hosts(guide, "first") == {}


# warm starts


def test_a_crawl_begins_with_what_another_has_learned(guide: Guide) -> None:
    taught(guide)
    guide.define("second", definition(warm_start="first"))
    assert hosts(guide, "second") == LEARNED
    assert learner(guide, "second").draws.rows[0] == 0  # what is not transferable stays behind
    tell(guide, fetched(GOOD, relevance=1.0), crawl_id="second")
    assert hosts(guide, "second")["good.org"] == (2, 2.0)
    assert hosts(guide, "first") == LEARNED


def test_a_crawl_that_has_learned_something_does_not_begin_again(guide: Guide) -> None:
    taught(guide)
    taught(guide, "second")
    tell(guide, fetched(GOOD, relevance=0.5, fetch_time="later"), crawl_id="second")
    before = hosts(guide, "second")
    guide.define("second", definition(warm_start="first"))
    assert hosts(guide, "second") == before


def test_a_crawl_may_be_defined_anew_after_the_one_it_began_with_is_gone(guide: Guide) -> None:
    taught(guide)
    guide.define("second", definition(warm_start="first"))
    guide.delete("first")
    guide.define("second", definition(warm_start="first") | {"limits": {"max_pages": 100}})
    assert hosts(guide, "second") == LEARNED


@pytest.mark.parametrize("name", ["nobody", "second", 7])
def test_a_crawl_cannot_begin_with_one_that_is_not_there(guide: Guide, name: Any) -> None:
    with pytest.raises(MalformedRequest, match=r"strategy\.warm_start: expected") as refused:
        guide.define("second", definition(warm_start=name))
    assert refused.value.field == "strategy.warm_start"
    assert "second" not in guide.stats()["crawls"]


@pytest.mark.parametrize(("there", "begun"), [(True, LEARNED), (False, {})])
def test_an_import_begins_warm_where_the_other_crawl_is_there(
    guide: Guide, there: bool, begun: dict[str, tuple[int, float]]
) -> None:
    if there:
        taught(guide)
    line = {"crawl": "second", "definition": definition(warm_start="first")}
    done = guide._run(imported(guide._guide._guide, Crawl("default", "second"), [msgspec.json.encode(line)]))
    assert (done.lines, done.skipped) == (1, ())
    assert hosts(guide, "second") == begun


def test_a_strategy_that_learns_nothing_cannot_begin_with_anything(guide: Guide) -> None:
    taught(guide)
    with pytest.raises(MalformedRequest, match=r"strategy\.warm_start: strategy 'breadth-first' learns nothing"):
        guide.define("second", {"strategy": {"kind": "breadth-first", "warm_start": "first"}})
