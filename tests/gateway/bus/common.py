"""Real buses for tests, and a guide with the door to them in this process."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import nats
from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition
from nats.js.api import AckPolicy, ConsumerConfig

from crawlguide.core.config import AccessOptions, BusOptions, Config, GuideOptions, StoreOptions
from crawlguide.core.messages import VERSION
from crawlguide.gateway.access import api_keys
from crawlguide.gateway.access.credential import grants_of
from crawlguide.gateway.bus.door import BusDoor
from crawlguide.gateway.opening import MEMORY, open_guide
from crawlguide.gateway.service import Service

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from nats.aio.client import Client
    from nats.aio.msg import Msg

WITHIN_S = 30.0
SERVER = Path(sys.executable).parent / "nats-server"
MOCK = """
import sys
from confluent_kafka import Producer
mock = Producer({"bootstrap.servers": "", "test.mock.num.brokers": 1, "test.mock.broker.rtt": 0} | {})
found = mock.list_topics(timeout=10)
print(",".join(f"{one.host}:{one.port}" for one in found.brokers.values()), flush=True)
while True:
    mock.poll(1.0)
"""


class NatsServer:
    """A server with JetStream that can be stopped and started again at the same port, with what it kept."""

    def __init__(self, folder: Path, jetstream: bool = True, more: str = "") -> None:
        self._folder, self._port = folder, -1
        self._jetstream, self._more = jetstream, more
        folder.mkdir(parents=True, exist_ok=True)
        self.start()

    @property
    def url(self) -> str:
        return f"nats://127.0.0.1:{self._port}"

    def start(self) -> None:
        settings = [
            f"listen: 127.0.0.1:{self._port}",
            "" if "max_payload" in self._more else "max_payload: 4194304",
            f'ports_file_dir: "{self._folder}"',
        ]
        if self._jetstream:
            settings.append(
                f'jetstream {{ store_dir: "{self._folder / "kept"}", sync_interval: always, max_file: 1TB }}'
            )
        (self._folder / "nats.conf").write_text("\n".join([*settings, self._more]))
        command = [str(SERVER), "-c", str(self._folder / "nats.conf"), "-l", str(self._folder / "log.txt")]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        ports, until = self._folder / f"nats-server_{self.process.pid}.ports", time.monotonic() + WITHIN_S
        while not (ports.exists() and ports.read_text().strip().endswith("}")):
            assert self.process.poll() is None, (self._folder / "log.txt").read_text()
            assert time.monotonic() < until
            time.sleep(0.02)
        self._port = int(json.loads(ports.read_text())["nats"][0].rpartition(":")[2])

    def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        self.process.send_signal(how)
        self.process.wait(WITHIN_S)


class KafkaMock:
    """librdkafka's mock cluster in a process of its own, which can be held up and go on."""

    def __init__(self) -> None:
        self.process = subprocess.Popen([sys.executable, "-c", MOCK], stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.address = self.process.stdout.readline().strip()
        assert self.address

    def hold(self) -> None:
        os.kill(self.process.pid, signal.SIGSTOP)

    def go_on(self) -> None:
        os.kill(self.process.pid, signal.SIGCONT)

    def stop(self) -> None:
        self.process.kill()
        self.process.wait(WITHIN_S)
        assert self.process.stdout is not None
        self.process.stdout.close()


def fresh_prefix() -> str:
    return f"t{uuid4().hex[:10]}"


def config(bus: BusOptions, data: str | Path = MEMORY, access: AccessOptions | None = None, **more: Any) -> Config:
    filters = tuple(name for name in GuideOptions().filters if name != "robots")
    return Config(
        bus=bus,
        guide=GuideOptions(filters=filters),
        store=StoreOptions(data=str(data)),
        access=access or AccessOptions(),
        **more,
    )


def key(data: Path, *scopes: str, crawl: str = "*", tenant: str = "default", **more: Any) -> str:
    """The header that shows a key."""
    text, _ = api_keys.create(data / "access" / api_keys.FILE, grants_of(scopes, crawl), tenant, **more)
    return f"Bearer {text}"


@dataclass
class Opened:
    service: Service
    door: BusDoor

    @property
    def guide(self) -> Any:
        return self.service.guide

    async def joined(self) -> None:
        async with asyncio.timeout(WITHIN_S):
            for bus in self.door.buses:
                await bus.joined.wait()


@asynccontextmanager
async def opened(settings: Config, wait: bool = True) -> AsyncIterator[Opened]:
    """A guide with the door, as `crawlguide serve` has them."""
    service = Service(open_guide(settings.store.data, settings), settings)
    door = BusDoor(service)
    await door.open()
    found = Opened(service, door)
    try:
        if wait:
            await found.joined()
        yield found
    finally:
        service.draining = True
        await door.close()
        await service.guide.close()


def ask(**more: Any) -> dict[str, Any]:
    return {"mcp_version": VERSION, "crawler_id": "c-1", "budget": {"max_urls": 3}, **more}


def report(url: str, **more: Any) -> dict[str, Any]:
    fetches = [{"url": url, "status": 200, "outlinks": []}]
    return {"mcp_version": VERSION, "crawler_id": "c-1", "fetches": fetches, **more}


def seeds(*urls: str) -> dict[str, Any]:
    return {"context": {"seed_urls": list(urls)}}


async def until(holds: Callable[[], Any], within_s: float = WITHIN_S) -> Any:
    """Wait for what has to come true; returns it."""
    ends = time.monotonic() + within_s
    while not (seen := await found if asyncio.iscoroutine(found := holds()) else found):
        assert time.monotonic() < ends, "it never came true"
        await asyncio.sleep(0.02)
    return seen


class NatsCrawler:
    """A crawler on NATS."""

    def __init__(self, client: Client, prefix: str) -> None:
        self.client, self.prefix = client, prefix
        self.stream = client.jetstream(timeout=WITHIN_S)

    async def request(self, verb: str, message: Any, **headers: str) -> Any:
        answer = await self.requested(verb, message, **headers)
        return json.loads(answer.data)

    async def requested(self, verb: str, message: Any, **headers: str) -> Msg:
        body = message if isinstance(message, bytes) else json.dumps(message).encode()
        return await self.client.request(f"{self.prefix}.{verb}", body, WITHIN_S, headers=headers or None)

    async def put(self, verb: str, message: Any, **headers: str) -> None:
        """Into the queue that JetStream keeps."""
        body = message if isinstance(message, bytes) else json.dumps(message).encode()
        names = {name.replace("_", "-"): text for name, text in headers.items()}
        await self.stream.publish(f"{self.prefix}.queue.{verb}", body, headers=names or None)

    async def all_of(self, place: str) -> list[Msg]:
        """Everything that a stream holds under a subject, such as `answers.default.c-1`."""
        name = f"{self.prefix}-{place.partition('.')[0]}"
        unbounded = ConsumerConfig(ack_policy=AckPolicy.NONE)
        subscription = await self.stream.pull_subscribe(f"{self.prefix}.{place}", stream=name, config=unbounded)
        found: list[Msg] = []
        pending = (await subscription.consumer_info()).num_pending or 0
        while len(found) < pending:
            found += await subscription.fetch(min(200, pending - len(found)), timeout=5)
        await subscription.unsubscribe()
        return found

    async def bodies(self, place: str) -> list[Any]:
        return [json.loads(message.data) for message in await self.all_of(place)]


@asynccontextmanager
async def nats_crawler(url: str, prefix: str) -> AsyncIterator[NatsCrawler]:
    client = await nats.connect(url)
    try:
        yield NatsCrawler(client, prefix)
    finally:
        await client.close()


class KafkaCrawler:
    """A crawler on Kafka; everything in threads, as a plain script would do it."""

    def __init__(self, address: str, prefix: str) -> None:
        self._address, self.prefix = address, prefix
        self._producer = Producer({"bootstrap.servers": address, "enable.idempotence": True})

    async def put(self, verb: str, message: Any, key: str = "c-1", **headers: str) -> None:
        body = message if isinstance(message, bytes) else json.dumps(message).encode()
        names: Any = [(name.replace("_", "-"), text) for name, text in headers.items()]
        self._producer.produce(f"{self.prefix}.{verb}", body, key, headers=names)
        assert await asyncio.to_thread(self._producer.flush, WITHIN_S) == 0

    async def read(self, place: str, holds: Callable[[list[Any]], Any], within_s: float = WITHIN_S) -> list[Any]:
        """Messages of a topic from its beginning, until there are enough."""
        consumer, found = self.follow(place), list[Any]()
        try:
            return await self.more(consumer, found, holds, within_s)
        finally:
            consumer.close()

    def follow(self, place: str) -> Consumer:
        """A reader of a topic from its beginning."""
        return self.reading(self.made(place))

    def made(self, *places: str) -> list[TopicPartition]:
        """Topics are there from now on: those that subscribe before they are find them only after seconds."""
        topics = [self._producer.list_topics(f"{self.prefix}.{place}", WITHIN_S) for place in places]
        return [
            TopicPartition(name, partition, OFFSET_BEGINNING)
            for found in topics
            for name, topic in found.topics.items()
            for partition in topic.partitions
        ]

    def reading(self, partitions: list[TopicPartition]) -> Consumer:
        """A reader in no group, which has nothing to join."""
        consumer = Consumer({"bootstrap.servers": self._address, "group.id": uuid4().hex, "fetch.wait.max.ms": 10})
        consumer.assign(partitions)
        return consumer

    async def committed(self, group: str, place: str) -> int:
        """How many messages of a topic a group has done with, as the broker knows it."""
        partitions = [TopicPartition(one.topic, one.partition) for one in self.made(place)]
        consumer = Consumer({"bootstrap.servers": self._address, "group.id": group})
        try:
            offsets = await asyncio.to_thread(consumer.committed, partitions, WITHIN_S)
        finally:
            consumer.close()
        return sum(max(one.offset, 0) for one in offsets)

    async def more(
        self, consumer: Consumer, found: list[Any], holds: Callable[[list[Any]], Any], within_s: float = WITHIN_S
    ) -> list[Any]:
        """Read on until there are enough."""

        def polled() -> list[Any]:
            until = time.monotonic() + within_s
            while not holds(found) and time.monotonic() < until:
                message = consumer.poll(0.1)
                if message is not None and message.error() is None:
                    found.append(message)
            return found

        return await asyncio.to_thread(polled)
