"""A fleet on another machine, by the commands of the README: two machines are two network namespaces with a wire.

It takes root and iproute2, which `make test` installs.
"""

from __future__ import annotations

import datetime
import ipaddress
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID
from tests.gateway.conftest import ENDS_WITHIN_S, NO_ROBOTS, READY_WITHIN_S, SCRIPT

if TYPE_CHECKING:
    from collections.abc import Iterator

README = (Path(__file__).parents[3] / "README.md").read_text()
SERVER, CRAWLER = "10.77.0.1", "10.77.0.2"


def commands() -> list[str]:
    """What the README says, line by line."""
    section = README.partition("## A fleet on other machines")[2].partition("\n## ")[0]
    return [line for block in re.findall(r"```\n(.*?)```", section, re.DOTALL) for line in block.splitlines()]


def issued(folder: Path) -> None:
    """An authority of our own, and the certificate of the server."""
    now, authority, own = datetime.datetime.now(datetime.UTC), ec.generate_private_key(ec.SECP256R1()), None
    root = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "an authority")])
    for name, subject in (
        ("authority", root),
        ("guide", x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "guide")])),
    ):
        own = authority if name == "authority" else ec.generate_private_key(ec.SECP256R1())
        made = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(root)
            .public_key(own.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(hours=1))
            .not_valid_after(now + datetime.timedelta(days=1))
            .add_extension(x509.BasicConstraints(ca=name == "authority", path_length=None), critical=True)
            .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(SERVER))]), critical=False)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(own.public_key()), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.public_key()), critical=False)
            .sign(authority, hashes.SHA256())
        )
        (folder / f"{name}.pem").write_bytes(made.public_bytes(Encoding.PEM))
        secret = own.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        (folder / f"{name}-key.pem").write_bytes(secret)


class Machine:
    """A network namespace in which somebody types commands."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name, self.folder = name, folder
        folder.mkdir()
        bare = {key: text for key, text in os.environ.items() if not key.startswith("CRAWLGUIDE")}
        path = f"{SCRIPT.parent}:{os.environ['PATH']}"
        self._environment = {**bare, **NO_ROBOTS, "PATH": path, "XDG_CONFIG_HOME": str(folder / "config")}

    def command(self, line: str) -> list[str]:
        return ["ip", "netns", "exec", self.name, "sh", "-c", line]

    def type(self, *lines: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command(" && ".join(lines)), cwd=self.folder, env=self._environment, capture_output=True, text=True,
            timeout=90, check=False,
        )  # fmt: skip

    def start(self, line: str) -> subprocess.Popen[str]:
        command = self.command(f"exec {line}")
        return subprocess.Popen(command, cwd=self.folder, env=self._environment, stderr=subprocess.PIPE, text=True)


@pytest.fixture
def machines(tmp_path: Path) -> Iterator[tuple[Machine, Machine]]:
    if os.geteuid() != 0 or shutil.which("ip") is None:
        pytest.skip("network namespaces take root, and iproute2: apt-get install iproute2")
    names = [f"crawlguide-{side}-{os.getpid()}" for side in ("server", "crawler")]
    ends = [f"cg{side}{os.getpid()}" for side in "ab"]
    steps = [f"ip netns add {name}" for name in names]
    steps.append(f"ip link add {ends[0]} netns {names[0]} type veth peer name {ends[1]} netns {names[1]}")
    for name, end, address in zip(names, ends, (SERVER, CRAWLER), strict=True):
        steps += [f"ip -n {name} addr add {address}/24 dev {end}", f"ip -n {name} link set {end} up"]
        steps.append(f"ip -n {name} link set lo up")
    try:
        for step in steps:
            done = subprocess.run(step.split(), capture_output=True, text=True, check=False)
            if done.returncode:
                pytest.skip(f"this machine permits no network namespaces: {done.stderr.strip()}")
        yield Machine(names[0], tmp_path / "server"), Machine(names[1], tmp_path / "crawler")
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "delete", name], capture_output=True, check=False)


def wait_until_it_answers(server: subprocess.Popen[str]) -> None:
    assert server.stderr is not None
    until = time.monotonic() + READY_WITHIN_S
    for line in server.stderr:
        assert time.monotonic() < until
        if "answers on https://0.0.0.0:8080" in line:
            return
    raise AssertionError("the server has ended")


PROGRAM = """
from crawlguide import Client

with Client("https://10.77.0.1:8080", ca="authority.pem") as guide:
    print(guide.ask({"mcp_version": "2025-11", "crawler_id": "c-1", "budget": {"max_urls": 1}})["deferred"])
"""


@pytest.fixture
def fleet(machines: tuple[Machine, Machine]) -> Iterator[tuple[Machine, str]]:
    """The machine of a crawler, and the key for it; the server runs by the first two commands of the README."""
    server, crawler = machines
    issued(server.folder)
    shutil.copy(server.folder / "authority.pem", crawler.folder)
    key = server.type(commands()[0]).stdout.strip()
    running = server.start(commands()[1])
    try:
        wait_until_it_answers(running)
        yield crawler, key
    finally:
        running.send_signal(signal.SIGTERM)
        running.communicate(timeout=ENDS_WITHIN_S)
    assert running.returncode == 0


@pytest.mark.timeout(240)
def test_a_crawler_joins_by_the_readme_alone(fleet: tuple[Machine, str]) -> None:
    crawler, key = fleet
    export, ask = commands()[2].replace("cg_…", key), commands()[3].replace("guide.example.org", SERVER)
    answer = crawler.type(export, ask)
    assert answer.returncode == 0, answer.stderr
    assert "https://example.com/" in answer.stdout

    nobody = crawler.type("export CRAWLGUIDE_CA=authority.pem", ask)
    assert (nobody.returncode, "expected a credential" in nobody.stderr) == (1, True), nobody.stderr
    stranger = crawler.type(f"export CRAWLGUIDE_TOKEN={key}", ask)
    assert (stranger.returncode, "cannot be trusted" in stranger.stderr) == (1, True), stranger.stderr
    refused = crawler.type(export, f"crawlguide status --url https://{SERVER}:8080")
    assert "has not the scope read" in refused.stderr


@pytest.mark.timeout(240)
def test_a_token_may_lie_in_a_file_that_only_its_owner_reads(fleet: tuple[Machine, str]) -> None:
    crawler, key = fleet
    (crawler.folder / "config" / "crawlguide").mkdir(parents=True)
    file = crawler.folder / "config" / "crawlguide" / "token"
    file.write_text(key)
    file.chmod(0o644)
    report = f"crawlguide report https://example.com/ --status 200 --crawler c-1 --json --url https://{SERVER}:8080"
    assert "chmod 600" in crawler.type(f"{report} --ca authority.pem").stderr
    file.chmod(0o600)
    told = crawler.type(f"{report} --ca authority.pem")
    assert told.returncode == 0, told.stderr
    assert json.loads(told.stdout)["accepted"] == 1
    (crawler.folder / "program.py").write_text(PROGRAM)
    assert crawler.type(f"{sys.executable} program.py").stdout == "[]\n"


def test_a_server_that_others_can_reach_wants_credentials(machines: tuple[Machine, Machine]) -> None:
    server, _ = machines
    refused = server.type("crawlguide serve --data data --host 0.0.0.0 --port 0")
    assert (refused.returncode, "--insecure" in refused.stderr) == (2, True), refused.stderr
