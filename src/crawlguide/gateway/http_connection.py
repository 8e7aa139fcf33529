"""One HTTP connection as uvicorn holds it, with the limits that it lacks: of heads, of time, of what is read ahead."""

from __future__ import annotations

import asyncio
import math
import re
from functools import partial
from typing import TYPE_CHECKING, Any

import httptools
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from crawlguide.core.errors import CrawlGuideError, MalformedRequest, TooLarge, UnavailableError
from crawlguide.gateway import wire
from crawlguide.gateway.bodies import IS_WHOLE, declared_bytes
from crawlguide.gateway.bodies import WITHIN_S as BODY_WITHIN_S
from crawlguide.gateway.browsers import HEALTH
from crawlguide.gateway.load import RETRY_AFTER_S
from crawlguide.gateway.responses import JSON, STATUS

if TYPE_CHECKING:
    from collections.abc import Callable

    from uvicorn._types import ASGI3Application
    from uvicorn.config import Config
    from uvicorn.protocols.http.httptools_impl import RequestResponseCycle
    from uvicorn.server import ServerState

    from crawlguide.gateway.load import Load

MOST_HEAD_BYTES = 65_536  # of the request line and all headers; as much again for the frames and trailers of chunks
MOST_HEADERS, MOST_SOCKET_HEADER_BYTES = 100, 8_000  # less than the `websockets` package takes
HEAD_WITHIN_S = 10.0
MOST_DISCARDED_BYTES = 8 * 1024 * 1024  # of a body that nobody wants; then the connection is cut
LISTENS_ON_S = 2.0
STALLED_S = 30.0
HEAD_END = b"\r\n\r\n"
TELL_PATH = "/v1/report"
TELL = f"POST {TELL_PATH} ".encode()
LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
UNUSUAL = re.compile(rb" HTTP/1\.0\r|\r\n(?:transfer-encoding|upgrade|expect|connection: *close|[ \t])", re.IGNORECASE)
BUSY = UnavailableError("more requests than can be answered within a second", retry_after_s=RETRY_AFTER_S)


def response(problem: CrawlGuideError, *, last: bool) -> bytes:
    """A whole answer in the one shape of errors; the last one of its connection says so."""
    body = wire.error(problem)
    head = [f"content-type: {JSON}", f"content-length: {len(body)}"]
    if problem.retry_after_s is not None:
        head.append(f"retry-after: {max(1, round(problem.retry_after_s))}")
    if last:
        head.append("connection: close")
    return STATUS_LINE[STATUS[problem.code]] + "\r\n".join(head).encode() + HEAD_END + body


BUSY_RESPONSES = {keep_alive: response(BUSY, last=not keep_alive) for keep_alive in (True, False)}


def is_whole(data: bytes) -> bool:
    """Is this one whole request as crawlers send them? To be refused it need not be parsed, which costs the most."""
    head, _, body = data.partition(HEAD_END)
    return data.startswith(b"POST /v1/") and LENGTH.findall(head) == [b"%d" % len(body)] and not UNUSUAL.search(head)


class LastWords(asyncio.Protocol):
    """Says one thing and closes. It listens on for a while: TCP throws away words that follow unread ones."""

    def __init__(self, words: bytes, lost: Callable[[Exception | None], None]) -> None:
        self._words, self._lost = words, lost
        self._heard_bytes = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._transport = transport
        transport.resume_reading()
        transport.write(self._words)
        if transport.can_write_eof():
            transport.write_eof()
        self._timer = asyncio.get_running_loop().call_later(LISTENS_ON_S, transport.abort)

    def data_received(self, data: bytes) -> None:
        self._heard_bytes += len(data)
        if self._heard_bytes > MOST_DISCARDED_BYTES:
            self._transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._timer.cancel()
        self._lost(exc)


class Answer:
    """Where an answer goes: all that uvicorn calls of a transport. A piece of it is kept until its end is sent."""

    def __init__(self, connection: HttpConnection) -> None:
        self._connection, self._transport = connection, connection.transport
        self.is_closing = connection.transport.is_closing

    def write(self, piece: bytes) -> None:
        self._connection.piece_bytes = len(piece)
        self._transport.write(piece)

    def close(self) -> None:
        self._transport.close()


class LastAnswer(Answer):
    """The answer to the last request of a connection. It may be there before all of the body is."""

    def close(self) -> None:
        self._connection.close_when_heard()


class HttpConnection(HttpToolsProtocol):
    """uvicorn parses, calls the application and writes its answers; here is how much of what is let through when.

    The next request is parsed when the one before is answered. So data are cut where a head ends (an empty line) and
    where a body does (its declared length); after a chunked body nothing may follow before the answer.
    """

    def __init__(self, config: Config, state: ServerState, load: Load, left: Callable[[], None]) -> None:
        super().__init__(config, state, {})
        self._load, self._left = load, left
        self._unread = b""  # came while a request is being answered
        self._tail = b""  # of a head: its empty line may come in two pieces
        self._in_head = True
        self._head_bytes = self._body_bytes = self._chunk_bytes = self._discarded_bytes = 0
        self._declared: int | None = 0
        self.piece_bytes = 0  # of an answer that is being written
        self._deadline: asyncio.TimerHandle | None = None
        self._stall: asyncio.TimerHandle | None = None
        self._sent_away_at = -math.inf
        self._sent_away = 0  # requests, after they were parsed

    # what the transport calls

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if self.scheme == "https":
            self.app_state = {**self.app_state, "peer_certificate": transport.get_extra_info("peercert") or None}
        self._wait_for_a_request()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._unset_keepalive_if_required()
        self._end_deadline()
        self.resume_writing()
        self._left()

    def data_received(self, data: bytes) -> None:
        crowded = self._load.is_crowded(tells=data.startswith(TELL))
        if crowded and self._is_between_requests() and not self.flow.write_paused and is_whole(data):
            self._load.refused(BUSY)
            self.transport.write(BUSY_RESPONSES[True])
            self._sent_away_at = self.loop.time()
            return
        self._unset_keepalive_if_required()
        self._unread += data
        self._read_on()

    def pause_writing(self) -> None:
        super().pause_writing()
        size = self.transport.get_write_buffer_size()
        self._watch_for_a_stall(size)
        try:
            self._load.answers.enter(self._cut_off, max(size, self.piece_bytes))
        except UnavailableError as problem:
            self._load.refused(problem)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._load.answers.leave(self._cut_off)
        if self._unread:
            self.loop.call_soon(self._go_on)
        if self._stall is not None:
            self._stall.cancel()
            self._stall = None

    # in

    def _read_on(self) -> None:
        """Parse what came, up to the next request while one is being answered. Who takes no answers is not heard."""
        data, at, sent_away = self._unread, 0, self._sent_away
        while at < len(data) and not (self._in_head and self._is_answering()) and self._is_ours():
            if self.flow.write_paused or self._sent_away != sent_away:
                break
            end = self._cut(data, at)
            self._parse(data[at:end])
            at = end
        self._unread = data[at:]
        if not self._is_ours():
            return
        if self._unread and self._sent_away != sent_away:  # a thousand refusals in one turn would keep others waiting
            self.loop.call_soon(self._go_on)
        if self._unread:
            self.flow.pause_reading()
        elif self._in_head and self._head_bytes and self._deadline is None:
            self._expect_more(HEAD_WITHIN_S, "head: expected all headers within 10 s")

    def _go_on(self) -> None:
        self._read_on()
        if not self._unread:
            self.flow.resume_reading()

    def _is_ours(self) -> bool:
        return not self.transport.is_closing() and self.transport.get_protocol() is self

    def _is_between_requests(self) -> bool:
        return self._in_head and not (self._head_bytes or self._unread or self._is_answering())

    def _is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _cut(self, data: bytes, at: int) -> int:
        """Where the head or the body ends in which `data[at:]` begins."""
        if self._in_head:
            found = (self._tail + data[at:]).find(HEAD_END)
            return len(data) if found < 0 else at + found + len(HEAD_END) - len(self._tail)
        if self._declared is None:
            return len(data)
        return min(len(data), at + max(1, self._declared - self._body_bytes))

    def _parse(self, piece: bytes) -> None:
        try:
            self._count(piece)
            body_bytes = self._body_bytes
            self.parser.feed_data(piece)
            self._count_chunks(len(piece) - (self._body_bytes - body_bytes))
        except httptools.HttpParserUpgrade:
            self._upgrade()
        except httptools.HttpParserError as wrong:
            ours = wrong.__context__
            self._refuse(ours if isinstance(ours, CrawlGuideError) else MalformedRequest(f"not HTTP/1.1: {wrong}"))
        except CrawlGuideError as problem:
            self._refuse(problem)

    def _count(self, piece: bytes) -> None:
        if self._in_head:
            self._head_bytes += len(piece)
            self._tail = (self._tail + piece)[1 - len(HEAD_END) :]
            if self._head_bytes > MOST_HEAD_BYTES:
                raise TooLarge(f"head: expected at most {MOST_HEAD_BYTES} bytes of request line and headers, got more")

    def _count_chunks(self, size: int) -> None:
        """Chunks have sizes, extensions and trailers: the longer the body, the more of them, but not much."""
        if self._in_head or self._declared is not None:
            return
        self._chunk_bytes += size
        if self._chunk_bytes > MOST_HEAD_BYTES + self._body_bytes // 4:
            raise TooLarge("body: expected larger chunks, and no such extensions and trailers")

    def _upgrade(self) -> None:
        """To a WebSocket; a wish for anything else is passed over, as RFC 9110 allows."""
        if not self._should_upgrade():
            return
        if any(len(name) + len(value) > MOST_SOCKET_HEADER_BYTES for name, value in self.headers):
            self._refuse(TooLarge(f"head: expected headers of at most {MOST_SOCKET_HEADER_BYTES} bytes each"))
            return
        self._unset_keepalive_if_required()
        self.handle_websocket_upgrade()
        socket: Any = self.transport.get_protocol()
        socket.take_over(self._load, self._left)

    # what the parser calls

    def on_message_begin(self) -> None:
        if self._is_answering():
            raise MalformedRequest("a request follows a chunked one before that is answered")
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Trailers are no headers: whoever has looked at those must not find others later."""
        if not self._in_head:
            return
        super().on_header(name, value)
        if len(self.headers) > MOST_HEADERS:
            raise TooLarge(f"head: expected at most {MOST_HEADERS} headers, got more")

    def on_headers_complete(self) -> None:
        self._end_deadline()
        self._in_head, self._tail = False, b""
        self._declared = declared_bytes(self.headers)
        self._body_bytes = self._chunk_bytes = self._discarded_bytes = 0
        hosts = sum(name == b"host" for name, _ in self.headers)
        if hosts > 1:
            raise MalformedRequest("host: expected once, got it several times", field="host")
        if not hosts and self.parser.get_http_version() == "1.1":
            raise MalformedRequest("host: required by HTTP/1.1, but missing", field="host")
        super().on_headers_complete()
        if self.cycle is not None:
            is_last = self._declared != 0 and not self.cycle.keep_alive
            self.cycle.transport = (LastAnswer if is_last else Answer)(self)  # type: ignore[assignment]

    def on_body(self, body: bytes) -> None:
        self._body_bytes += len(body)
        super().on_body(body)
        if self.cycle.response_complete:
            self._discarded_bytes += len(body)
            if self._discarded_bytes > MOST_DISCARDED_BYTES:
                self.transport.abort()

    def on_message_complete(self) -> None:
        super().on_message_complete()
        self.scope["state"][IS_WHOLE] = True
        self._in_head, self._head_bytes = True, 0
        if not self._is_answering():
            self._end_deadline()
            self._wait_for_a_request()

    # answers

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        """It begins when it is its turn. Whoever asks whether the server lives does not wait."""
        if self.scope["path"] in HEALTH:
            self._begin(cycle, app)
        elif self._load.is_crowded(tells=self.scope["path"] == TELL_PATH):
            self._send_away(cycle)
        else:
            self._load.turns.wait(partial(self._begin, cycle, app))

    def _begin(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        if not cycle.disconnected:
            super()._start_asgi_task(cycle, app)

    def _send_away(self, cycle: RequestResponseCycle) -> None:
        """As cheap as can be: more are sent away than answered when there are far too many."""
        self._load.refused(BUSY)
        self._sent_away += 1
        cycle.response_started = cycle.response_complete = True
        self.transport.write(BUSY_RESPONSES[cycle.keep_alive])
        if not cycle.keep_alive:
            self.close_when_heard()
        self.on_response_complete()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if not self._is_ours():
            return
        if not self._in_head:
            self._do_without_the_rest()
        elif self._unread:
            self.loop.call_soon(self._read_on)

    def _do_without_the_rest(self) -> None:
        """The answer was given before the body had come. Who waits to be asked for it may send something else now."""
        if self.expect_100_continue and not self._body_bytes:
            self.transport.close()
        elif self._deadline is None:
            self._deadline = self.loop.call_later(BODY_WITHIN_S, self.transport.abort)

    def close_when_heard(self) -> None:
        """All is said. What still comes of a body is thrown away: unread, it would make TCP throw away the answer."""
        if self._in_head:
            self.transport.close()
        else:
            self._say_last(b"")

    def _refuse(self, problem: CrawlGuideError) -> None:
        """Nobody knows where the next request would begin, so this is the end."""
        if self._is_answering() and (self._in_head or self.cycle.response_started):
            self.cycle.keep_alive = False  # the request before this one gets its answer
            self.flow.pause_reading()
            return
        self._end_deadline()
        if self.cycle is not None:
            self.cycle.disconnected = True
            self.cycle.waiting_for_100_continue = False  # nobody is told to go on after the last words
            self.cycle.message_event.set()
        self._say_last(response(problem, last=True))

    def _say_last(self, words: bytes) -> None:
        self._end_deadline()
        last = LastWords(words, self.connection_lost)
        self.transport.set_protocol(last)
        last.connection_made(self.transport)

    def send_400_response(self, msg: str) -> None:
        self._refuse(MalformedRequest(msg))

    # time

    def _wait_for_a_request(self) -> None:
        self._unset_keepalive_if_required()
        self.timeout_keep_alive_task = self.loop.call_later(self.timeout_keep_alive, self.timeout_keep_alive_handler)

    def timeout_keep_alive_handler(self) -> None:
        """Whoever is sent away is not idle. That sets no timer: in a flood it would be what costs most."""
        if self.loop.time() - self._sent_away_at < self.timeout_keep_alive:
            self._wait_for_a_request()
        else:
            super().timeout_keep_alive_handler()

    def _expect_more(self, within_s: float, words: str) -> None:
        self._deadline = self.loop.call_later(within_s, self._refuse, MalformedRequest(words))

    def _end_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _cut_off(self) -> None:
        self.transport.abort()

    def _watch_for_a_stall(self, waiting_bytes: int) -> None:
        """Cut who takes nothing of an answer for so long."""
        self._stall = self.loop.call_later(STALLED_S, self._look_for_a_stall, waiting_bytes)

    def _look_for_a_stall(self, waited_bytes: int) -> None:
        waiting_bytes = self.transport.get_write_buffer_size()
        if waiting_bytes < waited_bytes:
            self._watch_for_a_stall(waiting_bytes)
        else:
            self.transport.abort()
