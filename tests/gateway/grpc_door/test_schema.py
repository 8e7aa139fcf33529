"""One schema: the .proto has the fields of our messages, and a method for every endpoint."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from crawlguide.core import messages
from crawlguide.gateway import lookups, routes
from crawlguide.gateway.grpc import guide_pb2
from crawlguide.gateway.grpc.methods import METHODS, SERVICE, WHOLE
from crawlguide.gateway.grpc.streams import STREAMS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from google.protobuf.descriptor import Descriptor

PROTO = Path(guide_pb2.__file__).with_name("guide.proto")
OURS = {
    name: kind
    for home in (lookups, routes, messages)
    for name, kind in vars(home).items()
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct)
}
OURS["ReleaseRequest"] = OURS["ReleaseMessage"]
OURS["AddSeedsRequest"] = OURS["SeedsMessage"]
ELSEWHERE = {"CrawlMessage": {"created"}, "ReleaseRequest": {"crawl_id"}, "AddSeedsRequest": {"crawl_id"}}
KINDS: Mapping[str, Descriptor] = guide_pb2.DESCRIPTOR.message_types_by_name


@pytest.mark.parametrize("name", sorted(KINDS.keys() & OURS.keys()))
def test_a_message_has_the_fields_it_has_in_json(name: str) -> None:
    fields = {field.name for field in KINDS[name].fields} - ELSEWHERE.get(name, set())
    assert fields == set(OURS[name].__struct_fields__)


def test_every_message_of_the_protocol_is_there() -> None:
    answers = {route.gives for route in routes.ROUTES if isinstance(route.gives, type)}
    named = {kind.__name__ for kind in answers if issubclass(kind, msgspec.Struct)} - {"HandRules"}
    assert named | {"AskMessage", "ReportMessage", "SeedMessage", "ErrorBody"} <= {*KINDS.keys()}


def test_every_endpoint_has_a_method_and_every_method_an_endpoint() -> None:
    assert {(one.method, one.path) for one in METHODS} == {(one.method, one.path) for one in routes.ROUTES}
    assert {one.name for one in (*METHODS, *STREAMS)} == {*SERVICE.methods_by_name.keys()}


def test_a_request_that_is_the_message_is_the_one_its_endpoint_takes() -> None:
    for method in METHODS:
        taken = routes.BY_ENDPOINT[method.method, method.path].takes
        assert method.takes is (taken if method.body == WHOLE else None), method.name


def test_a_query_has_the_parameters_of_its_endpoint() -> None:
    for method in METHODS:
        route = next(one for one in routes.ROUTES if (one.method, one.path) == (method.method, method.path))
        fields = {field.name for field in SERVICE.methods_by_name[method.name].input_type.fields}
        if not method.body:
            assert fields == set(route.query) | ({"crawl_id"} if method.of_crawl else set())


def test_what_may_be_left_out_of_a_request_can_be_told_from_zero() -> None:
    seen: set[str] = set()

    def look(kind: Any) -> None:
        for field in kind.fields if kind.name not in seen | {"Json"} else ():
            assert field.has_presence or field.is_repeated or field.name in {"lines", "id"}, field.full_name
            seen.add(kind.name)
            if field.message_type:
                look(field.message_type)

    for method in SERVICE.methods:
        look(method.input_type)


def test_units_and_zero_values_stand_in_the_comments() -> None:
    numbers = re.findall(r"^  optional (?:double|float|u?int\d+|bool) .*$", PROTO.read_text(), re.MULTILINE)
    assert len(numbers) > 10
    for line in numbers:
        assert "//" in line, line
