"""Messages of very many parts are refused by their bytes, before anything is built of them."""

from __future__ import annotations

from itertools import repeat
from typing import TYPE_CHECKING, Any

import grpc
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.gateway.grpc_door.common import WITHIN_S, Opened, Raw, details, refused
from tests.gateway.waiting import MOST_S, others_wait

from crawlguide.core.errors import TooLarge
from crawlguide.gateway.grpc import guide_pb2
from crawlguide.gateway.grpc.counting import FEW_BYTES, MOST_PARTS, _fields, check_parts, count_parts
from crawlguide.gateway.urlfrontier import urlfrontier_pb2

if TYPE_CHECKING:
    from google.protobuf.message import Message

ONE = b"\x1a\x00"  # an empty fetch
EMPTY = ONE * 1_900_000


def counted(message: Message) -> int:
    return count(message.SerializeToString(), type(message))


def count(data: bytes, kind: Any, most: int = MOST_PARTS) -> int:
    inspected: Any = count_parts
    return int(inspected(np.frombuffer(data, np.uint8), _fields(kind.DESCRIPTOR), most))


def test_messages_within_messages_and_texts_of_lists_are_counted() -> None:
    links = [guide_pb2.Outlink(url="/a", anchor="more"), guide_pb2.Outlink(url="/b")]
    fetches = [guide_pb2.Fetch(url="https://a.example/", status=200, outlinks=links, robots_meta=["noindex"])]
    assert counted(guide_pb2.ReportMessage(crawler_id="c", fetches=fetches)) == 1 + 2 + 1
    seeds = guide_pb2.Context(seed_urls=["a", "b", "c"])
    assert counted(guide_pb2.AskMessage(crawler_id="c", context=seeds)) == 1 + 3
    info = urlfrontier_pb2.URLInfo(url="https://a.example/", metadata={"k": urlfrontier_pb2.StringList(values=["v"])})
    assert counted(urlfrontier_pb2.DiscoveredBatch(items=[info])) == 1 + 2 + 1


def test_what_no_crawler_has_to_say_is_refused_and_the_longest_report_is_not() -> None:
    check_parts(ONE * (MOST_PARTS // 2), guide_pb2.ReportMessage.DESCRIPTOR)
    with pytest.raises(TooLarge, match="at most 100000 messages and texts"):
        check_parts(EMPTY, guide_pb2.ReportMessage.DESCRIPTOR)
    links = list(repeat(guide_pb2.Outlink(url="https://a.example/" + 60 * "x", anchor="more"), 10_000))
    fetches = [guide_pb2.Fetch(url="https://a.example/", outlinks=links) for _ in range(4)]
    check_parts(guide_pb2.ReportMessage(fetches=fetches).SerializeToString(), guide_pb2.ReportMessage.DESCRIPTOR)


@given(st.binary(max_size=200))
def test_any_bytes_are_walked_to_an_end(data: bytes) -> None:
    for kind in (guide_pb2.ReportMessage, guide_pb2.AskMessage, urlfrontier_pb2.DiscoveredBatch):
        assert 0 <= count(data, kind, 10) <= 11


@pytest.mark.parametrize("token", ["", "cg_0123456789abcdef_x"])
def test_nothing_long_is_read_for_somebody_unknown(door: Opened, token: str) -> None:
    with others_wait(door.guarded.server) as wait, refused(grpc.StatusCode.UNAUTHENTICATED):
        _send(Raw(door.port, token), EMPTY)
    assert wait.longest_s < MOST_S, wait


def test_somebody_known_is_refused_as_well_and_keeps_nobody_waiting(door: Opened) -> None:
    with others_wait(door.guarded.server) as wait, refused(grpc.StatusCode.RESOURCE_EXHAUSTED) as problem:
        _send(door.raw(), EMPTY)
    assert details(problem.value)["ErrorInfo"].reason == "too_large"
    assert wait.longest_s < MOST_S, wait


def _send(raw: Raw, body: bytes) -> None:
    """Bytes as they are, where a generated client would build a message."""
    assert len(body) > FEW_BYTES
    call: Any = raw.channel.unary_unary("/crawlguide.v1.Guide/Report")
    call(body, timeout=WITHIN_S, metadata=raw.shown)
