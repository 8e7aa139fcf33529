"""What the spool promises."""

from __future__ import annotations

import resource
import shutil
from typing import TYPE_CHECKING

import pytest

from crawlguide.core.types import Crawl
from crawlguide.gateway.bus.events import Events
from crawlguide.gateway.bus.spool import SMALLEST_SEGMENT, Spool

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MIB = 1024 * 1024


class Opening:
    """A spool of a folder, opened again and again."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.lost, self.all = folder, 0, list[Spool]()

    def __call__(self, most: int = 64 * MIB) -> Spool:
        self.all.append(Spool(self.folder, most, self._lose))
        return self.all[-1]

    def _lose(self, number: int) -> None:
        self.lost += number


@pytest.fixture
def opening(tmp_path: Path) -> Iterator[Opening]:
    found = Opening(tmp_path / "spool")
    yield found
    for spool in found.all:
        spool.close()


def drained(spool: Spool, at_once: int = 7) -> list[bytes]:
    found: list[bytes] = []
    while records := spool.read(at_once):
        found += records
        spool.delivered(records)
    return found


def numbered(number: int, size: int = 10) -> list[bytes]:
    return [f"{one}".encode().ljust(size) for one in range(number)]


def test_what_was_appended_is_read_in_order(opening: Opening) -> None:
    spool = opening()
    for first in range(0, 100, 10):
        spool.append(numbered(100)[first : first + 10])
    assert spool.waiting == 100
    assert drained(spool) == numbered(100)
    assert (spool.waiting, spool.waiting_bytes, spool.read(1)) == (0, 0, [])


def test_what_is_read_and_not_delivered_is_read_again(opening: Opening) -> None:
    spool = opening()
    spool.append(numbered(3))
    assert spool.read(2) == spool.read(2) == numbered(3)[:2]


def test_another_process_goes_on_where_one_was_killed(opening: Opening) -> None:
    first = opening()
    first.append(numbered(10))
    first.delivered(first.read(4))  # and it is never closed
    second = opening()
    second.append([b"new"])
    assert drained(second) == [*numbered(10)[4:], b"new"]
    assert drained(opening()) == []
    assert opening.lost == 0


@pytest.mark.parametrize("cut", [1, 9, 17])
def test_a_torn_tail_is_cut_off_and_the_rest_is_there(opening: Opening, cut: int) -> None:
    spool = opening()
    spool.append(numbered(5))
    spool.close()
    (file,) = opening.folder.glob("*.events")
    file.write_bytes(file.read_bytes()[:-cut])
    again = opening()
    again.append([b"new"])
    assert drained(again) == [*numbered(4), b"new"]
    assert opening.lost == 1


def test_nothing_behind_a_damaged_record_is_believed(opening: Opening) -> None:
    spool = opening()
    spool.append(numbered(5))
    spool.close()
    (file,) = opening.folder.glob("*.events")
    content = bytearray(file.read_bytes())
    content[2 * 18 + 9] ^= 1
    file.write_bytes(content)
    assert drained(opening()) == numbered(2)
    assert opening.lost == 1


def test_a_full_spool_loses_the_oldest_and_counts_them(opening: Opening) -> None:
    spool = opening(MIB)
    records = numbered(3_000, 1_000)
    for first in range(0, 3_000, 10):
        spool.append(records[first : first + 10])
        assert sum(file.stat().st_size for file in opening.folder.glob("*.events")) <= MIB
    left = drained(spool)
    assert left == records[3_000 - len(left) :]
    assert len(left) > 800
    assert opening.lost == 3_000 - len(left)


def test_delivered_files_are_removed(opening: Opening) -> None:
    spool = opening(MIB)
    for _ in range(5):
        spool.append([b"x" * SMALLEST_SEGMENT])
    drained(spool)
    assert len(list(opening.folder.glob("*.events"))) == 1


def test_what_had_to_go_while_it_was_delivered_moves_nothing(opening: Opening) -> None:
    spool = opening(MIB)
    spool.append(numbered(2))
    sent = spool.read(2)
    for _ in range(20):
        spool.append([b"x" * SMALLEST_SEGMENT])
    before = spool.waiting
    spool.delivered(sent)
    assert spool.waiting == before


def test_a_disk_that_takes_half_of_it_takes_nothing(opening: Opening) -> None:
    spool, limit = opening(), resource.getrlimit(resource.RLIMIT_FSIZE)
    spool.append(numbered(2))
    resource.setrlimit(resource.RLIMIT_FSIZE, (50, limit[1]))
    try:
        with pytest.raises(OSError, match="No space left"):
            spool.append(numbered(2))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    spool.append([b"new"])
    assert drained(spool) == [*numbered(2), b"new"]
    assert (spool.waiting, opening.lost) == (0, 0)


def test_what_is_damaged_while_it_waits_is_lost_and_counted_and_holds_up_nothing(opening: Opening) -> None:
    spool = opening(MIB)
    spool.append([*numbered(2), b"x" * SMALLEST_SEGMENT])
    spool.append([b"next file"])
    first = min(opening.folder.glob("*.events"))
    first.write_bytes(first.read_bytes()[:20] + b"damaged")
    assert drained(spool) == [numbered(1)[0], b"next file"]
    assert (spool.waiting, opening.lost) == (0, 2)


@pytest.mark.parametrize("all_of_it", [False, True])
def test_a_file_that_is_gone_is_lost_and_counted_and_holds_up_nothing(opening: Opening, all_of_it: bool) -> None:
    spool = opening(MIB)
    spool.append(numbered(3))
    spool.delivered(spool.read(1))
    shutil.rmtree(opening.folder) if all_of_it else next(opening.folder.glob("*.events")).unlink()
    assert (spool.read(7), opening.lost) == ([], 2)
    for new in (b"new", b"newer"):
        spool.append([new])
    assert drained(spool) == [b"new", b"newer"]
    spool.append([b"last"])
    assert drained(opening()) == [b"last"]


def test_what_comes_after_all_files_are_gone_is_no_older_than_they_were(opening: Opening) -> None:
    spool = opening(MIB)
    for _ in range(3):
        spool.append([b"x" * SMALLEST_SEGMENT])
        drained(spool)
    for file in opening.folder.glob("*.events"):
        file.unlink()
    opening().append([b"new"])
    assert drained(opening()) == [b"new"]


def test_zeros_at_the_end_of_a_file_are_no_records(opening: Opening) -> None:
    """As a loss of power leaves them: eight of them are the head of an empty record with its right checksum."""
    opening().append(numbered(3))
    (file,) = opening.folder.glob("*.events")
    with file.open("ab") as end:
        end.write(bytes(64))
    assert drained(opening()) == numbered(3)


def test_a_file_of_another_name_is_left_alone(opening: Opening) -> None:
    opening().append(numbered(2))
    (opening.folder / "mine.events").write_text("not ours")
    assert drained(opening()) == numbered(2)


async def test_a_spool_that_takes_nothing_is_said_once_though_another_takes_all(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    lost: list[int] = []
    bad, good = (Spool(tmp_path / name, MIB, lost.append) for name in ("bad", "good"))
    (tmp_path / "bad").rmdir()
    (tmp_path / "bad").touch()
    events = Events([bad, good], lambda: None, lost.append)
    for _ in range(3):
        events.changed(Crawl("default", "news"), "paused", 0.0)
        events.write()
    assert (lost, good.waiting) == ([1, 1, 1], 3)
    assert [record.event for record in caplog.records if hasattr(record, "event")] == ["bus_events_lost"]
    good.close()
