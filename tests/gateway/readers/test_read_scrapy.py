"""A Scrapy JOBDIR: written by queuelib as Scrapy does it, read without changing or running anything in it."""

from __future__ import annotations

import hashlib
import marshal
import os
import pickle
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from queuelib.queue import FifoDiskQueue, FifoSQLiteQueue, LifoDiskQueue

from crawlguide.core.errors import DataError
from crawlguide.core.messages import SeedMessage
from crawlguide.gateway.readers import Skipped, _queues, scrapy

if TYPE_CHECKING:
    from collections.abc import Callable

Kind = type[FifoDiskQueue] | type[LifoDiskQueue] | type[FifoSQLiteQueue]
SLOT = f"a.example-{hashlib.md5(b'a.example').hexdigest()}"


def request(url: str, **changes: Any) -> dict[str, Any]:
    """As `Request.to_dict` of Scrapy 2.19 writes it."""
    return {
        "url": url, "callback": "parse_page", "errback": None, "headers": {b"Referer": [b"https://a.example/"]},
        "body": b"", "cookies": {"a": "b"}, "meta": {"depth": 2, "tags": {1, 2}, ("a", 1): (1.5, None, True)},
        "encoding": "utf-8", "flags": [], "cb_kwargs": {}, "dont_filter": False, "method": "GET", "priority": 0,
    } | changes  # fmt: skip


def pickled(value: object) -> bytes:
    return pickle.dumps(value, protocol=4)


def push(folder: Path, name: str, *contents: bytes, kind: Kind = LifoDiskQueue) -> Path:
    path = folder / "requests.queue" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    queue = kind(path)
    for content in contents:
        queue.push(content)
    queue.close()
    return path


def read(folder: Path) -> list[SeedMessage | Skipped]:
    return list(scrapy.read(folder))


def urls(folder: Path) -> list[str]:
    return [one.url for one in read(folder) if isinstance(one, SeedMessage)]


def state(folder: Path) -> list[tuple[str, int, bytes]]:
    found = sorted(folder.rglob("*"))
    return [(str(path), path.stat().st_mtime_ns, path.read_bytes() if path.is_file() else b"") for path in found]


def test_a_waiting_request_is_a_seed_with_its_priority_and_callback(tmp_path: Path) -> None:
    push(tmp_path, "-7", pickled(request("https://a.example/")))
    assert read(tmp_path) == [
        SeedMessage("https://a.example/", metadata={"scrapy_priority": 7, "callback": "parse_page"})
    ]


def test_a_request_for_the_default_callback_names_none(tmp_path: Path) -> None:
    push(tmp_path, "0", pickled(request("https://a.example/", callback=None)))
    assert read(tmp_path) == [SeedMessage("https://a.example/", metadata={"scrapy_priority": 0})]


@pytest.mark.parametrize("packed", [pickled, marshal.dumps, pickle.dumps], ids=["pickle 4", "marshal", "newest pickle"])
@pytest.mark.parametrize("kind", [LifoDiskQueue, FifoDiskQueue])
def test_every_kind_of_disk_queue_is_read_in_the_order_in_which_it_would_be_served(
    tmp_path: Path, kind: Kind, packed: Callable[[object], bytes]
) -> None:
    pages = [f"https://a.example/{number}" for number in range(300)]
    push(tmp_path, "0", *(packed(request(page)) for page in pages), kind=kind)
    assert urls(tmp_path) == (pages if kind is FifoDiskQueue else pages[::-1])


def test_slots_and_start_requests_are_read(tmp_path: Path) -> None:
    push(tmp_path, f"{SLOT}/0", pickled(request("https://a.example/1")))
    push(tmp_path, f"{SLOT}/0s", pickled(request("https://a.example/2")), kind=FifoDiskQueue)
    push(tmp_path, "-1s", pickled(request("https://b.example/")), kind=FifoDiskQueue)
    (tmp_path / "requests.queue" / "active.json").write_text('{"a.example": [0]}')
    assert sorted(urls(tmp_path)) == ["https://a.example/1", "https://a.example/2", "https://b.example/"]


def test_priorities_become_ranks_from_0_to_1(tmp_path: Path) -> None:
    for priority in (-1000, 0, 3):
        push(tmp_path, str(-priority), pickled(request(f"https://a.example/{priority}")))
    seeds = [one for one in read(tmp_path) if isinstance(one, SeedMessage)]
    assert [(one.url, one.priority) for one in seeds] == [
        ("https://a.example/3", 1.0),
        ("https://a.example/0", 0.5),
        ("https://a.example/-1000", 0.0),
    ]


def test_one_priority_alone_ranks_nothing(tmp_path: Path) -> None:
    push(tmp_path, "-5", pickled(request("https://a.example/1")))
    push(tmp_path, "-5s", pickled(request("https://a.example/2")), kind=FifoDiskQueue)
    assert [one.priority for one in read(tmp_path) if isinstance(one, SeedMessage)] == [None, None]


def test_what_was_taken_from_a_fifo_queue_is_not_read_again(tmp_path: Path) -> None:
    path = tmp_path / "requests.queue" / "0"
    queue = FifoDiskQueue(path, chunksize=2)
    for number in range(7):
        queue.push(pickled(request(f"https://a.example/{number}")))
    for _ in range(3):
        queue.pop()
    queue.close()
    assert urls(tmp_path) == [f"https://a.example/{number}" for number in range(3, 7)]


def test_what_was_taken_from_a_lifo_queue_is_not_read_again(tmp_path: Path) -> None:
    path = push(tmp_path, "0", *(pickled(request(f"https://a.example/{number}")) for number in range(3)))
    queue = LifoDiskQueue(path)
    queue.pop()
    queue.close()
    assert urls(tmp_path) == ["https://a.example/1", "https://a.example/0"]


def test_reading_changes_nothing(tmp_path: Path) -> None:
    push(tmp_path, "0", pickled(request("https://a.example/1")))
    push(tmp_path, f"{SLOT}/-1", pickled(request("https://a.example/2")), kind=FifoDiskQueue)
    before = state(tmp_path)
    assert len(read(tmp_path)) == 2
    assert state(tmp_path) == before


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"method": "POST", "body": b"a=1"}, "method: expected GET, got 'POST'"),
        ({"method": "HEAD"}, "method: expected GET, got 'HEAD'"),
        ({"method": ["GET"]}, "method: expected GET, got a list"),
        ({"body": b"a=1"}, "body: expected none, got one"),
        ({"url": "data:,start"}, "scheme: expected http or https, got 'data'"),
        ({"url": None}, "expected a request with a url, got other data"),
        ({"callback": "x" * 5_000}, "metadata: expected at most 4096 bytes, got 5035"),
        ({"meta": {"since": datetime(2025, 1, 1)}}, "pickle: expected plain data, got 'datetime.datetime'"),
    ],
)
def test_a_request_that_its_url_does_not_tell_is_skipped(tmp_path: Path, changes: dict[str, Any], reason: str) -> None:
    good = pickled(request("https://a.example/good"))
    push(tmp_path, "0", good, pickled(request("https://a.example/") | changes), good)
    found = read(tmp_path)
    assert found[1] == Skipped("0, entry 2", reason)
    assert len(urls(tmp_path)) == 2


class Malicious:
    """Unpickled, it would create a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[str, int]]:
        return os.open, (str(self.path), os.O_CREAT | os.O_WRONLY)


@pytest.mark.parametrize("protocol", range(6))
@pytest.mark.parametrize("inside", [False, True])
def test_nothing_in_a_pickle_is_run(tmp_path: Path, protocol: int, inside: bool) -> None:
    canary = tmp_path / "canary"
    evil: Any = Malicious(canary)
    push(tmp_path, "0", pickle.dumps(request("https://a.example/", meta=evil) if inside else evil, protocol=protocol))
    (found,) = read(tmp_path)
    assert isinstance(found, Skipped)
    assert not canary.exists()
    pickle.loads(pickle.dumps(evil, protocol=protocol))
    assert canary.exists(), "the pickle would not have done anything"


def test_an_sqlite_queue_is_skipped_by_name(tmp_path: Path) -> None:
    push(tmp_path, "0", pickled(request("https://a.example/")), kind=FifoSQLiteQueue)
    assert read(tmp_path) == [
        Skipped("0, entry 1", "expected a disk queue, got an SQLite queue, which is not read here")
    ]


def test_a_request_that_is_too_long_is_skipped(tmp_path: Path) -> None:
    contents = [pickled(request("https://a.example/", meta={"page": "x" * size})) for size in (1, 2 * 1024 * 1024, 2)]
    push(tmp_path, "0", *contents)
    push(tmp_path, "0s", *contents, kind=FifoDiskQueue)
    found = read(tmp_path)
    assert [type(one) for one in found] == [SeedMessage, Skipped, SeedMessage] * 2
    assert found[1] == Skipped(
        "0, entry 2", f"expected a request of at most {_queues.MAX_RECORD_BYTES} bytes, got more"
    )


def test_a_crawl_that_was_killed_still_gives_what_it_wrote(tmp_path: Path) -> None:
    push(tmp_path, "0", *(pickled(request(f"https://a.example/{number}")) for number in range(2)))
    push(tmp_path, "0s", pickled(request("https://a.example/2")), kind=FifoDiskQueue)
    lifo, fifo = tmp_path / "requests.queue" / "0", tmp_path / "requests.queue" / "0s"
    lifo.write_bytes(bytes(4) + lifo.read_bytes()[4:])
    (fifo / "info.json").unlink()
    assert sorted(urls(tmp_path)) == [f"https://a.example/{number}" for number in range(3)]


@pytest.mark.parametrize("kind", [LifoDiskQueue, FifoDiskQueue])
def test_a_queue_that_is_cut_off_does_not_stop_the_others(tmp_path: Path, kind: Kind) -> None:
    path = push(tmp_path, "-1", *(pickled(request(f"https://a.example/{number}")) for number in range(2)), kind=kind)
    push(tmp_path, "0", pickled(request("https://b.example/")))
    chunk = path / "q00000" if path.is_dir() else path
    chunk.write_bytes(chunk.read_bytes()[:-6])
    found = read(tmp_path)
    assert any(isinstance(one, Skipped) and "damaged" in one.why for one in found)
    assert "https://b.example/" in urls(tmp_path)


def test_something_else_among_the_queues_is_skipped_by_name(tmp_path: Path) -> None:
    push(tmp_path, "0", pickled(request("https://a.example/")))
    (tmp_path / "requests.queue" / "no\ntes.txt").write_text("mine")
    os.mkfifo(tmp_path / "requests.queue" / "-3")  # to open it would wait for ever
    skipped = [one.where for one in read(tmp_path) if isinstance(one, Skipped)]
    assert sorted(skipped) == ["-3", "no\\ntes.txt"]


def test_an_empty_jobdir_has_no_seeds(tmp_path: Path) -> None:
    (tmp_path / "requests.queue").mkdir()
    assert read(tmp_path) == []


@pytest.mark.parametrize("name", ["", "nowhere"])
def test_a_folder_that_is_no_jobdir_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(DataError, match=r"expected a Scrapy JOBDIR with requests\.queue in it"):
        read(tmp_path / name)
