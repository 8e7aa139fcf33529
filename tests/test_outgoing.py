"""Requests of our own: where they go, where they never go, and what is taken from there.

A canary listens on this machine; the names of the tests lead wherever a resolver of theirs says.
"""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import json
import ssl
import subprocess
import time
from contextlib import asynccontextmanager
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from crawlguide.core import urls
from crawlguide.core.config import OutgoingOptions as Options
from crawlguide.core.errors import UrlError
from crawlguide.guide.robots.outgoing import Answer, Outgoing

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

CORPUS = Path(__file__).parents[2] / "shared" / "corpora" / "ssrf_cases.jsonl"
LOOPBACK = Options(ports=(), allow_networks=("127.0.0.0/8",), timeout_s=5.0)
PUBLIC = "93.184.215.14"


class Canary:
    """A server on this machine that answers each path with what was laid there, and remembers who came."""

    def __init__(self) -> None:
        self.port = 0
        self.connections = 0
        self.requests: list[bytes] = []
        self.laid: dict[str, bytes] = {}

    def lay(self, path: str, body: bytes = b"", status: str = "200 OK", **headers: str) -> None:
        head = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", "Connection: close"]
        head += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        self.laid[path] = "\r\n".join([*head, "", ""]).encode() + body

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            request = await reader.readuntil(b"\r\n\r\n")
            self.requests.append(request)
            reply = self.laid.get(request.split()[1].decode())
            if reply is None:
                await reader.read()  # silence
            else:
                writer.write(reply)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def listening(
    address: str = "127.0.0.1", port: int = 0, tls: ssl.SSLContext | None = None
) -> AsyncIterator[Canary]:
    canary = Canary()
    server = await asyncio.start_server(canary.answer, address, port, ssl=tls)
    canary.port = server.sockets[0].getsockname()[1]
    try:
        yield canary
    finally:
        server.close()


def leading_to(*addresses: str) -> Outgoing:
    """A fetcher whose names lead to these addresses; nothing but the public Internet is allowed."""

    async def resolve(host: str, port: int) -> Sequence[str]:
        return addresses

    return Outgoing(Options(ports=(), timeout_s=2.0), resolve)


async def test_a_file_is_fetched_with_the_name_it_was_asked_by() -> None:
    async def resolve(host: str, port: int) -> Sequence[str]:
        assert host == "site.test"
        return ["127.0.0.1"]

    async with listening() as canary:
        canary.lay("/robots.txt?a=b", b"User-agent: *")
        answer = await Outgoing(LOOPBACK, resolve).get(f"http://site.test:{canary.port}/robots.txt?a=b", "bot", 1_000)
        assert (answer, answer.address) == (Answer(200, b"User-agent: *"), "127.0.0.1")
        request = canary.requests[0]
    assert f"Host: site.test:{canary.port}\r\n".encode() in request
    assert b"User-Agent: bot\r\n" in request
    assert b"Cookie" not in request
    assert b"Authorization" not in request


async def test_no_hostile_url_reaches_a_private_address() -> None:
    if not CORPUS.exists():
        pytest.skip(f"the corpus {CORPUS.name} is not here")
    hostile = [case["url"] for line in CORPUS.read_text().splitlines() if "url" in (case := json.loads(line))]
    async with listening() as canary:
        fetcher = leading_to("127.0.0.1")
        for url in hostile:
            try:
                known = urls.canonical(url)
            except UrlError:
                continue
            parts = urls.parts(known)
            here = known.replace(f":{parts.port}/", "/", 1) if parts.port else known
            here = here.replace(parts.host, f"{parts.host}:{canary.port}", 1)
            answer = await fetcher.get(here, "bot", 1_000)
            assert answer.status is None, url
            assert "public" in answer.problem, (url, answer.problem)
        assert canary.connections == 0


async def test_a_name_that_changes_its_mind_gains_nothing() -> None:
    """It leads to a permitted address whenever it is checked first, and elsewhere whenever it is asked again."""
    addresses, asked = cycle([["127.0.0.1"], ["127.0.0.2"], ["127.0.0.1"], ["127.0.0.1", "127.0.0.2"]]), 0

    async def rebinding(host: str, port: int) -> Sequence[str]:
        nonlocal asked
        asked += 1
        return next(addresses)

    options = Options(ports=(), allow_networks=("127.0.0.1/32",), timeout_s=5.0)
    async with listening() as canary, listening("127.0.0.2", canary.port) as secret:
        canary.lay("/", b"public")
        answers = [
            await Outgoing(options, rebinding).get(f"http://a.test:{canary.port}/", "bot", 9) for _ in range(1_000)
        ]
        assert secret.connections == 0
        assert canary.connections == 500
    assert asked == 1_000  # one look at the name for one request
    assert [answer.status for answer in answers[:4]] == [200, None, 200, None]


@pytest.mark.parametrize("other", ["10.0.0.1", "::1", "::ffff:169.254.169.254", "64:ff9b::7f00:1"])
async def test_one_private_address_among_several_refuses_them_all(other: str) -> None:
    answer = await leading_to(PUBLIC, other).get("http://site.test/", "bot", 1_000)
    assert answer.problem == f"site.test leads to {other}, which is no public address"


@pytest.mark.parametrize("status", ["301 a", "302 b", "303 c", "307 d", "308 e"])
async def test_a_redirect_to_a_private_address_is_not_followed(status: str) -> None:
    async with listening() as canary, listening() as secret:
        canary.lay("/robots.txt", status=status, Location=f"http://[::ffff:7f00:2]:{secret.port}/latest/meta-data")
        answer = await Outgoing(LOOPBACK).get(f"http://127.0.0.1:{canary.port}/robots.txt", "bot", 1_000)
        assert "no public address" in answer.problem
        assert secret.connections == 0


async def test_redirects_are_followed_five_times() -> None:
    async with listening() as canary:
        for number in range(6):
            canary.lay(f"/{number}", status="302 Found", Location=f"{number + 1}")
        canary.lay("/5", b"here")
        fetcher = Outgoing(LOOPBACK)
        assert (await fetcher.get(f"http://127.0.0.1:{canary.port}/0", "bot", 10)).body == b"here"
        canary.lay("/5", status="302 Found", Location="/6")
        canary.lay("/6", b"too far")
        assert (await fetcher.get(f"http://127.0.0.1:{canary.port}/0", "bot", 10)).problem == "more than 5 redirects"


async def test_the_address_is_that_of_the_host_that_was_asked_and_not_of_where_it_led() -> None:
    async def resolve(host: str, port: int) -> Sequence[str]:
        return {"first.test": ["127.0.0.3", "127.0.0.1"], "second.test": ["127.0.0.1"]}[host]

    async with listening() as canary:
        canary.lay("/", status="302 Found", Location=f"http://second.test:{canary.port}/there")
        canary.lay("/there", b"here")
        answer = await Outgoing(LOOPBACK, resolve).get(f"http://first.test:{canary.port}/", "bot", 10)
        assert (answer.body, answer.address) == (b"here", "127.0.0.1")  # of several the first in order
        straight = await Outgoing(LOOPBACK, resolve).get(f"http://second.test:{canary.port}/there", "bot", 10)
        assert straight.address == "127.0.0.1"


@pytest.mark.parametrize("location", ["file:///etc/passwd", "ftp://127.0.0.1/", "http://[", "gopher://x/"])
async def test_a_redirect_to_another_scheme_is_refused(location: str) -> None:
    async with listening() as canary:
        canary.lay("/", status="301 Moved", Location=location)
        answer = await Outgoing(LOOPBACK).get(f"http://127.0.0.1:{canary.port}/", "bot", 10)
        assert answer.status is None
        assert answer.problem


async def test_more_than_was_wanted_is_cut_off() -> None:
    async with listening() as canary:
        canary.lay("/", b"abcdef")
        answer = await Outgoing(LOOPBACK).get(f"http://127.0.0.1:{canary.port}/", "bot", 4)
        assert answer == Answer(200, b"abcd", cut=True)


async def test_gzip_is_unpacked_and_a_bomb_is_refused() -> None:
    async with listening() as canary:
        here, fetcher = f"http://127.0.0.1:{canary.port}", Outgoing(LOOPBACK)
        canary.lay("/small", gzip.compress(b"User-agent: *"), Content_Encoding="gzip")
        assert (await fetcher.get(f"{here}/small", "bot", 1_000)).body == b"User-agent: *"
        canary.lay("/bomb", gzip.compress(bytes(100_000_000)), Content_Encoding="gzip")
        answer = await fetcher.get(f"{here}/bomb", "bot", 50_000_000)
        assert answer.problem == "a body that unpacks to more than 100 times its size"
        canary.lay("/broken", b"not gzip", Content_Encoding="gzip")
        assert "not gzip" in (await fetcher.get(f"{here}/broken", "bot", 1_000)).problem
        canary.lay("/other", b"?", Content_Encoding="br")
        assert "not asked for" in (await fetcher.get(f"{here}/other", "bot", 1_000)).problem


@pytest.mark.parametrize(
    ("agent", "said"),
    [("bot/1.0 (+https://a.org)", "bot/1.0 (+https://a.org)"), ("a\r\nX-Other: 1", "a??X-Other: 1"), ("böt", "b?t"),
     ("\0", "?"), (" bot\t", "bot?"), ("机器人", "???"), ("\x7f\x1b[1m", "??[1m"), (" ", "")],
)  # fmt: skip
async def test_whatever_name_a_crawl_has_its_requests_are_made(agent: str, said: str) -> None:
    """A file that could not be fetched counts for all crawls and tenants that meet the host."""
    async with listening() as canary:
        canary.lay("/robots.txt", b"User-agent: *")
        answer = await Outgoing(LOOPBACK).get(f"http://127.0.0.1:{canary.port}/robots.txt", agent, 100)
        assert (answer.status, answer.problem) == (200, "")
        lines = canary.requests[0].decode().split("\r\n")
        assert [line for line in lines if line.startswith(("User-Agent:", "X-Other"))] == [f"User-Agent: {said}"]


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
PACKED = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n"
GZIP_HEAD, WITH_NAME = b"\x1f\x8b\x08\x00\0\0\0\0\0\xff", b"\x1f\x8b\x08\x08\0\0\0\0\0\xff"
ENDLESS = {
    "heads before the head": (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    "hints before the head": (b"", b"HTTP/1.1 103 Early Hints\r\nLink: </>\r\n\r\n"),
    "headers": (b"HTTP/1.1 200 OK\r\n", b"a:b\r\n"),
    "a folded header": (b"HTTP/1.1 200 OK\r\na: b\r\n", b" c\r\n"),
    "chunks of a byte": (CHUNKED, b"1\r\na\r\n"),
    "extensions of chunks": (CHUNKED, b"1;" + b"x" * 100 + b"\r\na\r\n"),
    "trailers": (CHUNKED + b"1\r\na\r\n0\r\n", b"a: b\r\n"),
    "what follows gzip": (PACKED + gzip.compress(b"User-agent: *"), bytes(1_000)),
    "gzip of nothing": (PACKED + GZIP_HEAD, b"\x00\x00\x00\xff\xff"),
    "a name in gzip": (PACKED + WITH_NAME, b"x" * 1_000),
}


@pytest.mark.parametrize("kind", ENDLESS)
async def test_what_never_ends_is_left_soon_and_keeps_nobody_waiting(kind: str) -> None:
    """A fast host could keep a whole core busy with what says nothing, and all others waiting between two reads."""
    began, more = ENDLESS[kind]
    left = asyncio.Event()

    async def pour(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(began)
        with contextlib.suppress(ConnectionError):
            while True:
                writer.write(more * (65_536 // len(more)))
                await writer.drain()
        left.set()

    server = await asyncio.start_server(pour, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        before = time.process_time()
        answer = await Outgoing(LOOPBACK).get(f"http://127.0.0.1:{port}/", "bot", 1_000_000)
        assert time.process_time() - before < 1.0
        await asyncio.wait_for(left.wait(), 5)
    assert (
        answer.cut
        or answer.problem == "an answer of almost only headers and chunk framing"
        or answer.body == b"User-agent: *"
    )


async def test_over_tls_a_host_has_to_prove_its_name(tmp_path: Path) -> None:
    """The connection goes to an address that was checked; its certificate is that of the name."""
    key, certificate = _certificate(tmp_path, "site.test")
    context, names = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), []
    context.load_cert_chain(certificate, key)
    context.sni_callback = lambda _, name, __: names.append(name)

    async def resolve(host: str, port: int) -> Sequence[str]:
        return ["127.0.0.1"]

    async with listening(tls=context) as canary:
        canary.lay("/robots.txt", b"User-agent: *")
        trusting = Outgoing(LOOPBACK, resolve, ssl.create_default_context(cafile=str(certificate)))
        here = f"https://site.test:{canary.port}/robots.txt"
        assert (await trusting.get(here, "bot", 100)).body == b"User-agent: *"
        assert names == ["site.test"]
        assert "CERTIFICATE_VERIFY_FAILED" in (await Outgoing(LOOPBACK, resolve).get(here, "bot", 100)).problem
        elsewhere = await trusting.get(here.replace("site.test", "other.test"), "bot", 100)
        assert "CERTIFICATE_VERIFY_FAILED" in elsewhere.problem


def _certificate(folder: Path, name: str) -> tuple[Path, Path]:
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", f"/CN={name}"]
    made += ["-addext", f"subjectAltName=DNS:{name}", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run(made, check=True, capture_output=True)
    return key, certificate


async def test_silence_ends_after_the_time_that_is_allowed() -> None:
    async with listening() as canary:
        options = Options(ports=(), allow_networks=("127.0.0.0/8",), timeout_s=0.1)
        answer = await Outgoing(options).get(f"http://127.0.0.1:{canary.port}/nothing", "bot", 10)
        assert answer.status is None
        assert answer.problem


async def test_a_body_that_comes_drop_by_drop_ends_then_as_well() -> None:
    left = asyncio.Event()

    async def drip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
        with contextlib.suppress(ConnectionError):
            while True:
                writer.write(b"x")
                await writer.drain()
                await asyncio.sleep(0.01)
        writer.close()
        left.set()

    server = await asyncio.start_server(drip, "127.0.0.1", 0)
    options = Options(ports=(), allow_networks=("127.0.0.0/8",), timeout_s=0.3)
    port = server.sockets[0].getsockname()[1]
    answer = await asyncio.wait_for(Outgoing(options).get(f"http://127.0.0.1:{port}/", "bot", 1_000_000), 10)
    await asyncio.wait_for(left.wait(), 10)
    server.close()
    assert answer.problem == "no whole answer within 0.3 s"


@pytest.mark.parametrize("url", ["http://localhost/", "http://router/", "http://db.internal/", "http://a.local./"])
async def test_names_that_are_not_public_are_not_even_looked_up(url: str) -> None:
    async def resolve(host: str, port: int) -> Sequence[str]:
        raise AssertionError(host)

    answer = await Outgoing(Options(), resolve).get(url, "bot", 10)
    assert "no public name" in answer.problem


async def test_only_some_ports_are_open() -> None:
    answer = await Outgoing(Options()).get("http://site.test:22/", "bot", 10)
    assert answer.problem == "port 22 is none of outgoing.ports"


async def test_an_answer_that_is_not_http_is_a_problem_and_no_error() -> None:
    async with listening() as canary:
        canary.laid["/"] = b"SSH-2.0-OpenSSH_9.6\r\n"
        answer = await Outgoing(LOOPBACK).get(f"http://127.0.0.1:{canary.port}/", "bot", 10)
        assert answer.status is None
        assert "ProtocolError" in answer.problem
