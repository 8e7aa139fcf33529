"""Kafka, by librdkafka: a consumer group for what comes in, an idempotent producer for what goes out.

The asyncio producer of confluent-kafka sends no headers, so the plain one is used, with a thread for its callbacks.
"""

from __future__ import annotations

import asyncio
import heapq
import threading
from contextlib import suppress
from itertools import count
from typing import TYPE_CHECKING, Any

from confluent_kafka import KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.aio import AIOConsumer

from crawlguide.core.telemetry import WARNING, happened
from crawlguide.gateway.bus.messages import VERBS, BusAway, Received, TooLargeForBus

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from confluent_kafka import Message

    from crawlguide.core.config import BusOptions
    from crawlguide.gateway.bus.messages import BusMessage, Names

WITHIN_S, POLL_S = 5.0, 0.2
FETCH_WAIT_MS = 500  # for which a broker that has nothing keeps a request for messages
DELIVERED_WITHIN_S = 10.0
LARGEST_BYTES = 8 * 1024 * 1024
SHORTEST_SESSION_S = 6.0
MISSING = (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION)
Partition = tuple[str, int]


class KafkaConnection:
    """One consumer and one producer."""

    kind = "kafka"

    def __init__(self, options: BusOptions, names: Names) -> None:
        self._options, self._names = options, names
        self._offsets = Offsets()
        self._waiting: list[tuple[float, int, Received, bool]] = []  # by when they are due; the last: aside
        self._held = 0  # of them that are not aside
        self._numbers = count()
        self._consumer: AIOConsumer | None = None
        self._producer: Producer | None = None
        self._ending = threading.Event()
        self._lost = ""
        self._said_missing = False

    async def connect(self, _on_request: Callable[[Received], None]) -> None:
        """Nobody waits for an answer here, so there are no requests."""
        self._loop = asyncio.get_running_loop()
        try:
            self._producer = Producer(self._common() | {
                "enable.idempotence": True, "linger.ms": 1, "message.max.bytes": LARGEST_BYTES,
                "delivery.timeout.ms": int(DELIVERED_WITHIN_S * 1_000), "error_cb": self._failed,
            })  # fmt: skip
            self._polling = threading.Thread(target=self._poll_producer, name="crawlguide-kafka", daemon=True)
            self._polling.start()
            self._consumer = AIOConsumer(self._common() | {
                "group.id": self._options.group or self._names.prefix, "auto.offset.reset": "earliest",
                "enable.auto.commit": True, "auto.commit.interval.ms": 500, "enable.auto.offset.store": False,
                "fetch.wait.max.ms": FETCH_WAIT_MS,
                "allow.auto.create.topics": True, "topic.metadata.refresh.interval.ms": 10_000,
                "session.timeout.ms": int(max(SHORTEST_SESSION_S, self._options.redeliver_s) * 1_000),
            }, max_workers=2)  # fmt: skip
            await self._consumer.list_topics(timeout=WITHIN_S)
            topics = [f"{self._names.prefix}.{verb}" for verb in VERBS]
            await self._consumer.subscribe(topics, on_revoke=self._revoked, on_lost=self._revoked)
        except KafkaException as problem:
            await self.close()
            raise BusAway(_words(problem)) from None

    async def receive(self, most: int) -> Sequence[Received]:
        consumer, now = self._consumer, self._loop.time()
        if self._lost or consumer is None:
            raise BusAway(self._lost or "the connection was closed")
        due = self._due(now)
        room = most - len(due) - self._held
        if room <= 0:
            if not due:
                await asyncio.sleep(POLL_S)
            return due
        try:
            first = await consumer.poll(timeout=0.0 if due else POLL_S)
            found = [] if first is None else [first, *await consumer.consume(num_messages=room - 1, timeout=0)]
        except KafkaException as problem:
            raise BusAway(_words(problem)) from None
        return due + [received for message in found if (received := self._received(message)) is not None]

    async def done(self, received: Received) -> None:
        """The broker is told within half a second; who is lost before gets it again."""
        topic, partition, offset = received.handle
        position = self._offsets.done((topic, partition), offset)
        if position is not None and self._consumer is not None:
            with suppress(KafkaException, RuntimeError):  # it is another guide's by now
                self._consumer._consumer.store_offsets(offsets=[TopicPartition(topic, partition, position)])

    async def later(self, received: Received, delay_s: float, aside: bool = False) -> None:
        """A topic gives each message once, so it waits here."""
        heapq.heappush(self._waiting, (self._loop.time() + delay_s, next(self._numbers), received, aside))
        self._held += not aside

    async def publish(self, outgoing: Sequence[BusMessage]) -> None:
        sent = [await self._send(one) for one in outgoing]
        await asyncio.gather(*sent)

    async def close(self) -> None:
        consumer, self._consumer = self._consumer, None
        if consumer is not None:
            with suppress(KafkaException, RuntimeError):
                await consumer.close()
        if self._producer is not None and not self._ending.is_set():
            self._ending.set()
            await asyncio.to_thread(self._polling.join)
            self._producer = None

    def _due(self, now: float) -> list[Received]:
        due = []
        while self._waiting and self._waiting[0][0] <= now:
            _, _, received, aside = heapq.heappop(self._waiting)
            self._held -= not aside
            due.append(received)
        return due

    # librdkafka

    def _common(self) -> dict[str, Any]:
        options = self._options
        common: dict[str, Any] = {
            "bootstrap.servers": options.kafka, "client.id": "crawlguide", "security.protocol": options.kafka_security,
            "reconnect.backoff.max.ms": 1_000, "logger": _Quiet(),
        }  # fmt: skip
        if options.kafka_security.startswith("sasl"):
            common |= {"sasl.mechanism": options.kafka_mechanism, "sasl.username": options.kafka_user}
            common |= {"sasl.password": options.kafka_password}
        if options.tls_ca:
            common["ssl.ca.location"] = options.tls_ca
        return common

    async def _send(self, outgoing: BusMessage) -> asyncio.Future[None]:
        delivered: asyncio.Future[None] = self._loop.create_future()
        topic = outgoing.reply_to or self._names.of(outgoing.place, outgoing.tenant)
        headers: list[tuple[str, str | bytes | None]] = list(outgoing.headers.items())

        def on_delivery(problem: KafkaError | None, _: Message) -> None:
            self._loop.call_soon_threadsafe(_settle, delivered, problem)

        if self._producer is None:
            raise BusAway("the connection was closed")
        try:
            self._producer.produce(
                topic, outgoing.body, outgoing.partition_key or None, headers=headers, on_delivery=on_delivery
            )
        except BufferError:
            raise BusAway("too much waits to be sent") from None
        except KafkaException as problem:
            raise _named(problem.args[0]) from None
        return delivered

    def _poll_producer(self) -> None:
        while not self._ending.is_set() and self._producer is not None:
            self._producer.poll(POLL_S / 2)

    def _failed(self, problem: KafkaError) -> None:
        """In the thread of the callbacks. Most troubles end by themselves."""
        if problem.fatal() or problem.code() in (KafkaError._ALL_BROKERS_DOWN, KafkaError._AUTHENTICATION):
            self._lost = self._lost or problem.str()

    async def _revoked(self, _: object, partitions: list[TopicPartition]) -> None:
        """They are another guide's now, and so is what was not acknowledged."""
        for one in partitions:
            self._offsets.forget((one.topic, one.partition))

    def _received(self, message: Message) -> Received | None:
        problem = message.error()
        if problem is not None:
            if problem.code() in MISSING and not self._said_missing:
                self._said_missing = True
                happened("bus_trouble", "Kafka does not have a topic yet: {problem}", WARNING, problem=problem.str())
            return None
        topic, partition, offset = str(message.topic()), int(message.partition() or 0), int(message.offset() or 0)
        self._offsets.begun((topic, partition), offset)
        headers = {name.lower(): _text(value) for name, value in _pairs(message)}
        name = f"kafka-{topic}-{partition}-{offset}-{message.timestamp()[1]}"
        verb = topic.removeprefix(f"{self._names.prefix}.")
        return Received(verb, topic, message.value() or b"", headers, name[-200:], handle=(topic, partition, offset))


class Offsets:
    """How far each partition is done: up to the first message that is not."""

    def __init__(self) -> None:
        self._begun: dict[Partition, dict[int, None]] = {}
        self._next: dict[Partition, int] = {}

    def begun(self, partition: Partition, offset: int) -> None:
        self._begun.setdefault(partition, {})[offset] = None
        self._next[partition] = max(offset + 1, self._next.get(partition, 0))

    def done(self, partition: Partition, offset: int) -> int | None:
        """Where to go on after a restart; None: that is for others to say."""
        begun = self._begun.get(partition, {})
        if offset not in begun:
            return None
        del begun[offset]
        return min(begun) if begun else self._next[partition]

    def forget(self, partition: Partition) -> None:
        self._begun.pop(partition, None)
        self._next.pop(partition, None)


class _Quiet:
    """librdkafka's own log: what matters of it is an error, and comes as one."""

    def log(self, *_: object) -> None:
        pass


def _settle(delivered: asyncio.Future[None], problem: KafkaError | None) -> None:
    if delivered.done():
        return
    if problem is None:
        delivered.set_result(None)
    else:
        delivered.set_exception(_named(problem))


def _named(problem: KafkaError) -> Exception:
    if problem.code() == KafkaError.MSG_SIZE_TOO_LARGE:
        return TooLargeForBus("see `message.max.bytes` of the brokers")
    return BusAway(problem.str())


def _words(problem: KafkaException) -> str:
    return str(problem.args[0].str()) if problem.args else str(problem)


def _pairs(message: Message) -> list[tuple[str, str | bytes | None]]:
    """None where one has a name that is no text: librdkafka cannot read any of them then."""
    try:
        found = message.headers()
    except Exception:  # noqa: BLE001 - a SystemError, and the message must not stop those behind it
        return []
    return list(found or ())  # type: ignore[arg-type]  # a list of pairs, whatever its type allows


def _text(value: str | bytes | None) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else value or ""
