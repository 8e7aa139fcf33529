"""What the door for gRPC costs: an ask and a report through it, over bare gRPC, and without any door.

python -m bench.grpc_door --urls 30 --rounds 300

Bare is a server of grpc.aio that takes and gives the same messages, made before, and does nothing. Client and server
share one process, whose CPU time is counted, so that a busy machine changes little. The door should cost at most
1.3 × bare + the guide itself.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import time
from collections.abc import Awaitable, Callable
from statistics import median
from typing import Any

import grpc.aio
from google.protobuf.message_factory import GetMessageClass

from crawlguide import AsyncGuide
from crawlguide.core.config import Config, ServerOptions
from crawlguide.core.messages import VERSION, AskMessage, ReportMessage
from crawlguide.gateway import wire
from crawlguide.gateway.grpc import guide_pb2
from crawlguide.gateway.grpc.guide_pb2_grpc import GuideStub
from crawlguide.gateway.grpc.methods import SERVICE
from crawlguide.gateway.grpc.server import GrpcDoor
from crawlguide.gateway.service import Service

FREE = {"policy": {"robots": "ignore", "default_delay_s": 0, "max_per_host": 0}}
Asks = Callable[[int], Awaitable[Any]]


def asking(most: int, number: int) -> dict[str, Any]:
    return {"mcp_version": VERSION, "crawler_id": f"c-{number}", "budget": {"max_urls": most}}


def telling(links: int, number: int) -> dict[str, Any]:
    found = [{"url": f"https://h{at % 50}.example/{number}/{at}", "anchor": "more of it"} for at in range(links)]
    fetch = {"url": f"https://h{number % 50}.example/", "status": 200, "relevance": 0.5, "outlinks": found}
    return {"mcp_version": VERSION, "crawler_id": "c", "fetches": [fetch]}


async def timed(lines: list[Asks], rounds: int) -> list[float]:
    """The median of each, in milliseconds of CPU time. They take turns, so that all see the same frontier."""
    took: list[list[float]] = [[] for _ in lines]
    for number in range(rounds):
        for line, times in zip(lines, took, strict=True):
            began = time.process_time()
            await line(number)
            times.append((time.process_time() - began) * 1_000)
    return [median(times) for times in took]


async def bare_server(answers: dict[str, Any]) -> tuple[grpc.aio.Server, int]:
    def served(name: str) -> grpc.RpcMethodHandler[Any, Any]:
        async def give(_: Any, __: Any) -> Any:
            return answers[name]

        method = SERVICE.methods_by_name[name]
        takes, gives = GetMessageClass(method.input_type), GetMessageClass(method.output_type)
        return grpc.unary_unary_rpc_method_handler(give, takes.FromString, gives.SerializeToString)

    server = grpc.aio.server()
    handlers = {name: served(name) for name in answers}
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE.full_name, handlers),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    return server, port


async def measured(urls: int, rounds: int) -> dict[str, tuple[float, float, float]]:
    """By verb: the guide itself, bare gRPC, the door."""
    guide = AsyncGuide.open(":memory:")
    await guide.define("default", FREE)
    await guide.seed("default", [f"https://h{at % 500}.example/{at}" for at in range(4 * urls * rounds + 10_000)])
    door = GrpcDoor(Service(guide._guide, Config(server=ServerOptions(grpc_port=0))))
    port = (await door.open())["grpc_port"]
    gc.collect()
    gc.freeze()  # as a server does
    found = {}
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        stub: Any = GuideStub(channel)
        asks = [guide_pb2.AskMessage(**asking(urls, number)) for number in range(rounds)]
        reports = [guide_pb2.ReportMessage(**telling(urls, number + rounds)) for number in range(rounds)]
        answers = {"Next": await stub.Next(asks[0]), "Report": await stub.Report(reports[0])}
        server, bare_port = await bare_server(answers)
        async with grpc.aio.insecure_channel(f"127.0.0.1:{bare_port}") as other:
            bare: Any = GuideStub(other)
            own = [wire.convert(asking(urls, number), AskMessage) for number in range(rounds)]
            told = [wire.convert(telling(urls, number), ReportMessage) for number in range(rounds)]
            for name, mine, sent in (("Next", own, asks), ("Report", told, reports)):
                verb = guide._guide.ask if name == "Next" else guide._guide.tell
                lines: list[Asks] = [
                    lambda number, verb=verb, mine=mine: verb(mine[number]),  # type: ignore[misc]
                    lambda number, name=name, sent=sent: getattr(bare, name)(sent[number]),  # type: ignore[misc]
                    lambda number, name=name, sent=sent: getattr(stub, name)(sent[number]),  # type: ignore[misc]
                ]
                found[name] = tuple(await timed(lines, rounds))
        await server.stop(None)
    await door.close()
    await guide.close()
    return found  # type: ignore[return-value]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--urls", type=int, default=30, help="URLs in an ask, links in a report")
    parser.add_argument("--rounds", type=int, default=300)
    words = parser.parse_args()
    print("verb    guide ms  bare ms  door ms  (door - guide) / bare")
    for verb, (own, bare, door) in asyncio.run(measured(words.urls, words.rounds)).items():
        print(f"{verb:6}  {own:8.3f}  {bare:7.3f}  {door:7.3f}  {(door - own) / bare:.2f}")


if __name__ == "__main__":
    main()
