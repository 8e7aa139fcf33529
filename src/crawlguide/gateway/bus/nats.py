"""NATS: requests that somebody waits for, and messages that JetStream keeps until they are answered.

What JetStream keeps has subjects of its own: where a stream holds the subject of a request, the server itself replies
to it, and whoever waits takes that for the answer.
"""

from __future__ import annotations

import asyncio
import ssl
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec
from nats.aio.client import Client
from nats.errors import Error, MaxPayloadError
from nats.js.api import AckPolicy, ConsumerConfig, DiscardPolicy, RetentionPolicy, StreamConfig
from nats.js.errors import NotFoundError, ServiceUnavailableError

from crawlguide.core.errors import Forbidden
from crawlguide.core.telemetry import WARNING, happened
from crawlguide.gateway.bus.messages import VERBS, BusAway, Received, TooLargeForBus, addresses, token

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nats.aio.msg import Msg

    from crawlguide.core.config import BusOptions
    from crawlguide.gateway.bus.messages import BusMessage, Names

WITHIN_S = 5.0
CLOSED_S = 2.0
PULL_S = 5.0  # for which the server keeps one request for messages
ACKNOWLEDGED_BY = "$JS.ACK."  # how the reply of a message begins that JetStream keeps; of its own words none does
INBOXES = ("_INBOX", "_R_.")  # of clients, and of other accounts
ENDED = ("404", "408")  # statuses of a pull that brought less than it might have
DAY_S, STREAM_BYTES = 86_400.0, 256 * 1024 * 1024
NO_TLS = "the server does without TLS, which bus.nats (tls://) or bus.tls_ca asks for; nothing was shown to it"
AWAY = (Error, OSError, TimeoutError, asyncio.TimeoutError)


class NatsConnection:
    """One connection. It does not reconnect by itself: that is done in one place for all kinds."""

    kind = "nats"

    def __init__(self, options: BusOptions, names: Names) -> None:
        self._options, self._names = options, names
        self._group = options.group or names.prefix.replace(".", "_")
        self._client: Client | None = None
        self._arrived: asyncio.Queue[Received | None] = asyncio.Queue()  # None: look what has happened
        self._asked_for = 0  # messages that the server may still send
        self._lost = ""
        self._has_jetstream = False

    async def connect(self, on_request: Callable[[Received], None]) -> None:
        self._on_request = on_request
        try:
            self._client = _Client()
            await self._client.connect(
                addresses(self._options.nats), name="crawlguide", allow_reconnect=False,
                connect_timeout=int(WITHIN_S), max_reconnect_attempts=1, reconnect_time_wait=0,
                ping_interval=10, max_outstanding_pings=2,
                error_cb=self._failed, closed_cb=self._closed, disconnected_cb=self._closed, **self._credentials(),
            )  # fmt: skip
            self._lost = ""
            self._jetstream = self._client.jetstream(timeout=WITHIN_S)
            self._has_jetstream = await self._prepare()
            if self._has_jetstream:
                self._inbox = self._client.new_inbox()
                await self._client.subscribe(self._inbox, cb=self._pulled)
            for verb in VERBS:
                await self._client.subscribe(f"{self._names.prefix}.{verb}", self._group, cb=self._requested)
            await self._client.flush(int(WITHIN_S))
        except AWAY as problem:
            words = self._lost or _words(problem)
            await self.close()
            raise BusAway(words) from None

    async def receive(self, most: int) -> Sequence[Received]:
        """One request to the server at a time, for as many as there is room for."""
        if self._arrived.empty() and not self._asked_for and self._has_jetstream:
            await self._pull(most)
        found = list[Received]()
        with suppress(TimeoutError):
            async with asyncio.timeout(PULL_S + 2.0):
                found += filter(None, [await self._arrived.get()])
        while not self._arrived.empty():
            found += filter(None, [self._arrived.get_nowait()])
        if self._lost:
            raise BusAway(self._lost)
        self._asked_for = max(0, self._asked_for - len(found)) if found else 0
        return found

    async def done(self, received: Received) -> None:
        if received.handle is not None:
            with _reachable():
                await received.handle.ack()

    async def later(self, received: Received, delay_s: float, aside: bool = False) -> None:  # noqa: ARG002
        """It waits with the server, and takes no place here.

        Where the server cannot be told, it sends the message again by itself, after `bus.redeliver_s`.
        """
        if received.handle is not None:
            with _reachable():
                await received.handle.nak(delay=delay_s)

    async def publish(self, outgoing: Sequence[BusMessage]) -> None:
        with _reachable():
            await asyncio.gather(*map(self._publish, outgoing))

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            with suppress(*AWAY):
                await client.flush(1)
            with suppress(*AWAY):  # after a handshake that failed asyncio waits for ever for the end of the connection
                await asyncio.wait_for(client.close(), CLOSED_S)

    # the server

    def _credentials(self) -> dict[str, Any]:
        options, given = self._options, dict[str, Any]()
        if options.nats_credentials:
            given["user_credentials"] = options.nats_credentials
        if options.nats_user:
            given |= {"user": options.nats_user, "password": options.nats_password}
        if options.tls_ca:
            given["tls"] = ssl.create_default_context(cafile=options.tls_ca)
        return given

    async def _prepare(self) -> bool:
        """Make the streams that are not there; those that are stay as their operator made them."""
        try:
            for stream in self._streams():
                try:
                    await self._jetstream.stream_info(str(stream.name))
                except NotFoundError:
                    await self._jetstream.add_stream(stream)
            await self._jetstream.add_consumer(self._queue_stream, self._consumer())
        except ServiceUnavailableError:
            words = "NATS runs without JetStream: requests are answered, and nothing is kept for those who are away"
            happened("bus_trouble", words, WARNING, bus=self.kind)
            return False
        return True

    @property
    def _queue_stream(self) -> str:
        return f"{self._names.prefix.replace('.', '_')}-queue"

    def _streams(self) -> list[StreamConfig]:
        prefix, base = self._names.prefix, self._names.prefix.replace(".", "_")
        bounded: dict[str, Any] = {"max_bytes": STREAM_BYTES, "max_age": DAY_S, "duplicate_window": 600.0}
        return [
            StreamConfig(
                name=self._queue_stream, subjects=[f"{prefix}.queue.>"], retention=RetentionPolicy.WORK_QUEUE,
                discard=DiscardPolicy.NEW, max_bytes=STREAM_BYTES, duplicate_window=600.0,
            ),
            StreamConfig(name=f"{base}-answers", subjects=[f"{prefix}.answers.>"], **bounded),
            StreamConfig(name=f"{base}-events", subjects=[f"{prefix}.events.>"], **bounded),
            StreamConfig(name=f"{base}-dead", subjects=[f"{prefix}.dead"], **{**bounded, "max_age": 30 * DAY_S}),
        ]  # fmt: skip

    def _consumer(self) -> ConsumerConfig:
        return ConsumerConfig(
            durable_name=self._group, ack_policy=AckPolicy.EXPLICIT, ack_wait=self._options.redeliver_s,
            max_deliver=-1, max_ack_pending=100_000, filter_subject=f"{self._names.prefix}.queue.>",
        )  # fmt: skip

    async def _pull(self, most: int) -> None:
        wanted = {"batch": most, "expires": int(PULL_S * 1e9)}
        subject = f"$JS.API.CONSUMER.MSG.NEXT.{self._queue_stream}.{self._group}"
        with _reachable():
            await self._connected().publish(subject, msgspec.json.encode(wanted), reply=self._inbox)
        self._asked_for = most

    async def _pulled(self, message: Msg) -> None:
        if message.reply.startswith(ACKNOWLEDGED_BY):  # whatever its headers say: anybody may have put it there
            self._arrived.put_nowait(self._kept_message(message))
            return
        status = (message.headers or {}).get("Status")
        if status not in ENDED:
            self._lost = f"JetStream says {status} {(message.headers or {}).get('Description', '')}"
        self._asked_for = 0
        self._arrived.put_nowait(None)

    def _kept_message(self, message: Msg) -> Received:
        about = message.metadata
        name = f"nats-{about.sequence.stream}-{about.timestamp.timestamp():.6f}"
        verb = message.subject.removeprefix(f"{self._names.prefix}.queue.")
        return Received(verb, message.subject, message.data, _headers(message), name, handle=message)

    async def _requested(self, message: Msg) -> None:
        verb = message.subject.removeprefix(f"{self._names.prefix}.")
        headers = _headers(message)
        if message.reply and not message.reply.startswith(INBOXES):
            words = f"reply: expected an inbox, got {message.reply[:200]!r}"
            happened("request_refused", words, code=Forbidden.code, route=f"nats {verb}")
            return
        respond = partial(self._respond, message.reply) if message.reply else None
        self._on_request(Received(verb, message.subject, message.data, headers, respond=respond))

    async def _respond(self, inbox: str, body: bytes, headers: dict[str, str]) -> None:
        with _reachable():
            await self._connected().publish(inbox, body, headers=headers or None)

    async def _publish(self, outgoing: BusMessage) -> None:
        subject, headers = self._subject(outgoing), dict(outgoing.headers)
        if not self._has_jetstream:
            await self._connected().publish(subject, outgoing.body, headers=headers)
            return
        if "id" in headers:
            headers["Nats-Msg-Id"] = headers["id"]
        await self._jetstream.publish(subject, outgoing.body, timeout=WITHIN_S, headers=headers)

    def _subject(self, outgoing: BusMessage) -> str:
        if outgoing.reply_to:
            return outgoing.reply_to
        base = self._names.of(outgoing.place, outgoing.tenant)
        return base if outgoing.place == "dead" else f"{base}.{token(outgoing.subject_end)}"

    def _connected(self) -> Client:
        if self._client is None:
            raise BusAway("the connection was closed")
        return self._client

    async def _failed(self, problem: Exception) -> None:
        self._note_loss(_words(problem))

    async def _closed(self) -> None:
        self._note_loss("the connection was lost")

    def _note_loss(self, words: str) -> None:
        if self._client is None or self._client.is_closed or not self._client.is_connected:
            self._lost = self._lost or words
            self._arrived.put_nowait(None)


class _Client(Client):
    """One bad head must not end the connection, to which the server would bring it again and again.

    And where TLS is wanted nothing is shown without it: nats-py takes the server's word for whether it is needed, which
    anybody on the way may say.
    """

    async def _process_info(self, info: dict[str, Any], initial_connection: bool = False) -> None:
        """The first one comes before the user and the password are sent."""
        if initial_connection and self._wants_tls:
            if info.get("tls_available"):
                self._server_info["tls_required"] = True  # by us
            if self._current_scheme == "ws" or not self._server_info.get("tls_required"):
                raise Error(NO_TLS)
        await super()._process_info(info, initial_connection)

    @property
    def _wants_tls(self) -> bool:
        """A connection by wss is encrypted before anything is said."""
        return self._current_scheme == "tls" or ("tls" in self.options and self._current_scheme != "wss")

    @property
    def _current_scheme(self) -> str:
        return "" if self._current_server is None else str(self._current_server.uri.scheme)

    async def _process_headers(self, headers: bytes) -> dict[str, str] | None:
        """None where they cannot be read, as when there are none."""
        try:
            return await super()._process_headers(headers)
        except (IndexError, UnicodeDecodeError):
            return None


class _reachable:  # noqa: N801 - reads as a word
    """What goes wrong with the connection is `BusAway`."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, problem: BaseException | None, _: object) -> None:
        if isinstance(problem, MaxPayloadError):
            raise TooLargeForBus("see `max_payload` of the server") from None
        if isinstance(problem, AWAY):
            raise BusAway(_words(problem)) from None


def _headers(message: Msg) -> dict[str, str]:
    return {name.lower(): text for name, text in (message.headers or {}).items()}


def _words(problem: BaseException) -> str:
    return (str(problem) or type(problem).__name__).removeprefix("nats: ")
