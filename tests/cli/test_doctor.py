"""doctor: what is well is ok, what is not says how it is mended."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import tomllib
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from crawlguide import Guide, __version__
from crawlguide.cli import doctor as command
from crawlguide.core import compiling
from crawlguide.core.config import BusOptions, Config, ServerOptions
from crawlguide.gateway import doctor
from crawlguide.gateway.access import api_keys
from crawlguide.gateway.access.credential import grants_of
from crawlguide.gateway.doctor import Finding
from crawlguide.store.embedded import format as formats
from crawlguide.store.embedded.disk import Disk
from crawlguide.store.embedded.keyspaces import DiskKeyspace
from tests.cli.conftest import Ended, done, refused
from tests.cli.test_crawling import free_port, stranger
from tests.gateway.conftest import serving

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.gateway.conftest import Served

ROOT = Path(__file__).resolve().parents[2]
NAMES = [
    "versions",
    "optional parts",
    "configuration",
    "data folder",
    "room",
    "disk",
    "clock",
    "server",
    "compiled loops",
]


def judged(finding: Finding, state: str, named: str) -> None:
    assert finding.state == state, finding
    assert named in finding.found
    assert bool(finding.mend) == (state != "ok")


def the_server(options: ServerOptions) -> Finding:
    (found,) = doctor.ports(options)
    return found


@pytest.fixture
def data() -> Path:
    """A folder that a guide has written."""
    with Guide.open("data") as guide:
        guide.seed("default", ["https://example.com/"])
    return Path("data")


@contextmanager
def locked(folder: Path) -> Iterator[int]:
    """Another process that has the folder open."""
    program = f"import fcntl; f = open({str(folder / 'LOCK')!r}, 'w'); fcntl.lockf(f, fcntl.LOCK_EX); print(1); input()"
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-uc", program], **pipes) as process:  # type: ignore[call-overload]
        process.stdout.readline()
        yield process.pid
        process.kill()


def test_all_is_well_here(here: Callable[..., Ended], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CRAWLGUIDE_SERVER_PORT", str(free_port()))
    told = json.loads(done(here("doctor", "--json")))
    assert [one["name"] for one in told["findings"]] == NAMES
    assert told["wrong"] == 0
    printed = done(here("doctor"))
    assert "data folder     crawlguide-data is not there yet" in printed
    assert list(Path().iterdir()) == []


def test_what_is_wrong_ends_with_one_and_says_how_to_mend_it(here: Callable[..., Ended]) -> None:
    Path("file").touch()
    printed = done(here("doctor", "--data", "file", "--url", f"http://127.0.0.1:{free_port()}"), 1)
    assert "wrong  data folder     file is a file\n                       -> name another folder" in printed
    assert "wrong  server " in printed
    assert printed.splitlines()[-1].startswith("2 wrong, ")


def test_a_bad_configuration_is_one_of_the_findings(here: Callable[..., Ended]) -> None:
    Path("crawlguide.toml").write_text("[server]\nprot = 1\n")
    printed = done(here("doctor"), 1)
    assert "did you mean 'server.port'?" in printed
    assert "config explain" in printed


def test_a_bad_url_is_wrong_usage(here: Callable[..., Ended]) -> None:
    refused(here("doctor", "--url", "localhost"), 2, "--url")


# the data folder


def test_a_folder_of_ours_says_its_format(data: Path) -> None:
    before = sorted(data.iterdir())
    judged(doctor.folder(data), "ok", f"data is of format {formats.VERSION}")
    assert sorted(data.iterdir()) == before


def test_a_folder_in_use_says_by_whom(data: Path) -> None:
    with locked(data) as process:
        judged(doctor.folder(data), "ok", f"data is in use by process {process} ({sys.executable} -uc import fcntl")
    assert doctor.in_use_by(data) is None


def test_a_folder_of_a_newer_version_is_wrong(data: Path) -> None:
    disk = Disk(data)
    folder = DiskKeyspace(disk, "default", doctor.FORMAT_KEY[:-6])
    folder.put(b"format", b'{"version": 99, "tables": {}}')
    disk.write({folder: folder.pending})
    disk.close()
    judged(doctor.folder(data), "wrong", "written by a newer crawlguide (format 99)")


def test_a_damaged_folder_is_wrong(data: Path) -> None:
    (data / "CURRENT").write_text("MANIFEST-999999\n")
    judged(doctor.folder(data), "wrong", "data")
    assert "restore" in doctor.folder(data).mend


def test_a_folder_of_somebody_elses_is_wrong() -> None:
    Path("theirs").mkdir()
    judged(doctor.folder(Path("theirs")), "ok", "is empty")
    Path("theirs", "letter").touch()
    judged(doctor.folder(Path("theirs")), "wrong", "holds other things")


@pytest.mark.parametrize(("path", "named"), [("/proc/nothing", "cannot be written"), ("n" * 300, "File name too long")])
def test_a_folder_that_cannot_be_made_is_wrong(path: str, named: str) -> None:
    judged(doctor.folder(Path(path)), "wrong", named)


def test_memory_is_warned_of(here: Callable[..., Ended]) -> None:
    printed = done(here("doctor", "--data", ":memory:", "--url", "http://127.0.0.1:1"), 1)
    assert "warn   data folder     :memory: forgets all at the end" in printed


# the disk, the server, the rest


def test_the_disk_is_measured_and_nothing_is_left(tmp_path: Path) -> None:
    assert len(doctor.fsyncs_ms(tmp_path)) == doctor.FSYNCS
    assert doctor.disk(tmp_path / "new").state in {"ok", "warn"}
    assert doctor.room(tmp_path / "new").found.endswith("free on its disk")
    assert list(tmp_path.iterdir()) == []


def test_a_disk_is_judged_by_how_long_reports_wait() -> None:
    judged(doctor.waits([1.0] * 19 + [90.0]), "ok", "fsync takes 1.00 ms, the slowest of 20 took 90.00 ms")
    judged(doctor.waits([25.0] * 20), "warn", "25.00 ms")
    judged(doctor.waits([0.001] * 20), "warn", "0.00 ms")


def test_a_free_port_is_well() -> None:
    port = free_port()
    judged(the_server(ServerOptions(port=port)), "ok", f"127.0.0.1:{port} is free")
    judged(the_server(ServerOptions(port=0)), "ok", "a free port is picked")


def test_a_guide_that_answers_is_well(served: Served) -> None:
    judged(the_server(ServerOptions(port=served.port)), "ok", f"crawlguide {__version__} answers at {served.url}")
    judged(doctor.answers(served.url), "ok", "crawls ")


def test_a_port_that_somebody_else_holds_is_wrong() -> None:
    with stranger() as url:
        port = int(url.rpartition(":")[2])
        judged(the_server(ServerOptions(port=port)), "wrong", "Address already in use")
        judged(doctor.answers(url), "wrong", "no crawlguide server")


def test_a_server_that_should_answer_and_does_not_is_wrong() -> None:
    judged(doctor.answers(f"http://127.0.0.1:{free_port()}"), "wrong", "cannot be reached")


def test_every_door_that_is_configured_is_looked_at(tmp_path: Path) -> None:
    """Free, then with a server, then with those of a guide taken for each other."""
    one, other = free_port(), free_port()
    options = ServerOptions(port=0, grpc=True, frontier=True, grpc_port=one, frontier_port=other)
    assert [(one.name, one.state) for one in doctor.ports(options)] == [
        ("server", "ok"),
        ("gRPC", "ok"),
        ("URLFrontier", "ok"),
    ]
    with serving(tmp_path, options=["--grpc-port", str(one), "--frontier-port", str(other)]):
        _, grpc, urlfrontier = doctor.ports(options)
        judged(grpc, "ok", f"crawlguide {__version__} answers at grpc://127.0.0.1:{one}")
        judged(urlfrontier, "ok", f"clients of URLFrontier are answered at 127.0.0.1:{other}")
        crossed = ServerOptions(port=0, grpc=True, frontier=True, grpc_port=other, frontier_port=one)
        _, grpc, urlfrontier = doctor.ports(crossed)
        judged(grpc, "wrong", "does not know this call")
        judged(urlfrontier, "wrong", "does not know this call")
        assert "--frontier-port" in urlfrontier.mend


def test_a_guide_that_wants_a_credential_is_not_taken_for_somebody_else(tmp_path: Path) -> None:
    api_keys.create(tmp_path / "data" / "access" / api_keys.FILE, grants_of(["read"]), "default")
    with serving(tmp_path, tmp_path / "data") as server:
        judged(the_server(ServerOptions(port=server.port)), "warn", "a guide answers at")


def test_a_bus_is_reached_or_not(here: Callable[..., Ended], monkeypatch: pytest.MonkeyPatch) -> None:
    nobody = free_port()
    with socket.create_server(("127.0.0.1", 0)) as bus:
        port = bus.getsockname()[1]
        there = BusOptions(nats=f"nats://me:secret@127.0.0.1:{port}", kafka=f"127.0.0.1:{port},127.0.0.1:{nobody}")
        nats, kafka = doctor.buses(there)
    judged(nats, "ok", f"127.0.0.1:{port} can be reached")
    judged(kafka, "warn", f"127.0.0.1:{nobody} cannot be reached (Connection refused)")
    monkeypatch.setenv("CRAWLGUIDE_SERVER_PORT", "0")
    monkeypatch.setenv("CRAWLGUIDE_BUS_NATS", f"nats://127.0.0.1:{nobody}")
    printed = done(here("doctor"), 1)
    assert f"wrong  NATS            127.0.0.1:{nobody} cannot be reached" in printed
    judged(doctor.buses(BusOptions(kafka="nonsense"))[0], "wrong", "bus.kafka: expected HOST:PORT")
    judged(doctor.buses(BusOptions(nats="nats://127.0.0.1:99999"))[0], "wrong", "bus.nats: expected nats://HOST:PORT")


def test_a_door_whose_parts_are_missing_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.metadata.requires", lambda _: ['no-such-package>=1; extra == "grpc"'])
    assert command.needed(Config()) == []
    (found,) = command.needed(Config(server=ServerOptions(grpc=True)))
    judged(found, "wrong", "no-such-package")
    assert "pip install '.[grpc]'" in found.mend


def test_versions_are_of_what_crawlguide_needs() -> None:
    needs = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    assert set(command.SHOWN) <= {need.partition(">")[0] for need in needs}
    judged(command.versions(), "ok", f"crawlguide {__version__}, python 3.")
    judged(command.optional(), "ok", "train")


def test_a_clock_behind_the_folder_is_warned_of(tmp_path: Path) -> None:
    log = tmp_path / "000004.log"
    log.touch()
    judged(command.clock(tmp_path), "ok", " UTC")
    later = time.time() + 3_600
    os.utime(log, (later, later))
    judged(command.clock(tmp_path), "warn", "s before the last write")


def test_compiled_loops_need_a_place(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    judged(command.compiled(Config()), "ok", "kept in")
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    judged(command.compiled(Config()), "ok", "0 kept in")
    judged(command.compiled(Config()), "ok", "the first start compiles")
    compiling.remember(compiling.needed_by(Config()))
    assert "the first start" not in command.compiled(Config()).found
    for variable in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.setenv(variable, "/proc/nothing")
    monkeypatch.setattr(compiling, "kernel_modules", lambda: ["some.module"])
    monkeypatch.setattr(compiling, "PACKAGE", Path("/proc/nothing"))
    judged(command.compiled(Config()), "warn", "every start compiles")
    assert "NUMBA_CACHE_DIR" in command.compiled(Config()).mend
