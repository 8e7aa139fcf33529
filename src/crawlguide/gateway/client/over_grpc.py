"""Calls carried over gRPC, for addresses such as grpc://127.0.0.1:8081 and grpcs://guide.example.

Loaded when such an address is used, since grpcio is an extra.
"""

from __future__ import annotations

import ssl
from contextlib import contextmanager
from pathlib import Path
from threading import Timer
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar
from urllib.parse import urlsplit

import grpc
import grpc.aio
import msgspec
import orjson
from google.protobuf.message_factory import GetMessageClass
from google.rpc.error_details_pb2 import BadRequest, ErrorInfo, RetryInfo
from google.rpc.status_pb2 import Status
from grpc.experimental import ChannelOptions

from crawlguide.core.errors import (
    CrawlGuideError,
    MalformedRequest,
    NotFound,
    TooLarge,
    UnavailableError,
)
from crawlguide.core.messages import SeedsMessage
from crawlguide.gateway.arguments import SCHEMES, bracketed
from crawlguide.gateway.client import credentials
from crawlguide.gateway.client.calls import KINDS, body
from crawlguide.gateway.client.transport import NO_TLS, NOTICE, Notice, checked_address, untrusted
from crawlguide.gateway.grpc import DETAILS
from crawlguide.gateway.grpc.conversion import read_answer, written
from crawlguide.gateway.grpc.methods import METHODS, SERVICE, WHOLE
from crawlguide.version import __version__

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Generator, Iterator, Mapping

    from google.protobuf.message import Message

    from crawlguide.gateway.client.calls import Call
    from crawlguide.gateway.client.credentials import Files
    from crawlguide.gateway.client.patience import Tries
    from crawlguide.gateway.client.transport import Shown
    from crawlguide.gateway.grpc.methods import Method

Result = TypeVar("Result")
Kind = TypeVar("Kind")
OPTIONS = [
    ("grpc.max_receive_message_length", -1),
    ("grpc.enable_http_proxy", 0),
    ("grpc.enable_retries", 0),  # what is tried again, and when, is said in one place for HTTP and gRPC
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1_000),
    ("grpc.keepalive_time_ms", 60_000),
    ("grpc.primary_user_agent", f"crawlguide/{__version__}"),
    (ChannelOptions.SingleThreadedUnaryStream, 1),
]
BY_ENDPOINT = {(method.method, method.path): method for method in METHODS}
Code = grpc.StatusCode
UNTRUSTED = ("CERTIFICATE_VERIFY_FAILED", "Peer name", "Hostname Verification")  # in what gRPC says of a certificate
OVER_HTTP = ("http1.x server", "ALPN")  # in what gRPC says of somebody who speaks HTTP/1.1, without and with TLS
PORTS = "a guide answers gRPC on a port of its own, 8081 unless it is told another, and URLFrontier on 7071"


class Target:
    """A server as both kinds of channel reach it, and what is shown to it."""

    def __init__(self, url: str, headers: Mapping[str, str] | None, shown: Shown) -> None:
        self.server = checked_address(url)
        parts = urlsplit(self.server)
        host = bracketed(parts.hostname or "")
        self.address = f"{host}:{parts.port or SCHEMES[parts.scheme]}"
        token = credentials.found_token(shown.get("token"))
        words = {"authorization": f"Bearer {token}"} if token else {}
        self.metadata = tuple({**words, **{name.lower(): text for name, text in (headers or {}).items()}}.items())
        self.credentials = channel_credentials(credentials.files(shown)) if parts.scheme == "grpcs" else None

    def channel(self) -> grpc.Channel:
        if self.credentials is None:
            return grpc.insecure_channel(self.address, OPTIONS)
        return grpc.secure_channel(self.address, self.credentials, OPTIONS)

    def async_channel(self) -> grpc.aio.Channel:
        if self.credentials is None:
            return grpc.aio.insecure_channel(self.address, OPTIONS)
        return grpc.aio.secure_channel(self.address, self.credentials, OPTIONS)


class GrpcTransport:
    """One server, for scripts. What goes wrong is raised as `CrawlGuideError`."""

    def __init__(self, url: str, headers: Mapping[str, str] | None, shown: Shown) -> None:
        self.notice = Notice()
        self._target = Target(url, headers, shown)
        self._channel = self._target.channel()
        self.is_closed = False

    def close(self) -> None:
        self.is_closed = True
        self._channel.close()

    def answered(self, call: Call[Result], tries: Tries) -> Result:
        method, request = prepared(call)
        answer = Answer(self._target.server, method, retried=tries.failed > 0)
        with answer.grpc_errors_as_ours():
            invoke = self._channel.unary_unary(*_sides(method))
            answer.found, ended = invoke.with_call(request, timeout=tries.timeout_s, metadata=self._target.metadata)
            self.notice.text = str(dict(ended.trailing_metadata() or ()).get(NOTICE, ""))
        return call.read(answer)

    def opened(self, call: Call[None], tries: Tries) -> Generator[bytes, None, None]:
        """An answer whose lines are still to come. Its first piece must come in time; then it takes what it takes."""
        method, request = prepared(call)
        pieces = self._channel.unary_stream(*_sides(method))(request, metadata=self._target.metadata)
        late = Timer(tries.timeout_s, pieces.cancel)
        late.start()
        answer = Answer(self._target.server, method)
        try:
            with answer.grpc_errors_as_ours(cancelled=f"{self._target.server} does not answer in time"):
                first = next(pieces, None)
        finally:
            late.cancel()
        if answer.problem is not None:
            raise answer.problem
        return self._pieces(first, pieces, answer)

    def _pieces(self, first: Any, pieces: Any, answer: Answer) -> Generator[bytes, None, None]:
        try:
            with answer.grpc_errors_as_ours():
                if first is not None:
                    yield first.lines
                for piece in pieces:
                    yield piece.lines
        finally:
            pieces.cancel()
        answer.check()


class AsyncGrpcTransport:
    """The same for asyncio programs. A channel belongs to an event loop, so it is made with the first call."""

    def __init__(self, url: str, headers: Mapping[str, str] | None, shown: Shown) -> None:
        self._target = Target(url, headers, shown)
        self.server = self._target.server
        self._made: grpc.aio.Channel | None = None
        self.is_closed = False

    @property
    def _channel(self) -> grpc.aio.Channel:
        if self._made is None:
            self._made = self._target.async_channel()
        return self._made

    async def close(self) -> None:
        self.is_closed = True
        if self._made is not None:
            await self._made.close()

    async def answered(self, call: Call[Result], tries: Tries) -> Result:
        method, request = prepared(call)
        answer = Answer(self.server, method, retried=tries.failed > 0)
        with answer.grpc_errors_as_ours():
            invoke = self._channel.unary_unary(*_sides(method))
            answer.found = await invoke(request, timeout=tries.timeout_s, metadata=self._target.metadata)
        return call.read(answer)

    async def opened(self, call: Call[None], tries: Tries) -> AsyncGenerator[bytes, None]:  # noqa: ARG002 - as `answered`
        method, request = prepared(call)
        pieces = self._channel.unary_stream(*_sides(method))(request, metadata=self._target.metadata)
        answer = Answer(self.server, method)
        with answer.grpc_errors_as_ours():
            first: Any = await pieces.read()
        if answer.problem is not None:
            raise answer.problem
        return self._pieces(first, pieces, answer)

    async def _pieces(self, piece: Any, pieces: Any, answer: Answer) -> AsyncGenerator[bytes, None]:
        try:
            with answer.grpc_errors_as_ours():
                while piece is not grpc.aio.EOF:
                    yield piece.lines
                    piece = await pieces.read()
        finally:
            pieces.cancel()
        answer.check()


class Answer:
    """What came of a call: a message of protobuf, or a problem."""

    def __init__(self, server: str, method: Method, retried: bool = False) -> None:
        self._server, self._method, self.retried = server, method, retried
        self.found: Any = None
        self.problem: CrawlGuideError | None = None

    @property
    def status(self) -> int:
        if self.problem is not None:
            return 404 if isinstance(self.problem, NotFound) else 500
        return 201 if getattr(self.found, "created", False) else 200

    def message(self, kind: type[Kind]) -> Kind:
        self.check()
        values = read_answer(self.found)
        values.pop("created", None)  # HTTP says it with its status
        for crawl in values.get("crawls", ()) if self._method.name == "ListCrawls" else ():
            crawl.pop("created")
        plain = values[self._method.answer] if self._method.answer else values
        if kind is dict:
            return plain  # type: ignore[return-value] # which is one
        return msgspec.json.decode(orjson.dumps(plain), type=kind)

    def check(self) -> None:
        if self.problem is not None:
            raise self.problem

    @contextmanager
    def grpc_errors_as_ours(self, cancelled: str = "") -> Iterator[None]:
        """A call that failed is an answer, too. Only what another try may mend is raised here."""
        try:
            yield
        except grpc.RpcError as problem:
            self.problem = _problem(self._server, problem, cancelled)
        if isinstance(self.problem, UnavailableError):
            raise self.problem


def prepared(call: Call[Any]) -> tuple[Method, Message]:
    """The method of a call and its request. Raises `MalformedRequest` in the words of a server."""
    method = BY_ENDPOINT[call.method, call.path]
    kind: Any = GetMessageClass(SERVICE.methods_by_name[method.name].input_type)
    try:
        return method, kind(**_fields(method, kind, call))
    except (TypeError, ValueError, msgspec.ValidationError):
        _explain(method, call)


def _fields(method: Method, kind: Any, call: Call[Any]) -> dict[str, Any]:
    said: dict[str, Any] = {"crawl_id": call.crawl_id} if method.of_crawl else {}
    if method.body == WHOLE:
        takes = method.takes
        message = call.message if isinstance(call.message, takes) else msgspec.convert(call.message, takes)
        return said | (_seeds(message) if takes is SeedsMessage else written(kind.DESCRIPTOR, message))
    if method.body == "lines":
        return said | {"lines": body(call)}
    if method.body:
        return said | {method.body: {"text": body(call).decode()}}
    return said | {name: int(text) if name == "limit" else text for name, text in call.query.items()}


def _seeds(message: SeedsMessage) -> dict[str, Any]:
    kind: Any = SERVICE.methods_by_name["AddSeeds"].input_type.fields_by_name["urls"].message_type
    return {"urls": [{"url": one} if isinstance(one, str) else written(kind, one) for one in message.urls]}


def _explain(method: Method, call: Call[Any]) -> NoReturn:
    """What is wrong with a message that protobuf cannot even say, as a server would put it."""
    from crawlguide.gateway import wire  # noqa: PLC0415 - heavy, and only needed to explain a mistake

    given = body(call)
    if method.takes is not None:
        wire.decode(given, method.takes)
    raise MalformedRequest(f"expected a message for {method.name}, got something else: {given[:80]!r}")


def _sides(method: Method) -> tuple[str, Any, Any]:
    described = SERVICE.methods_by_name[method.name]
    takes, gives = GetMessageClass(described.input_type), GetMessageClass(described.output_type)
    return f"/{SERVICE.full_name}/{method.name}", takes.SerializeToString, gives.FromString


def _problem(server: str, problem: Any, cancelled: str) -> CrawlGuideError:
    """The error that a guide tells in its details, or what gRPC itself has to say."""
    return error_in_details(problem) or of_grpc(server, problem.code(), problem.details() or "", cancelled)


def of_grpc(server: str, code: grpc.StatusCode, words: str, cancelled: str = "") -> CrawlGuideError:
    """What gRPC itself has to say, in our words."""
    if problem := _lasting(server, code, words):
        return problem
    if code == Code.DEADLINE_EXCEEDED or (code == Code.CANCELLED and cancelled):
        return UnavailableError(cancelled or f"{server} does not answer in time")
    if code == Code.UNAVAILABLE:
        return UnavailableError(f"{server} cannot be reached ({words}): is a server running there{_or_tls(words)}?")
    if code == Code.CANCELLED:
        return UnavailableError(f"{server} broke off: {words}")
    if code == Code.RESOURCE_EXHAUSTED:
        return TooLarge(words)
    return CrawlGuideError(f"{server} is no crawlguide server: it answers {code.name} in its own words")


def _or_tls(words: str) -> str:
    """Whoever closes without a word has ended in the middle, or wanted a handshake or a certificate."""
    if "Socket closed" not in words:
        return ""
    return ", does it speak TLS (grpcs://, or tls=True), or want a client certificate (CRAWLGUIDE_CERTIFICATE)"


def _lasting(server: str, code: grpc.StatusCode, words: str) -> CrawlGuideError | None:
    """What does not change by waiting: somebody there speaks otherwise, or cannot be trusted."""
    if any(sign in words for sign in UNTRUSTED):
        return untrusted(server, words)
    if NO_TLS in words:
        how = "is its address one of grpc://?" if "://" in server else "leave `tls` and `ca` out"
        return CrawlGuideError(f"{server} does not speak TLS: {how}")
    if any(sign in words for sign in OVER_HTTP):
        return CrawlGuideError(f"{server} speaks HTTP and not gRPC: {PORTS}")
    if code == Code.UNIMPLEMENTED:
        return CrawlGuideError(f"{server} speaks gRPC and does not know this call ({words}): {PORTS}")
    return None


def error_in_details(problem: Any) -> CrawlGuideError | None:
    """The error that a guide tells in the details of a status; None: it has none."""
    details, words = dict(problem.trailing_metadata() or ()).get(DETAILS), problem.details() or ""
    if details is None:
        return None
    reason, field, wait_s = "", None, None
    for one in Status.FromString(details).details:
        if one.Is(ErrorInfo.DESCRIPTOR):
            reason = ErrorInfo.FromString(one.value).reason
        elif one.Is(BadRequest.DESCRIPTOR):
            field = BadRequest.FromString(one.value).field_violations[0].field
        elif one.Is(RetryInfo.DESCRIPTOR):
            wait_s = RetryInfo.FromString(one.value).retry_delay.ToNanoseconds() / 1e9
    return KINDS.get(reason, CrawlGuideError)(words, field=field, retry_after_s=wait_s)


def channel_credentials(files: Files) -> grpc.ChannelCredentials:
    """As for https: the files are read and checked in the same way, then given to gRPC."""
    credentials.trust(files)
    names = files.ca or ssl.get_default_verify_paths().cafile, files.certificate, files.key or files.certificate
    trusted, shown, own = (None if name is None else Path(name).read_bytes() for name in names)
    return grpc.ssl_channel_credentials(trusted, own if shown else None, shown)
