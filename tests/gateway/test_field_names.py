"""The name of a field may be anything, also what looks like a part of an error."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlguide.core.definition import Definition, RulesEdit
from crawlguide.core.errors import MalformedRequest
from crawlguide.core.messages import AskMessage, ReleaseMessage, ReportMessage, SeedsMessage
from crawlguide.gateway import wire

if TYPE_CHECKING:
    import httpx

HEAD = {"mcp_version": "2025-11", "crawler_id": "c-1"}
COMPLETE: dict[Any, dict[str, Any]] = {
    AskMessage: HEAD | {"budget": {"max_urls": 1}},
    ReportMessage: HEAD | {"fetches": []},
    SeedsMessage: {"urls": []},
    ReleaseMessage: {"crawler_id": "c-1"},
    Definition: {},
    RulesEdit: {},
}
PARTS = st.sampled_from([
    "`", " - at `$", "[abc]", "[...]", "[1]", "[99999999999999999999]", "[²]", ".goal", ".urls", "`key` in `$", "$",
    "\n", " ", "unknown field `", "missing required field `x`", "z",
])  # fmt: skip
NAMES = st.lists(PARTS, min_size=1, max_size=8).map("".join) | st.text(max_size=30)


@given(
    st.sampled_from(list(COMPLETE)),
    st.sampled_from(["", "goal", "policy", "rules", "urls", "fetches", "budget"]),
    NAMES,
)
def test_any_name_of_a_field_is_refused_or_taken(kind: type, within: str, name: str) -> None:
    inner = {name: 1}
    for value in (inner, [inner], {"x": inner}) if within else (inner,):
        told = COMPLETE[kind] | ({within: value} if within else inner)
        with suppress(MalformedRequest):
            wire.convert(told, kind)


@pytest.mark.parametrize(
    "name", ["z` - at `$[abc]", "z` - at `$goal[1]", "z` - at `$[...]", "z` - at `$.goal", "`", "a\nb"]
)
def test_the_whole_name_is_told(name: str) -> None:
    for told, field in (({name: 1}, name), ({"policy": {name: 1}}, f"policy.{name}")):
        with pytest.raises(MalformedRequest) as refused:
            wire.convert(told, Definition)
        assert refused.value.field == field
        assert ": unknown field; expected one of " in refused.value.message


def test_such_a_name_is_a_mistake_of_the_caller(client: httpx.Client, crawl: str) -> None:
    for name in ("z` - at `$[abc]", "$goal[1]` - at `$.x[...]"):
        answers = [
            client.put(f"/v1/crawls/{crawl}", json={name: 1}),
            client.post(f"/v1/crawls/{crawl}/release", json={"crawler_id": "c-1", name: 1}),
            client.post(f"/v1/crawls/{crawl}/seeds", json={"urls": [{"url": "https://example.com/", name: 1}]}),
        ]
        assert [answer.status_code for answer in answers] == [400, 400, 400]


def test_an_error_can_always_be_said() -> None:
    said = wire.error(MalformedRequest("half of \ud83d", field="\udfff"))
    assert json.loads(said)["error"] | {"message": "half of ?", "field": "?"} == json.loads(said)["error"]
