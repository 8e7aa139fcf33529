"""Recorded webs: a fetch reveals what the page shows, and nothing else."""

from __future__ import annotations

import builtins
import json
import os
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from crawlguide.core.errors import ConfigError
from crawlguide.core.urls import canonical
from crawlguide.lab import web
from crawlguide.lab.pages import Link, Page
from crawlguide.lab.policies import oracle_full

if TYPE_CHECKING:
    from collections.abc import Callable

    from crawlguide.lab.pages import Web

WEBS = Path(__file__).resolve().parents[3] / "shared" / "data" / "webs"
HOME = "https://a.example/"
NODES: dict[str, Any] = {
    "url": [HOME, "https://a.example/with space", "https://a.example/copy", "https://a.example/moved"],
    "title": ["Home", "Space", "Space", "Moved"],
    "text": ["welcome", "the same text", "the same text", ""],
    "lang": ["en", "en", "en", ""],
    "size": [10, 20, 20, 0],
    "topics": [[], ["cats"], ["cats"], []],
    "n_in": [0, 2, 0, 0],
}
EDGES = {"src": [0, 0, 1, 3], "dst": [1, 3, 2, 1], "anchor": ["space", None, "copy", "(redirect)"], "pos": [2, 0, 0, 0]}
OUTSIDE = {
    "src": [0, 2],
    "url": ["https://b.example/gone", "https://A.example:443/#x"],
    "anchor": ["gone", "home"],
    "pos": [1, 0],
}
TASKS: list[dict[str, Any]] = [
    {"task": "t-cats", "topic": "cats", "relevant_ids": [1, 2], "seeds_near_id": [1], "seeds_far_id": [0], "more": True}
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, columns in (("nodes", NODES), ("edges", EDGES), ("external", OUTSIDE)):
        pq.write_table(pa.table(columns), tmp_path / f"{name}.parquet")
    (tmp_path / "tasks.json").write_text(json.dumps(TASKS))
    return tmp_path


def test_a_fetch_reveals_the_page_and_its_links_in_their_order(folder: Path) -> None:
    page = web.open(folder).fetch(HOME)
    assert (page.status, page.title, page.text, page.size, page.language) == (200, "Home", "welcome", 10, "en")
    assert page.links == (
        Link("https://a.example/moved", "", 0),
        Link("https://b.example/gone", "gone", 1),
        Link("https://a.example/with space", "space", 2),
    )


def test_a_page_says_nothing_of_topics_or_of_who_links_to_it() -> None:
    assert {field.name for field in fields(Page)}.isdisjoint({"topics", "n_in", "relevant", "src_label"})


def test_every_spelling_of_a_url_leads_to_its_page(folder: Path) -> None:
    its = web.open(folder)
    for url in NODES["url"]:
        assert its.fetch(canonical(url)).title == its.fetch(url).title != ""


@pytest.mark.parametrize("url", ["https://b.example/gone", "nonsense", "", "http://a.example/"])
def test_what_the_web_does_not_hold_is_a_dead_end(folder: Path, url: str) -> None:
    its = web.open(str(folder))
    assert its.fetch(url) == Page(url, 404)
    assert its.waste(url) == "dead"


def test_tasks_speak_of_canonical_urls(folder: Path) -> None:
    its = web.open(folder)
    (task,) = its.tasks()
    assert task.name == "cats"
    assert task.relevant == {"https://a.example/with%20space", "https://a.example/copy"}
    assert task.seeds == {"near": ("https://a.example/with%20space",), "far": (HOME,)}
    assert its.is_relevant(task, "https://a.example/with space")
    assert not its.is_relevant(task, HOME)
    assert not its.is_relevant(task, "https://b.example/gone")


def test_a_page_that_shows_what_another_shows_is_a_duplicate(folder: Path) -> None:
    its = web.open(folder)
    assert [its.waste(url) for url in NODES["url"]] == [None, None, "duplicate", None]
    assert its.fetch("https://a.example/copy").content_hash == its.fetch("https://a.example/with space").content_hash
    assert its.fetch("https://a.example/moved").content_hash is None


def test_reachable_follows_links_that_come_back_from_outside(folder: Path) -> None:
    its = web.open(folder)
    assert its.reachable(["https://a.example/copy"]) == {canonical(url) for url in NODES["url"]}
    assert its.reachable(["https://b.example/gone"]) == frozenset()


def test_a_redirect_that_was_recorded_is_one(folder: Path) -> None:
    more = NODES | {"status": [200, 200, 503, 301], "redirect": [None, None, None, "https://a.example/with%20space"]}
    pq.write_table(pa.table(more), folder / "nodes.parquet")
    its = web.open(folder)
    moved = "https://a.example/moved"
    assert its.fetch(moved) == Page(moved, 301, redirected_to="https://a.example/with%20space")
    assert its.fetch("https://a.example/copy") == Page("https://a.example/copy", 503)
    assert its.waste("https://a.example/copy") == "error"


@pytest.mark.parametrize("most", [1, 2, 3, 2_000])
def test_references_are_shown_the_links_that_a_crawl_would_see(
    folder: Path, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    monkeypatch.setattr(oracle_full, "MOST_LINKS", most)
    more = NODES | {"status": [200, 200, 200, 301], "redirect": [None, None, None, "https://a.example/copy"]}
    for nodes in (NODES, more):
        pq.write_table(pa.table(nodes), folder / "nodes.parquet")
        its = web.open(folder)
        inside = its.reachable([HOME])
        assert len(inside) == 4
        assert its.link_targets(inside, most) == oracle_full.by_fetching(its, inside)  # type: ignore[attr-defined]


def without_a_file(folder: Path) -> None:
    (folder / "edges.parquet").unlink()


def without_a_column(folder: Path) -> None:
    pq.write_table(pa.table({"url": [HOME], "title": [""]}), folder / "nodes.parquet")


def with_a_link_to_nowhere(folder: Path) -> None:
    pq.write_table(pa.table(EDGES | {"dst": [1, 3, 2, 9]}), folder / "edges.parquet")


def out_of_order(folder: Path) -> None:
    pq.write_table(pa.table(EDGES | {"src": [1, 0, 2, 3]}), folder / "edges.parquet")


def not_parquet(folder: Path) -> None:
    (folder / "nodes.parquet").write_bytes(b"something else")


def a_task_too_many(folder: Path) -> None:
    (folder / "tasks.json").write_text(json.dumps([TASKS[0] | {"relevant_ids": [4]}]))


def a_task_counted_from_the_end(folder: Path) -> None:
    (folder / "tasks.json").write_text(json.dumps([TASKS[0] | {"seeds_far_id": [-1]}]))


def a_page_without_an_address(folder: Path) -> None:
    pq.write_table(pa.table(NODES | {"url": [HOME, None, "x", "y"]}), folder / "nodes.parquet")


def rows_that_are_words(folder: Path) -> None:
    pq.write_table(pa.table(EDGES | {"dst": ["1", "3", "2", "1"]}), folder / "edges.parquet")


def places_left_out(folder: Path) -> None:
    pq.write_table(pa.table(OUTSIDE | {"pos": [1, None]}), folder / "external.parquet")


def tasks_that_are_none(folder: Path) -> None:
    (folder / "tasks.json").write_text('[{"task": 1}]')


def without_tasks(folder: Path) -> None:
    (folder / "tasks.json").unlink()


@pytest.mark.parametrize(
    ("harm", "wrong"),
    [
        (without_a_file, "expected a recorded web"),
        (without_a_column, "there is no text, lang, size"),
        (with_a_link_to_nowhere, "dst: expected rows of nodes.parquet, got 9"),
        (out_of_order, "src: expected rows of nodes.parquet in ascending order"),
        (not_parquet, "nodes.parquet: expected a Parquet file"),
        (a_task_too_many, "expected rows of nodes.parquet, from 0 to 3"),
        (a_task_counted_from_the_end, "expected rows of nodes.parquet, from 0 to 3"),
        (a_page_without_an_address, "nodes.parquet: url: row 1: expected a URL"),
        (rows_that_are_words, "edges.parquet: dst: expected whole numbers, got string"),
        (places_left_out, "external.parquet: pos: expected whole numbers, got int64 with 1 nulls"),
        (tasks_that_are_none, "tasks.json: expected a list of tasks"),
        (without_tasks, "tasks.json: cannot be read"),
    ],
)
def test_a_folder_that_is_no_web_says_what_is_wrong(folder: Path, harm: Callable[[Path], None], wrong: str) -> None:
    harm(folder)
    with pytest.raises(ConfigError) as caught:
        web.open(folder)
    assert wrong in caught.value.message


def test_without_pyarrow_one_is_told_how_to_get_it(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def hidden(name: str, *rest: Any) -> Any:
        if name.startswith("pyarrow"):
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr("crawlguide.lab.recorded.import_module", hidden)
    with pytest.raises(ConfigError, match=r"pip install '\.\[lab\]' in a clone"):
        web.open(folder)


def shared(name: str) -> Web:
    if not (WEBS / name).is_dir():
        pytest.skip(f"the recorded web {name} is not beside the checkout")
    return web.open(WEBS / name)


@pytest.mark.parametrize("name", ["docsweb", "debpkg", "wikispeedia"])
def test_a_recorded_web_opens_about_as_fast_as_its_files_and_says_what_its_tasks_say(name: str) -> None:
    began = os.times().user  # without what the system takes to find memory, which is as it likes
    its = shared(name)
    opened = os.times().user
    for file in ("nodes", "edges", "external"):
        pq.read_table(WEBS / name / f"{file}.parquet")
    assert opened - began < 5 * (os.times().user - opened) + 2
    entries = json.loads((WEBS / name / "tasks.json").read_text())
    assert [task.name for task in its.tasks()] == [entry["topic"] for entry in entries]
    for entry, task in zip(entries[:2], its.tasks(), strict=False):
        assert len(task.relevant) == entry["n_relevant"]
        for kind, seeds in task.seeds.items():
            reached = its.reachable(seeds)
            assert len(reached & task.relevant) >= entry[f"reachable_rel_{kind}"]
            assert entry[f"reachable_{kind}"] <= len(reached) <= entry[f"reachable_{kind}"] * 1.01
