"""Fetching from strangers: what comes out, whatever they do; and where it never goes."""

from __future__ import annotations

import asyncio
import gzip
import socket
import ssl
import struct
import subprocess
import tracemalloc
import zlib
from functools import partial
from typing import TYPE_CHECKING

import brotli
import pytest
from backports import zstd

from crawlguide.core.errors import ConfigError
from crawlguide.crawler.codings import Body
from crawlguide.crawler.fetch import Fetcher, FetchOptions, Validators
from crawlguide.crawler.patience import Patience
from crawlguide.testing import ManualClock
from tests.crawler.strangers import LOOPBACK, Stranger, local, stranger

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from crawlguide.crawler.fetch import Fetched

KIB, MIB = 1024, 1024 * 1024
PUBLIC = "93.184.215.14"
CODINGS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": partial(gzip.compress, compresslevel=4),
    "deflate": partial(zlib.compress, level=4),
    "br": partial(brotli.compress, quality=4),
    "zstd": zstd.compress,
}


@pytest.fixture
async def there() -> AsyncIterator[Stranger]:
    async with stranger() as found:
        yield found


async def fetched(url: str, **options: object) -> Fetched:
    async with local(**options) as fetcher:
        return await fetcher.fetch(url)


async def test_an_answer_comes_with_all_that_belongs_to_it(there: Stranger) -> None:
    url = there.lay("/a", b"hello", Content_Type='Text/HTML; Charset="ISO-8859-1"', ETag='"1"', Last_Modified="then")
    found = await fetched(url)
    assert (found.url, found.status, found.reason, found.version, found.body) == (url, 200, "OK", "1.1", b"hello")
    assert (found.content_type, found.charset) == ("text/html", "iso-8859-1")
    assert found.validators == Validators('"1"', "then")
    assert (found.error, found.redirected_to, found.received_bytes) == (None, None, 5)


async def test_we_say_who_we_are_and_whom_to_write_to(there: Stranger) -> None:
    await fetched(there.lay("/a"), user_agent="acme", contact="mailto:a@b.example")
    assert b"User-Agent: acme/" in there.requests[0]
    assert b"(+mailto:a@b.example)\r\n" in there.requests[0]


async def test_no_cookie_is_ever_sent_back(there: Stranger) -> None:
    url = there.lay("/a", Set_Cookie="a=b; Path=/")
    async with local() as fetcher:
        await fetcher.fetch(url)
        await fetcher.fetch(url)
    assert len(there.requests) == 2
    assert b"cookie" not in there.requests[1].lower()


async def test_credentials_in_a_url_are_not_sent(there: Stranger) -> None:
    url = there.lay("/a").replace("http://", "http://user:secret@")
    assert (await fetched(url)).status == 200
    assert b"authorization" not in there.requests[0].lower()


async def test_credentials_in_a_redirect_are_dropped(there: Stranger) -> None:
    target = there.lay("/b", b"roses")
    url = there.lay("/a", status="302 Found", Location=target.replace("http://", "http://user:secret@"))
    found = await fetched(url)
    assert (found.body, found.redirected_to, found.redirects[0].target) == (b"roses", target, target)


@pytest.mark.parametrize("path", ["/%7Ea/%2F?q=%41+b", "/a|b[c]?'(x)'", "/a//b/", "/?", "/a?b?c"])
async def test_a_path_goes_out_as_it_is_written(there: Stranger, path: str) -> None:
    await fetched(there.url(path))
    assert there.requests[0].split()[1].decode() == path.removesuffix("?")


async def test_connections_are_kept_for_the_next_request(there: Stranger) -> None:
    async with local() as fetcher:
        for _ in range(3):
            await fetcher.fetch(there.lay("/a", b"x"))
    assert there.connections == 1


async def test_no_more_requests_of_a_host_at_once_than_wished(there: Stranger) -> None:
    at_once, most, go = 0, 0, asyncio.Event()

    async def play(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        if at_once == 2:
            go.set()
        await go.wait()
        at_once -= 1
        writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")

    url = there.lay_raw("/a", play)
    async with local(per_host=2) as fetcher:
        answers = await asyncio.gather(*(fetcher.fetch(url) for _ in range(6)))
    assert [answer.status for answer in answers] == [200] * 6
    assert most == 2


async def test_a_recrawl_asks_whether_anything_changed(there: Stranger) -> None:
    url = there.lay("/a", status="304 Not Modified", ETag='"1"')
    async with local() as fetcher:
        found = await fetcher.fetch(url, Validators('"1"', "Mon, 01 Jan 2024 00:00:00 GMT"))
    assert (found.status, found.body, found.error) == (304, b"", None)
    assert b'If-None-Match: "1"\r\n' in there.requests[0]
    assert b"If-Modified-Since: Mon, 01 Jan 2024 00:00:00 GMT\r\n" in there.requests[0]


async def test_a_validator_cannot_smuggle_a_header_in(there: Stranger) -> None:
    async with local() as fetcher:
        await fetcher.fetch(there.lay("/a"), Validators('"1"\r\nX-Evil: 1'))
    assert b"\r\nX-Evil" not in there.requests[0]


@pytest.mark.parametrize(
    ("value", "wish"),
    [
        ("120", 120.0),
        ("Mon, 01 Jan 2024 00:01:00 GMT", 60.0),
        ("Sun, 31 Dec 2023 00:00:00 GMT", 0.0),
        ("soon", None),
        ("-5", None),
        ("9" * 500, 366 * 86_400.0),
    ],
)
async def test_the_wish_for_a_pause_is_read(there: Stranger, value: str, wish: float | None) -> None:
    url = there.lay("/a", status="503 Busy", Retry_After=value, Date="Mon, 01 Jan 2024 00:00:00 GMT")
    found = await fetched(url)
    assert (found.status, found.retry_after_s) == (503, wish)


async def test_a_pause_until_a_date_counts_from_now_if_the_server_says_no_date(there: Stranger) -> None:
    url = there.lay("/a", status="503 Busy", Retry_After="Tue, 14 Nov 2023 22:14:20 GMT")
    options = FetchOptions(allow_networks=LOOPBACK)
    async with Fetcher(options, clock=ManualClock(1_700_000_000.0)) as fetcher:  # 22:13:20
        assert (await fetcher.fetch(url)).retry_after_s == 60.0


# Redirects


async def test_redirects_are_followed_and_remembered(there: Stranger) -> None:
    url = there.lay("/a", status="301 Moved", Location="b#part")
    middle = there.lay("/b", status="302 Found", Location="/c")
    end = there.lay("/c", b"end")
    found = await fetched(url)
    assert (found.url, found.redirected_to, found.status, found.body) == (url, end, 200, b"end")
    assert [(step.url, step.status, step.target) for step in found.redirects] == [
        (url, 301, middle),
        (middle, 302, end),
    ]


async def test_a_redirect_in_a_circle_ends_at_once(there: Stranger) -> None:
    url = there.lay("/a", status="302 Found", Location="/b")
    there.lay("/b", status="302 Found", Location="/a")
    found = await fetched(url)
    assert (found.error, found.status) == ("other", 302)
    assert "back to" in found.problem
    assert len(there.requests) == 2


async def test_redirects_without_end_are_given_up(there: Stranger) -> None:
    for number in range(10):
        there.lay(f"/{number}", status="302 Found", Location=f"/{number + 1}")
    found = await fetched(there.url("/0"), max_redirects=5)
    assert (found.error, found.problem, len(there.requests)) == ("other", "more than 5 redirects", 6)


async def test_each_step_needs_permission(there: Stranger) -> None:
    asked = []

    async def permitted(url: str) -> str | None:
        asked.append(url)
        return "out of scope" if url.endswith("/c") else None

    url = there.lay("/a", status="302 Found", Location="/b")
    there.lay("/b", status="302 Found", Location="/c")
    async with Fetcher(FetchOptions(allow_networks=LOOPBACK), permitted) as fetcher:
        found = await fetcher.fetch(url)
    assert asked == [there.url("/b"), there.url("/c")]
    assert (found.error, found.problem, found.status) == ("blocked", "out of scope", 302)
    assert len(there.requests) == 2


@pytest.mark.parametrize("target", ["ftp://a.example/", "javascript:alert(1)", "file:///etc/passwd", "http://[", "//"])
async def test_a_redirect_to_what_is_no_page_is_blocked(there: Stranger, target: str) -> None:
    found = await fetched(there.lay("/a", status="302 Found", Location=target))
    assert (found.error, found.status) == ("blocked", 302)


# Where it never goes


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:{}/", "http://0x7f.1:{}/", "http://[::ffff:127.0.0.1]:{}/", "http://localhost:{}/"]
)
async def test_this_machine_is_not_reached(there: Stranger, url: str) -> None:
    from crawlguide.core.urls import canonical

    async with Fetcher(FetchOptions()) as fetcher:
        found = await fetcher.fetch(canonical(url.format(there.port)))
    assert (found.error, found.status, there.connections) == ("blocked", None, 0)
    assert "no public address" in found.problem


@pytest.mark.parametrize("address", ["10.0.0.1", "169.254.169.254", "[::1]", "[fd00::1]", "192.168.1.1:8080"])
async def test_a_redirect_to_a_private_address_is_blocked(there: Stranger, address: str) -> None:
    found = await fetched(there.lay("/a", status="302 Found", Location=f"http://{address}/"))
    assert (found.error, found.status) == ("blocked", 302)


async def test_one_private_address_among_those_of_a_name_is_enough(there: Stranger) -> None:
    async def resolve(host: str, port: int) -> list[str]:
        return [PUBLIC, "127.0.0.1"]

    async with Fetcher(FetchOptions(), resolve=resolve) as fetcher:
        found = await fetcher.fetch(there.url(host="two.example"))
    assert (found.error, there.connections) == ("blocked", 0)


async def test_a_name_server_that_changes_its_mind_changes_nothing(there: Stranger) -> None:
    answers = [["127.0.0.1"], ["10.0.0.1"]]

    async def resolve(host: str, port: int) -> list[str]:
        return answers.pop(0)

    there.lay("/a", Connection="close")
    async with Fetcher(FetchOptions(allow_networks=LOOPBACK), resolve=resolve) as fetcher:
        first = await fetcher.fetch(there.url("/a", host="turns.example"))
        again = await fetcher.fetch(there.url("/a", host="turns.example"))
    assert (first.status, again.status, len(answers)) == (200, 200, 1)


async def test_ports_of_other_protocols_are_left_alone() -> None:
    found = await fetched("http://127.0.0.1:25/")
    assert (found.error, found.problem) == ("blocked", "port 25 belongs to another protocol")


async def test_a_proxy_is_asked_for_names_that_we_do_not_resolve(there: Stranger) -> None:
    there.lay_raw("http://far.example/x?y", b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

    async def resolve(host: str, port: int) -> list[str]:
        raise AssertionError(host)

    async with Fetcher(FetchOptions(proxy=there.url()), resolve=resolve) as fetcher:
        found = await fetcher.fetch("http://far.example/x?y")
    assert (found.status, found.body) == (200, b"ok")


async def test_of_a_proxy_that_is_down_it_is_said_that_it_is_the_proxy() -> None:
    async with Fetcher(FetchOptions(proxy="http://127.0.0.1:9")) as fetcher:
        found = await fetcher.fetch("http://far.example/x")
    assert found.error == "connect"
    assert found.problem.startswith("the proxy does not answer: Cannot connect to host 127.0.0.1:9 [")


# Bodies


@pytest.mark.parametrize("coding", CODINGS)
async def test_content_codings_are_undone(there: Stranger, coding: str) -> None:
    body = b"".join(b"line %d\n" % number for number in range(50_000))
    packed = CODINGS[coding](body)
    found = await fetched(there.lay("/a", packed, Content_Encoding=coding))
    assert (found.body == body, found.received_bytes) == (True, len(packed))


@pytest.mark.parametrize("coding", CODINGS)
async def test_a_coding_is_undone_byte_by_byte_too(there: Stranger, coding: str) -> None:
    packed = CODINGS[coding](b"hello " * 100)
    chunks = b"".join(b"1\r\n%c\r\n" % byte for byte in packed) + b"0\r\n\r\n"
    head = f"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Encoding: {coding}\r\n\r\n"
    found = await fetched(there.lay_raw("/a", head.encode() + chunks))
    assert found.body == b"hello " * 100


async def test_bare_deflate_and_gzip_in_members_are_read(there: Stranger) -> None:
    bare = zlib.compressobj(wbits=-15)
    found = await fetched(there.lay("/a", bare.compress(b"bare") + bare.flush(), Content_Encoding="deflate"))
    assert found.body == b"bare"
    members = gzip.compress(b"one ") + gzip.compress(b"two") + b"\0" * 100
    assert (await fetched(there.lay("/b", members, Content_Encoding="x-gzip"))).body == b"one two"


@pytest.mark.parametrize("piece_bytes", [1, 2, 3, 5])
@pytest.mark.parametrize("coding", ["gzip", "zstd"])
def test_members_are_read_however_their_bytes_come(coding: str, piece_bytes: int) -> None:
    packed = CODINGS[coding](b"one ") + CODINGS[coding](b"two ") + CODINGS[coding](b"three")
    body = Body(coding, MIB, 100)
    for at in range(0, len(packed), piece_bytes):
        body.add(packed[at : at + piece_bytes])
    assert body.whole() == b"one two three"


@pytest.mark.parametrize("coding", CODINGS)
async def test_a_bomb_is_not_unpacked(there: Stranger, coding: str) -> None:
    packed = CODINGS[coding](b"\0" * (64 * MIB))
    url = there.lay("/a", packed, Content_Encoding=coding)
    async with local() as fetcher:
        await fetcher.fetch(there.lay("/small", b"x"))
        tracemalloc.start()
        found = await fetcher.fetch(url)
        _, peak_bytes = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert (found.error, found.status, found.body) == ("too_large", 200, b"")
    assert peak_bytes < 32 * MIB


async def test_a_bomb_of_many_members_is_not_unpacked(there: Stranger) -> None:
    packed = gzip.compress(b"") * 100_000
    found = await fetched(there.lay("/a", packed, Content_Encoding="gzip"))
    assert (found.error, found.problem) == ("other", "a body of more than 1000 members")


@pytest.mark.parametrize(
    "coding", ["gzip, gzip", "gzip\r\nContent-Encoding: gzip", "gzip, br", "compress", "none, gzip"]
)
async def test_other_codings_are_refused(there: Stranger, coding: str) -> None:
    found = await fetched(there.lay("/a", b"x", Content_Encoding=coding))
    assert (found.error, found.status) == ("other", 200)


@pytest.mark.parametrize("coding", ["gzip, identity", "identity\r\nContent-Encoding: gzip", "gzip,"])
async def test_a_layer_of_nothing_is_none(there: Stranger, coding: str) -> None:
    found = await fetched(there.lay("/a", gzip.compress(b"roses"), Content_Encoding=coding))
    assert (found.error, found.body) == (None, b"roses")


@pytest.mark.parametrize("coding", ["none", "UTF-8", "identity", "binary, identity", "x" * 1_000])
async def test_what_is_no_coding_is_nothing_to_undo(there: Stranger, coding: str) -> None:
    found = await fetched(there.lay("/a", b"roses", Content_Encoding=coding))
    assert (found.error, found.body) == (None, b"roses")


@pytest.mark.parametrize("coding", CODINGS)
async def test_a_body_that_is_not_what_it_says_is_an_error(there: Stranger, coding: str) -> None:
    found = await fetched(there.lay("/a", b"plain text, not packed", Content_Encoding=coding))
    assert (found.error, found.status) == ("other", 200)


async def test_a_large_body_is_not_even_begun(there: Stranger) -> None:
    found = await fetched(there.lay_raw("/a", b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\nxxx"))
    assert (found.error, found.status, found.received_bytes) == ("too_large", 200, 0)


async def test_a_body_without_end_is_cut_off(there: Stranger) -> None:
    async def play(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            writer.write(b"x" * 65_536)
            await writer.drain()

    found = await fetched(there.lay_raw("/a", play), max_bytes=MIB)
    assert (found.error, found.problem) == ("too_large", f"a body of more than {MIB} bytes")
    assert MIB < found.received_bytes < 2 * MIB


async def test_a_body_that_drips_is_given_up(there: Stranger) -> None:
    async def play(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            writer.write(b"x")
            await writer.drain()
            await asyncio.sleep(0.01)

    found = await fetched(there.lay_raw("/a", play), min_bytes_per_s=10_000.0, grace_s=0.2)
    assert (found.error, found.status) == ("timeout", 200)


@pytest.mark.parametrize("frame", [b"a", b"0"], ids=["after a ;", "a size of zeros"])
async def test_a_chunk_that_never_comes_to_its_bytes_is_given_up(there: Stranger, frame: bytes) -> None:
    async def play(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + (b"1;" if frame == b"a" else b""))
        while True:
            writer.write(frame * 1_000)
            await writer.drain()
            await asyncio.sleep(0.001)

    async with asyncio.timeout(60):
        found = await fetched(there.lay_raw("/a", play), timeout_s=0.5, least_timeout_s=0.1, total_s=3_600.0)
    assert (found.error, found.status, found.received_bytes) == ("timeout", 200, 0)


@pytest.mark.parametrize(
    "limits", [{"timeout_s": 0.2, "least_timeout_s": 0.1}, {"total_s": 0.2}], ids=["no answer", "no whole answer"]
)
async def test_silence_is_given_up(there: Stranger, limits: dict[str, float]) -> None:
    async def play(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        await reader.read()

    found = await fetched(there.lay_raw("/a", play), **limits)
    assert (found.error, found.status) == ("timeout", None)
    assert found.problem


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
    ],
    ids=["length", "chunks"],
)
async def test_a_body_that_ends_too_early_is_an_error(there: Stranger, answer: bytes) -> None:
    async def play(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(answer)
        await writer.drain()

    found = await fetched(there.lay_raw("/a", play))
    assert (found.error, found.status, found.body) == ("connect", 200, b"")


async def test_what_follows_a_body_belongs_to_no_other_answer(there: Stranger) -> None:
    there.lay_raw(
        "/a", b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil"
    )
    there.lay("/b", b"good")
    async with local() as fetcher:
        assert (await fetcher.fetch(there.url("/a"))).body == b"ok"
        assert (await fetcher.fetch(there.url("/b"))).body == b"good"


# Heads


async def test_a_header_of_ten_megabytes_is_refused(there: Stranger) -> None:
    url = there.lay_raw("/a", b"HTTP/1.1 200 OK\r\nX-Long: " + b"x" * (10 * MIB) + b"\r\nContent-Length: 0\r\n\r\n")
    async with local() as fetcher:
        await fetcher.fetch(there.lay("/small", b"x"))
        tracemalloc.start()
        found = await fetcher.fetch(url)
        _, peak_bytes = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert (found.error, found.status) == ("too_large", None)
    assert peak_bytes < 25 * MIB  # of which the server's own buffer holds ten


async def test_headers_without_end_are_refused(there: Stranger) -> None:
    async def play(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n")
        while True:
            writer.write(b"X-More: and more\r\n" * 1_000)
            await writer.drain()

    found = await fetched(there.lay_raw("/a", play))
    assert (found.error, found.status) == ("too_large", None)


async def test_announcements_without_end_are_given_up(there: Stranger) -> None:
    async def play(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            writer.write(b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n")
            await writer.drain()
            await asyncio.sleep(0.001)

    found = await fetched(there.lay_raw("/a", play), timeout_s=0.5, least_timeout_s=0.1)
    assert found.error == "timeout"


async def test_an_announcement_before_the_answer_is_passed_over(there: Stranger) -> None:
    url = there.lay_raw("/a", b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
    assert (await fetched(url)).body == b"ok"


async def test_an_answer_of_the_old_kind_is_read(there: Stranger) -> None:
    found = await fetched(there.lay_raw("/a", b"HTTP/1.0 200 OK\r\n\r\nold"))
    assert (found.version, found.status, found.body) == ("1.0", 200, b"old")


@pytest.mark.parametrize(
    "answer",
    [
        b"<html>no head at all</html>",
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"HTTP/1.1 abc OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        b"\0" * 1_000,
    ],
)
async def test_what_is_no_http_is_an_error(there: Stranger, answer: bytes) -> None:
    found = await fetched(there.lay_raw("/a", answer))
    assert (found.error, found.status) == ("other", None)


async def test_headers_become_text_that_can_be_stored(there: Stranger) -> None:
    url = there.lay_raw("/a", b"HTTP/1.1 200 OK\r\nX-Odd: a\xff\tb\r\nContent-Length: 0\r\n\r\n")
    assert (await fetched(url)).header("x-odd") == "a\ufffd b"


# Connections


async def test_a_connection_that_is_reset_is_an_error(there: Stranger) -> None:
    async def play(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.transport.abort()

    found = await fetched(there.lay_raw("/a", play))
    assert (found.error, found.status) == ("connect", None)


async def test_a_name_that_none_can_have_is_refused_and_found_by_nobody() -> None:
    url = f"http://{'a' * 64}.example/"
    async with local() as fetcher:
        assert (await fetcher.refusal(url)).endswith("not a valid host name")
        assert (await fetcher.fetch(url)).error == "dns"


async def test_a_closed_port_is_an_error(there: Stranger) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        found = await fetched(f"http://127.0.0.1:{port}/")
    assert (found.error, found.status) == ("connect", None)
    assert found.problem.startswith(f"Cannot connect to host 127.0.0.1:{port} [")


@pytest.mark.parametrize("problem", [socket.gaierror(-2, "Name or service not known"), UnicodeError("label too long")])
async def test_a_name_without_address_is_an_error(problem: Exception) -> None:
    async def resolve(host: str, port: int) -> list[str]:
        raise problem

    async with Fetcher(FetchOptions(), resolve=resolve) as fetcher:
        found = await fetcher.fetch("http://nowhere.example/")
    assert (found.error, found.status) == ("dns", None)
    assert "ssl:" not in found.problem


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """Key and certificate of 127.0.0.1, signed by nobody."""
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost"
    subprocess.run(
        [*command.split(), "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", certificate],
        check=True,
        capture_output=True,
    )
    certificate.write_text(certificate.read_text() + key.read_text())
    return certificate


async def test_a_certificate_that_nobody_trusts_is_an_error(certificate: Path) -> None:
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate)
    async with stranger(tls) as there:
        there.lay("/a", b"secret")
        url = there.url("/a", scheme="https")
        assert (await fetched(url)).error == "tls"
        assert there.requests == []
        known = ssl.create_default_context(cafile=str(certificate))
        async with Fetcher(FetchOptions(allow_networks=LOOPBACK), tls=known) as fetcher:
            assert (await fetcher.fetch(url)).body == b"secret"


async def test_plain_http_where_tls_was_expected_is_an_error() -> None:
    async def play(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(play, "127.0.0.1", 0) as server:
        found = await fetched(f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/")
    assert (found.error, found.status) == ("tls", None)


async def test_after_all_that_the_next_page_is_fetched(there: Stranger) -> None:
    bad = [
        there.lay("/bomb", gzip.compress(b"\0" * (20 * MIB)), Content_Encoding="gzip"),
        there.lay("/loop", status="302 Found", Location="/loop"),
        there.lay_raw("/head", b"HTTP/1.1 200 OK\r\nX: " + b"x" * MIB + b"\r\n\r\n"),
        there.lay_raw("/short", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz"),
    ]
    good = there.lay("/good", b"good")
    async with local() as fetcher:
        for url in bad:
            assert (await fetcher.fetch(url)).error
            assert (await fetcher.fetch(good)).body == b"good"


# Patience and options


def test_patience_is_a_few_times_what_is_usual_for_a_host() -> None:
    patience = Patience(1.0, 30.0)
    assert patience.of("a.example") == 30.0
    for _ in range(20):
        patience.add("a.example", 0.5)
    assert patience.of("a.example") == 2.0
    assert patience.of("b.example") == 30.0  # too little is known of hosts at large
    for _ in range(60):
        patience.add("c.example", 2.0)
    assert patience.of("b.example") == 8.0


def test_patience_grows_with_a_host_that_became_slow() -> None:
    patience = Patience(1.0, 30.0)
    for _ in range(20):
        patience.add("a.example", 0.1)
    for _ in range(40):
        patience.add("a.example", patience.of("a.example"))
    assert patience.of("a.example") > 5.0


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("user_agent", "a\r\nX: 1"),
        ("user_agent", " "),
        ("contact", "é"),
        ("proxy", "127.0.0.1:80"),
        ("proxy", "ftp://a.example"),
        ("concurrency", 0),
        ("timeout_s", -1.0),
    ],
)
def test_a_wrong_option_is_named(option: str, value: object) -> None:
    with pytest.raises(ConfigError, match=option):
        FetchOptions(**{option: value})  # type: ignore[arg-type]
