"""Calls to a guide as plain data: what is sent, and how the reply to it is read. Nothing here speaks to anybody.

Nothing heavy is imported: whoever only speaks to a guide does not load one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from urllib.parse import quote
from uuid import uuid4

import msgspec
import orjson

from crawlguide.core import messages
from crawlguide.core.errors import (
    CrawlGuideError,
    MalformedRequest,
    RateLimited,
    RequestError,
    StorageFull,
    UnavailableError,
)
from crawlguide.core.messages import Ack, Advice, AskMessage, ErrorMessage, Released, ReportMessage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from crawlguide.core.definition import Definition, RulesEdit

Result = TypeVar("Result")
Message = TypeVar("Message")
RAISED: list[type[CrawlGuideError]] = [UnavailableError, StorageFull, *RequestError.__subclasses__()]
KINDS = {kind.code: kind for kind in RAISED}
PASSING = {429: RateLimited, 502: UnavailableError, 503: UnavailableError, 504: UnavailableError}  # whoever says so
LINES = "application/x-ndjson"


@dataclass(frozen=True)
class Reply:
    """What came back. `again` says that the call was tried before: then it may have been done before, too."""

    server: str
    status: int
    body: bytes
    retry_after: str | None = None
    again: bool = False

    @property
    def good(self) -> bool:
        return 200 <= self.status < 300


@dataclass(frozen=True)
class Call(Generic[Result]):
    """One request. `read` makes the result of a reply, or raises what the reply says."""

    method: str
    path: str
    read: Callable[[Reply], Result]
    body: bytes = b""
    query: Mapping[str, str] = field(default_factory=dict)


class Page(msgspec.Struct, frozen=True):
    urls: list[dict[str, Any]]
    cursor: str | None


class SeedsAnswer(msgspec.Struct, frozen=True):
    discovered: int


class Lines:
    """Lines out of pieces that end anywhere. Only a line feed ends one: JSON text may hold other separators."""

    def __init__(self) -> None:
        self._rest = b""

    def of(self, piece: bytes) -> list[bytes]:
        *whole, self._rest = (self._rest + piece).split(b"\n")
        return whole

    def rest(self) -> Iterator[bytes]:
        if self._rest:
            yield self._rest


def ask(message: Mapping[str, Any] | AskMessage) -> Call[dict[str, Any] | Advice]:
    read = _message(Advice) if isinstance(message, AskMessage) else _message(dict)
    return Call("POST", "/v1/next", read, _keyed(message, "request_id"))


def tell(message: Mapping[str, Any] | ReportMessage) -> Call[dict[str, Any] | Ack]:
    read = _message(Ack) if isinstance(message, ReportMessage) else _message(dict)
    return Call("POST", "/v1/report", read, _keyed(message, "report_id"))


def define(crawl_id: str, definition: Mapping[str, Any] | Definition) -> Call[bool]:
    """The status says whether the crawl is new."""
    return Call("PUT", crawl_path(crawl_id), lambda reply: checked(reply).status == 201, _json(definition))


def patch(crawl_id: str, changes: Mapping[str, Any]) -> Call[dict[str, Any]]:
    return Call("PATCH", crawl_path(crawl_id), _message(dict), _json(changes))


def release(crawl_id: str, crawler_id: str) -> Call[int]:
    def read(reply: Reply) -> int:
        return decoded(reply, Released).released

    return Call("POST", crawl_path(crawl_id, "/release"), read, _json({"crawler_id": crawler_id}))


def rules(crawl_id: str) -> Call[dict[str, Any]]:
    return Call("GET", crawl_path(crawl_id, "/rules"), _message(dict))


def edit_rules(crawl_id: str, edit: Mapping[str, Any] | RulesEdit) -> Call[dict[str, Any]]:
    return Call("POST", crawl_path(crawl_id, "/rules"), _message(dict), _json(edit))


def delete(crawl_id: str) -> Call[None]:
    """Tried again, a crawl that is gone is what was wanted."""

    def read(reply: Reply) -> None:
        if not (reply.again and reply.status == 404):
            checked(reply)

    return Call("DELETE", crawl_path(crawl_id), read)


def seed(crawl_id: str, urls: Sequence[str | Mapping[str, Any]]) -> Call[int]:
    def read(reply: Reply) -> int:
        return decoded(reply, SeedsAnswer).discovered

    return Call("POST", crawl_path(crawl_id, "/seeds"), read, _json({"urls": urls}))


def pause(crawl_id: str, *, paused: bool) -> Call[None]:
    def read(reply: Reply) -> None:
        checked(reply)

    return Call("POST", crawl_path(crawl_id, "/pause" if paused else "/resume"), read)


def stats(crawl_id: str | None) -> Call[dict[str, Any]]:
    return Call("GET", "/v1/stats", _message(dict), query=_query(crawl_id=crawl_id))


def explain(crawl_id: str, url: str) -> Call[dict[str, Any]]:
    return Call("GET", "/v1/explain", _message(dict), query=_query(crawl_id=crawl_id, url=url))


def urls(selection: Mapping[str, str | None], cursor: str | None) -> Call[Page]:
    """One page; `selection` names the crawl and perhaps a state and a host."""
    return Call("GET", "/v1/urls", _message(Page), query=_query(**selection, cursor=cursor))


def export(crawl_id: str) -> Call[None]:
    """The lines follow; `read` only says that they do not."""

    def read(reply: Reply) -> None:
        checked(reply)
        raise stranger(reply)

    return Call("GET", crawl_path(crawl_id, "/export"), read)


def crawl_path(crawl_id: str, what: str = "") -> str:
    """A name of dots alone would lead to another path."""
    name = quote(messages.crawl_id(crawl_id), safe="")
    return f"/v1/crawls/{name.replace('.', '%2E') if name in {'.', '..'} else name}{what}"


def decoded(reply: Reply, kind: type[Message]) -> Message:
    """The message in a good reply."""
    try:
        return msgspec.json.decode(checked(reply).body, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise stranger(reply) from None


def checked(reply: Reply) -> Reply:
    """The reply if it is good; else what it says is raised here as it was raised there."""
    if not reply.good:
        raise told(reply) or stranger(reply)
    return reply


def told(reply: Reply) -> CrawlGuideError | None:
    """The error that a guide tells in its one shape of errors."""
    try:
        error = msgspec.json.decode(reply.body, type=ErrorMessage).error
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    wait_s = seconds(reply.retry_after) if error.retry_after_s is None else error.retry_after_s
    return KINDS.get(error.code, CrawlGuideError)(error.message, field=error.field, retry_after_s=wait_s)


def stranger(reply: Reply) -> CrawlGuideError:
    """Somebody else has answered: another service at that address, or one that stands before the guide."""
    kind = PASSING.get(reply.status)
    if kind is not None:
        return kind(f"{reply.server} answers {reply.status}", retry_after_s=seconds(reply.retry_after))
    return CrawlGuideError(f"{reply.server} is no crawlguide server: it answers {reply.status} in its own words")


def seconds(retry_after: str | None) -> float | None:
    """A Retry-After header: seconds or a date. What is neither says nothing."""
    text = (retry_after or "").strip()
    if text.isdecimal():
        return float(text)
    try:
        at = parsedate_to_datetime(text)
    except ValueError:
        return None
    return max(0.0, (at.replace(tzinfo=at.tzinfo or UTC) - datetime.now(UTC)).total_seconds())


def _message(kind: type[Message]) -> Callable[[Reply], Message]:
    return lambda reply: decoded(reply, kind)


def _keyed(message: Any, name: str) -> bytes:
    """The body, with an id by which a second try is known to be the same request."""
    if isinstance(message, msgspec.Struct) and getattr(message, name) is None:
        message = msgspec.structs.replace(message, **{name: str(uuid4())})
    elif isinstance(message, Mapping) and message.get(name) is None:
        message = {**message, name: str(uuid4())}
    return _json(message)


def _json(message: Any) -> bytes:
    try:
        return msgspec.json.encode(message) if isinstance(message, msgspec.Struct) else orjson.dumps(message)
    except (TypeError, ValueError) as wrong:
        raise MalformedRequest(f"expected what JSON can say, got something else: {wrong}") from None


def _query(**words: str | None) -> dict[str, str]:
    """What is given, in a form in which it can be sent."""
    given = {name: word for name, word in words.items() if word is not None}
    for name, word in given.items():
        try:
            word.encode()
        except UnicodeEncodeError as wrong:
            raise MalformedRequest(f"{name}: expected text, got {word[:80]!r}: {wrong}", field=name) from None
    return given
