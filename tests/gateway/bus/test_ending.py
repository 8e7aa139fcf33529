"""A server that ends tells of everything it has done."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import sys
from typing import TYPE_CHECKING, Any

import httpx
import msgspec
import pytest
from tests.gateway.bus.common import config, report, until

from crawlguide.core.config import BusOptions, ServerOptions
from crawlguide.core.errors import ConfigError
from crawlguide.gateway import doors, serve
from crawlguide.gateway.bus.messages import BusMessage, check
from crawlguide.gateway.bus.spool import Spool
from crawlguide.gateway.opening import MEMORY, open_guide
from crawlguide.gateway.service import Service

if TYPE_CHECKING:
    from pathlib import Path

NOWHERE = "nats://127.0.0.1:9"  # nobody listens
FETCHES = 3_000  # enough that the report is still in work when the server is told to end


def spooled(folder: Path) -> list[Any]:
    spool = Spool(folder, 1024 * 1024, lambda _: None)
    found = [msgspec.msgpack.decode(record, type=BusMessage) for record in spool.read(1_000)]
    spool.close()
    return [json.loads(one.body) for one in found]


@pytest.mark.parametrize("drain_s", [30, 0])
async def test_a_report_that_is_in_work_at_the_signal_is_told(tmp_path: Path, drain_s: int) -> None:
    """Whether it is answered in time, or nobody waits any more and the guide itself brings it to its end."""
    settings = config(BusOptions(nats=NOWHERE), tmp_path / "data", server=ServerOptions(port=0, drain_s=drain_s))
    guide, ready = open_guide(settings.store.data, settings), tmp_path / "ready.json"
    running = asyncio.create_task(serve.serve(guide, settings, ready))
    await until(ready.exists)
    url = f"http://127.0.0.1:{json.loads(ready.read_text())['port']}/v1/report"
    fetches = [{"url": f"https://a.example/{number}", "status": 200} for number in range(FETCHES)]
    async with httpx.AsyncClient(trust_env=False, timeout=60.0) as http:
        asked = asyncio.create_task(http.post(url, json=report("", report_id="r", fetches=fetches)))
        await until(lambda: guide._under_way._tasks)
        os.kill(os.getpid(), signal.SIGTERM)
        await running
        (answered,) = await asyncio.gather(asked, return_exceptions=True)
    assert not drain_s or (isinstance(answered, httpx.Response) and answered.json()["accepted"] == FETCHES)
    events = [event for event in spooled(tmp_path / "data" / "bus" / "nats") if event["event"] == "fetches"]
    assert sum(len(event["fetches"]) for event in events) == FETCHES


class MeetingDoor:
    """Closes when another one closes too."""

    meeting: asyncio.Barrier

    def __init__(self, _: Service) -> None:
        pass

    async def open(self) -> dict[str, Any]:
        return {}

    async def close(self) -> None:
        await self.meeting.wait()


class FailingDoor(MeetingDoor):
    async def close(self) -> None:
        raise ZeroDivisionError


class LastDoor(MeetingDoor):
    """Tells whether the others were closed before it was."""

    heard: list[bool]

    async def leave(self) -> None:
        await self.meeting.wait()

    async def close(self) -> None:
        self.heard.append(self.meeting.n_waiting == 0)


async def test_doors_close_together_whatever_becomes_of_one_and_those_that_tell_are_last(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(MeetingDoor, "meeting", asyncio.Barrier(3), raising=False)
    monkeypatch.setattr(LastDoor, "heard", [], raising=False)
    names = ("FailingDoor", "MeetingDoor", "LastDoor", "MeetingDoor")
    kinds = tuple(doors.DoorKind("", lambda _: True, __name__, name, "") for name in names)
    monkeypatch.setattr(doors, "DOORS", kinds)
    service = Service(open_guide(MEMORY, config(BusOptions())), config(BusOptions()))
    with caplog.at_level(logging.ERROR):
        async with asyncio.timeout(10), doors.opened(service) as opened:
            await opened.leave()
            assert LastDoor.heard == []
            LastDoor.meeting = asyncio.Barrier(1)
    assert LastDoor.heard == [True]
    assert [record.message for record in caplog.records] == ["a door did not close as it should"]
    await service.guide.close()


@pytest.mark.parametrize(
    ("options", "module", "package"),
    [
        (BusOptions(nats=NOWHERE), "crawlguide.gateway.bus.nats", "nats"),
        (BusOptions(kafka="127.0.0.1:9"), "crawlguide.gateway.bus.kafka", "confluent_kafka"),
    ],
)
async def test_a_package_that_is_not_installed_is_named(
    monkeypatch: pytest.MonkeyPatch, options: BusOptions, module: str, package: str
) -> None:
    for name in [name for name in sys.modules if name == module or name.startswith(f"{package}.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    settings = config(options)
    service = Service(open_guide(MEMORY, settings), settings)
    with pytest.raises(ConfigError, match=rf"bus: this door needs {package}\b.* pip install '\.\[bus\]' in a clone"):
        await doors.Doors(service).open()
    await service.guide.close()


def test_credentials_of_nats_need_a_package_of_their_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "nkeys", None)
    (tmp_path / "guide.creds").touch()
    with pytest.raises(ConfigError, match=r"bus\.nats_credentials: .*nkeys.* pip install nkeys"):
        check(BusOptions(nats=NOWHERE, nats_credentials=str(tmp_path / "guide.creds")))
