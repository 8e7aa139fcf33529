"""One WebSocket as uvicorn holds it, with the two things that ASGI has no words for: how much waits, and a cut.

Messages go straight from the transport to who listens and back. uvicorn's queue and events between them would cost
more than all else a socket adds to an ask.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from crawlguide.core.errors import UnavailableError
from crawlguide.gateway.websocket import frames
from crawlguide.gateway.websocket.frames import Broken, Frames

if TYPE_CHECKING:
    from collections.abc import Callable

    from uvicorn.config import Config
    from uvicorn.server import ServerState
    from websockets.http11 import Request

    from crawlguide.gateway.load import Load
    from crawlguide.gateway.websocket.codecs import Codec
    from crawlguide.gateway.websocket.messages import Id

READ_AHEAD_BYTES = 65_536
CLOSES_WITHIN_S = 5.0
MESSAGE_WITHIN_S = 30.0
CONTROL_HEAD_BYTES = 6


class Connection(WebSocketsSansIOProtocol):
    """uvicorn does the handshake; from then on `listener` receives every message, one in each turn of the loop."""

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self.lost = asyncio.Event()
        self._unfinished_bytes = 0  # of a message that has not come whole
        self._deadline: asyncio.TimerHandle | None = None
        self._incoming = Frames(config.ws_max_size)
        self._listener: Callable[[bytes], None] | None = None
        self._held = self._turn_comes = self._closed = False
        self._sent_bytes = self._marked_bytes = 0
        self._marked_at = 0.0

    def take_over(self, load: Load, left: Callable[[], None]) -> None:
        """What was an HTTP connection is this one now: `left` is called when it is gone."""
        self._load, self._left = load, left

    def open(self, listener: Callable[[bytes], None], codec: Codec, most_waiting_bytes: int) -> None:
        """From now on `listener` receives; over so many bytes that the other side has not taken, nothing is read."""
        self._listener, self._codec = listener, codec
        self._incoming.kind = codec.frame
        self._marked_at = self.loop.time()
        self.transport.set_write_buffer_limits(high=most_waiting_bytes)
        self._turn()

    def say(self, kind: str, name: Id | None, message: Any = None) -> None:
        """Send one message; it is lost if the socket is closing."""
        self._write(frames.message(self._codec.frame, self._codec.encode(kind, name, message)))

    def pause_receiving(self) -> None:
        """Read no more until `resume_receiving`."""
        self._held = True
        self._pause()

    def resume_receiving(self) -> None:
        self._held = False
        self._next_turn()

    def close(self, code: int, reason: str) -> None:
        """Say goodbye. Whatever still comes in is thrown away: unread, it would make TCP throw away the goodbye."""
        if self._closed or self.transport.is_closing():
            return
        self._write(frames.closing(code, reason))
        self._end()

    def stalled(self, at: float, most_s: float) -> bool:
        """Whether something that was said has not been taken for so long. Asked again and again, by the loop's time."""
        if self._sent_bytes - self.transport.get_write_buffer_size() >= self._marked_bytes:
            self._marked_bytes, self._marked_at = self._sent_bytes, at
        return at - self._marked_at >= most_s

    # what uvicorn and the transport call

    def handle_connect(self, event: Request) -> None:
        super().handle_connect(event)
        if not self.close_sent:  # else the handshake was refused, and nobody will listen
            self.scope["state"]["connection"] = self

    def data_received(self, data: bytes) -> None:
        if not self.handshake_initiated:
            super().data_received(data)
        elif not self._closed:
            self._feed(data)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._next_turn()

    def connection_lost(self, exc: Exception | None) -> None:
        self._closed = True
        self._finish()
        super().connection_lost(exc)
        self.lost.set()
        self._left()

    def shutdown(self) -> None:
        """The server ends. The listener knows already, and closes when all is answered."""
        if self._listener is None:
            super().shutdown()

    # in

    def _feed(self, data: bytes) -> None:
        try:
            self._load.bodies.grow(self._unfinished_bytes, len(data))
        except UnavailableError as problem:
            self._load.refused(problem)
            self.close(frames.TRY_AGAIN_LATER, problem.message)
            return
        self._unfinished_bytes += len(data)
        self._incoming.feed(data)
        if not self._turn_comes:
            self._turn()

    def _finish(self, rest: int = 0) -> None:
        """A message came whole; so many bytes of what came are of the next."""
        self._free(self._unfinished_bytes - rest)
        self._end_deadline()

    def _free(self, size: int) -> None:
        self._load.bodies.free(size)
        self._unfinished_bytes -= size
        if not self._unfinished_bytes:
            self._end_deadline()

    def _end_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _expect_the_rest(self) -> None:
        if self._unfinished_bytes and self._deadline is None:
            self._deadline = self.loop.call_later(MESSAGE_WITHIN_S, self._late)

    def _late(self) -> None:
        """The rest of a message did not come; unless it was us who did not read it."""
        self._deadline = None
        if self.read_paused:
            self._expect_the_rest()
        else:
            self.close(frames.REFUSED, f"expected a whole message within {MESSAGE_WITHIN_S:.0f} s")

    def _turn(self) -> None:
        """Hand on one message; the next one when all others had their turn."""
        self._turn_comes = False
        if self._listener is None or self._closed or self._held or not self.writable.is_set():
            self._pause()
            return
        try:
            found = self._incoming.take()
            if found is not None:
                self._handle(*found)
        except Broken as wrong:
            self.close(wrong.code, wrong.reason)
            return
        if found is not None and self._incoming:
            self._next_turn()
        elif not self._held:
            self._expect_the_rest()
            self._resume()

    def _handle(self, kind: int, payload: bytes) -> None:
        if kind == frames.MORE:  # of a message in very many frames some have come
            return
        if kind >= frames.CLOSE:  # it may come amid a message, whose time goes on
            self._free(CONTROL_HEAD_BYTES + len(payload))
        else:
            self._finish(len(self._incoming))
        if kind == self._incoming.kind and self._listener is not None:
            self._listener(payload)
        elif kind == frames.PING:
            self._write(frames.control(frames.PONG, payload))
        elif kind == frames.CLOSE:
            frames.check_close(payload)
            self._write(frames.control(frames.CLOSE, payload))
            self._end()

    def _next_turn(self) -> None:
        if not (self._turn_comes or self._closed):
            self._turn_comes = True
            self.loop.call_soon(self._turn)
        if len(self._incoming) > READ_AHEAD_BYTES:
            self._pause()

    def _pause(self) -> None:
        if not (self.read_paused or self._closed or self.transport.is_closing()):
            self.read_paused = True
            self.transport.pause_reading()

    def _resume(self) -> None:
        if self.read_paused and not self.transport.is_closing():
            self.read_paused = False
            self.transport.resume_reading()

    # out

    def _write(self, frame: bytes) -> None:
        if not (self._closed or self.transport.is_closing()):
            self._sent_bytes += len(frame)
            self.transport.write(frame)

    def _end(self) -> None:
        """No more is said. The other side closes when it has heard so; one that does not is cut."""
        self._closed = True
        self._finish()
        self._incoming.clear()
        self._resume()
        if self.transport.can_write_eof():  # TLS has no such thing
            self.transport.write_eof()
        self.close_timer = self.loop.call_later(CLOSES_WITHIN_S, self.transport.abort)
