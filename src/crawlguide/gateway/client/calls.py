"""Calls to a guide as plain data: what is sent, and how the answer to it is read. Nothing here speaks to anybody.

Nothing heavy is imported: whoever only speaks to a guide does not load one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar
from urllib.parse import quote
from uuid import uuid4

import msgspec
import orjson

from crawlguide.core import messages
from crawlguide.core.clock import retry_after_s
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
RETRYABLE_STATUS = {429: RateLimited, 502: UnavailableError, 503: UnavailableError, 504: UnavailableError}
LINES = "application/x-ndjson"


class Answer(Protocol):
    """What came of a call, however it was carried. `retried`: it was tried before, so it may have been done before."""

    @property
    def status(self) -> int:
        """As HTTP counts: 201 for something new."""
        ...

    @property
    def retried(self) -> bool: ...

    def message(self, kind: type[Message]) -> Message:
        """The message of a good answer; raises what a bad one says."""
        ...


@dataclass(frozen=True)
class Call(Generic[Result]):
    """One request: an endpoint of `gateway/routes.py` with what goes to it. `read` makes the result of its answer."""

    method: str
    path: str
    read: Callable[[Answer], Result]
    message: Any = None
    crawl_id: str = ""  # the one in the path
    query: Mapping[str, str] = field(default_factory=dict)
    key: str | None = None  # the field of the message by which a second try is known to be the same request


class NoLines(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What no guide ever answers: a good answer that is no stream of lines comes from somebody else."""

    lines: None


class Page(msgspec.Struct, frozen=True):
    urls: list[dict[str, Any]]
    cursor: str | None


class CrawlsPage(msgspec.Struct, frozen=True):
    crawls: list[dict[str, Any]]
    cursor: str | None = None


class SeedsAnswer(msgspec.Struct, frozen=True):
    discovered: int


class ImportAnswer(msgspec.Struct, frozen=True):
    lines: int
    discovered: int
    skipped: list[str]
    skipped_lines: int = 0  # of a server that does not count them: as many as it names


class BackupAnswer(msgspec.Struct, frozen=True):
    path: str
    made: str
    state_hash: str


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


# The calls, one for each method of a guide.


def ask(message: Mapping[str, Any] | AskMessage) -> Call[dict[str, Any] | Advice]:
    read = _message(Advice) if isinstance(message, AskMessage) else _message(dict)
    return Call("POST", "/v1/next", read, message, key="request_id")


def tell(message: Mapping[str, Any] | ReportMessage) -> Call[dict[str, Any] | Ack]:
    read = _message(Ack) if isinstance(message, ReportMessage) else _message(dict)
    return Call("POST", "/v1/report", read, message, key="report_id")


def define(crawl_id: str, definition: Mapping[str, Any] | Definition) -> Call[bool]:
    """The status says whether the crawl is new."""

    def read(answer: Answer) -> bool:
        answer.message(dict)
        return answer.status == 201

    return _of_crawl("PUT", crawl_id, "", read, definition)


def crawl(crawl_id: str) -> Call[dict[str, Any]]:
    return _of_crawl("GET", crawl_id, "", _message(dict))


def patch(crawl_id: str, changes: Mapping[str, Any]) -> Call[dict[str, Any]]:
    return _of_crawl("PATCH", crawl_id, "", _message(dict), changes)


def delete(crawl_id: str) -> Call[None]:
    """Tried again, a crawl that is gone is what was wanted."""

    def read(answer: Answer) -> None:
        if not (answer.retried and answer.status == 404):
            answer.message(dict)

    return _of_crawl("DELETE", crawl_id, "", read)


def seed(crawl_id: str, urls: Sequence[str | Mapping[str, Any]]) -> Call[int]:
    return _of_crawl("POST", crawl_id, "/seeds", lambda answer: answer.message(SeedsAnswer).discovered, {"urls": urls})


def pause(crawl_id: str) -> Call[dict[str, Any]]:
    return _of_crawl("POST", crawl_id, "/pause", _message(dict))


def resume(crawl_id: str) -> Call[dict[str, Any]]:
    return _of_crawl("POST", crawl_id, "/resume", _message(dict))


def release(crawl_id: str, crawler_id: str) -> Call[int]:
    body = {"crawler_id": crawler_id}
    return _of_crawl("POST", crawl_id, "/release", lambda answer: answer.message(Released).released, body)


def rules(crawl_id: str) -> Call[dict[str, Any]]:
    return _of_crawl("GET", crawl_id, "/rules", _message(dict))


def edit_rules(crawl_id: str, edit: Mapping[str, Any] | RulesEdit) -> Call[dict[str, Any]]:
    return _of_crawl("POST", crawl_id, "/rules", _message(dict), edit)


def stats(crawl_id: str | None) -> Call[dict[str, Any]]:
    return Call("GET", "/v1/stats", _message(dict), query=_query(crawl_id=crawl_id))


def crawls(cursor: str | None) -> Call[CrawlsPage]:
    """One page."""
    return Call("GET", "/v1/crawls", _message(CrawlsPage), query=_query(cursor=cursor))


def explain(crawl_id: str, url: str) -> Call[dict[str, Any]]:
    return Call("GET", "/v1/explain", _message(dict), query=_query(crawl_id=messages.crawl_id(crawl_id), url=url))


def urls(crawl_id: str, state: str | None, host: str | None, cursor: str | None) -> Call[Page]:
    """One page."""
    query = _query(crawl_id=messages.crawl_id(crawl_id), state=state, host=host, cursor=cursor)
    return Call("GET", "/v1/urls", _message(Page), query=query)


def export(crawl_id: str) -> Call[None]:
    """Its answer is a stream of lines; `read` is for one that is none."""

    def read(answer: Answer) -> None:
        answer.message(NoLines)

    return _of_crawl("GET", crawl_id, "/export", read)


def import_lines(crawl_id: str, lines: Sequence[bytes]) -> Call[ImportAnswer]:
    return _of_crawl("POST", crawl_id, "/import", _message(ImportAnswer), lines)


def back_up() -> Call[BackupAnswer]:
    return Call("POST", "/v1/backups", _message(BackupAnswer))


def _of_crawl(
    method: str, crawl_id: str, what: str, read: Callable[[Answer], Result], message: Any = None
) -> Call[Result]:
    return Call(method, f"/v1/crawls/{{crawl_id}}{what}", read, message, messages.crawl_id(crawl_id))


# A call as it goes over HTTP, and what comes back.


@dataclass(frozen=True)
class Reply:
    """The answer of a server."""

    server: str
    status: int
    body: bytes
    retry_after: str | None = None
    retried: bool = False

    def message(self, kind: type[Message]) -> Message:
        if not 200 <= self.status < 300:
            raise self._error() or self.stranger()
        try:
            return msgspec.json.decode(self.body, type=kind)
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise self.stranger() from None

    def _error(self) -> CrawlGuideError | None:
        """The error that a guide tells in its one shape of errors, to be raised here as it was raised there."""
        try:
            error = msgspec.json.decode(self.body, type=ErrorMessage).error
        except (msgspec.DecodeError, UnicodeDecodeError):
            return None
        wait_s = retry_after_s(self.retry_after) if error.retry_after_s is None else error.retry_after_s
        return KINDS.get(error.code, CrawlGuideError)(error.message, field=error.field, retry_after_s=wait_s)

    def stranger(self) -> CrawlGuideError:
        """Somebody else has answered: another service at that address, or one that stands before the guide."""
        kind = RETRYABLE_STATUS.get(self.status)
        if kind is not None:
            return kind(f"{self.server} answers {self.status}", retry_after_s=retry_after_s(self.retry_after))
        return CrawlGuideError(f"{self.server} is no crawlguide server: it answers {self.status} in its own words")


def keyed(call: Call[Result]) -> Call[Result]:
    """The call with an id by which a second try is known to be the same request."""
    name, message = call.key, call.message
    if name is None:
        return call
    if isinstance(message, msgspec.Struct) and getattr(message, name) is None:
        return replace(call, message=msgspec.structs.replace(message, **{name: str(uuid4())}))
    if isinstance(message, Mapping) and message.get(name) is None:
        return replace(call, message={**message, name: str(uuid4())})
    return call


def path_of(call: Call[Any]) -> str:
    """The path of a call. A name of dots alone would lead to another one."""
    name = quote(call.crawl_id, safe="")
    return call.path.format(crawl_id=name.replace(".", "%2E") if name in {".", ".."} else name)


def body(call: Call[Any]) -> bytes:
    if call.message is None:
        return b""
    if call.path.endswith("/import"):
        return b"\n".join(call.message)
    try:
        given = call.message
        return msgspec.json.encode(given) if isinstance(given, msgspec.Struct) else orjson.dumps(given)
    except (TypeError, ValueError) as wrong:
        raise MalformedRequest(f"expected what JSON can say, got something else: {wrong}") from None


def _message(kind: type[Message]) -> Callable[[Answer], Message]:
    return lambda answer: answer.message(kind)


def _query(**words: str | None) -> dict[str, str]:
    """What is given, in a form in which it can be sent."""
    given = {name: word for name, word in words.items() if word is not None}
    for name, word in given.items():
        try:
            word.encode()
        except UnicodeEncodeError as wrong:
            raise MalformedRequest(f"{name}: expected text, got {word[:80]!r}: {wrong}", field=name) from None
    return given
