"""gRPC as a transport: a server that listens, who calls, and how an error is said. Nothing here knows a service."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn
from urllib.parse import unquote

import grpc
import grpc.aio
from cryptography.x509 import NameOID, load_pem_x509_certificate
from google.protobuf.message import DecodeError, Message
from google.protobuf.message_factory import GetMessageClass
from google.rpc.error_details_pb2 import BadRequest, ErrorInfo, RetryInfo
from google.rpc.status_pb2 import Status

from crawlguide.core.errors import ConfigError, MalformedRequest, RateLimited, Unauthenticated, UnavailableError
from crawlguide.gateway.access.credential import ANYONE
from crawlguide.gateway.access.entrance import Caller
from crawlguide.gateway.arguments import bracketed
from crawlguide.gateway.grpc import DETAILS
from crawlguide.gateway.grpc.counting import check_parts
from crawlguide.gateway.grpc.reading import largest
from crawlguide.gateway.listener import bound
from crawlguide.gateway.load import most_connections
from crawlguide.gateway.responses import STATUS
from crawlguide.gateway.tls import loaded
from crawlguide.gateway.watched_files import WatchedFiles

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from google.protobuf.descriptor import ServiceDescriptor

    from crawlguide.core.config import ServerOptions
    from crawlguide.core.errors import CrawlGuideError
    from crawlguide.gateway.access.credential import Credential
    from crawlguide.gateway.service import Service

Context = grpc.aio.ServicerContext[Any, Any]
Behaviour = Callable[[Context], Awaitable[Any]]
Code = grpc.StatusCode
CODES = {
    "malformed_request": Code.INVALID_ARGUMENT,
    "unsupported_version": Code.INVALID_ARGUMENT,
    "unauthenticated": Code.UNAUTHENTICATED,
    "forbidden": Code.PERMISSION_DENIED,
    "not_found": Code.NOT_FOUND,
    "method_not_allowed": Code.UNIMPLEMENTED,
    "conflict": Code.ALREADY_EXISTS,
    "too_large": Code.RESOURCE_EXHAUSTED,
    "rate_limited": Code.RESOURCE_EXHAUSTED,
    "internal": Code.INTERNAL,
    "unavailable": Code.UNAVAILABLE,
    "storage_full": Code.RESOURCE_EXHAUSTED,
}
log = logging.getLogger(__name__)
_NAMES = {NameOID.COMMON_NAME: "commonName", NameOID.ORGANIZATION_NAME: "organizationName"}
STREAMS_OF_CONNECTION = 128
LOOKAHEAD_BYTES = 65_536  # that come in before anybody reads
MOST_WORDS = 1_000  # of an error
DOMAIN = "crawlguide"
HANDSHAKE_MS, PING_MS, PONG_MS, EARLIEST_PING_MS = 10_000, 60_000, 20_000, 10_000


def server(options: ServerOptions, *services: grpc.GenericRpcHandler) -> grpc.aio.Server:
    """A server for some services; it does not listen yet."""
    made = grpc.aio.server(
        options=[
            ("grpc.max_receive_message_length", largest(options)),
            ("grpc.max_send_message_length", -1),
            ("grpc.max_concurrent_streams", STREAMS_OF_CONNECTION),
            ("grpc.http2.lookahead_bytes", LOOKAHEAD_BYTES),  # else a whole message comes in before anybody wants it
            ("grpc.http2.bdp_probe", 0),  # on fast lines it would grow again
            ("grpc.max_allowed_incoming_connections", most_connections(options)),
            ("grpc.server_handshake_timeout_ms", HANDSHAKE_MS),
            ("grpc.max_connection_idle_ms", options.keep_alive_s * 1_000),  # without a call
            ("grpc.keepalive_time_ms", PING_MS),
            ("grpc.keepalive_timeout_ms", PONG_MS),
            ("grpc.http2.ping_timeout_ms", PONG_MS),  # a minute else, whatever the one before says
            ("grpc.http2.min_ping_interval_without_data_ms", EARLIEST_PING_MS),
            ("grpc.so_reuseport", 0),  # a second server on the port is a mistake
        ]
    )
    made.add_generic_rpc_handlers(services)
    return made


def handlers(service: ServiceDescriptor, behaviour: Mapping[str, Behaviour]) -> grpc.GenericRpcHandler:
    """Each method of a service with what serves it; its .proto says what it takes and gives, and whether in streams.

    Whatever it takes is read as a stream, which is the same on the wire: gRPC would read a single message before it
    tells us of the call, whoever sends it.
    """
    made = {}
    for method in service.methods:
        streams = method.server_streaming
        kind = grpc.stream_stream_rpc_method_handler if streams else grpc.stream_unary_rpc_method_handler
        takes, gives = (GetMessageClass(one) for one in (method.input_type, method.output_type))
        serves = partial(_unless_gone, behaviour[method.name])
        made[method.name] = kind(serves, partial(Unread, takes), gives.SerializeToString)
    return grpc.method_handlers_generic_handler(service.full_name, made)


async def _unless_gone(behaviour: Behaviour, _: object, context: Context) -> Any:
    """What is written for a client that has gone, or read from it, fails: that is no fault of ours."""
    try:
        return await behaviour(context)
    except (grpc.aio.UsageError, grpc.aio.InternalError):
        log.debug("a client of gRPC has gone before its call ended")


class Unread(NamedTuple):
    """The bytes of a message, of which gRPC builds nothing."""

    kind: type[Message]
    data: bytes

    def read(self) -> Any:
        """The message. Raises `MalformedRequest` and `TooLarge`."""
        check_parts(self.data, self.kind.DESCRIPTOR)
        try:
            return self.kind.FromString(self.data)
        except DecodeError:
            name, size = self.kind.DESCRIPTOR.full_name, len(self.data)
            raise MalformedRequest(f"expected a message {name}, got {size} bytes that are none") from None


def check_known(service: Service, who: Caller) -> Credential:
    """Nothing long is read for somebody who cannot come in."""
    try:
        return service.entrance.identify_newcomer(who)
    except (Unauthenticated, RateLimited) as problem:
        service.log_refusal("grpc", STATUS[problem.code], problem, **who.logged)
        raise


def listen(made: grpc.aio.Server, options: ServerOptions, port: int, setting: str) -> int:
    """Bind a port, with TLS where there is a certificate; returns the port. Raises `ConfigError`."""
    host = bracketed(options.host)
    loaded(options)  # what is wrong with the files is said as for the other doors
    bound(options.host, port, setting).close()  # gRPC says on the standard error, in its own words, that it cannot
    try:
        if not options.tls_certificate:
            return made.add_insecure_port(f"{host}:{port}")
        return made.add_secure_port(f"{host}:{port}", _credentials(options))
    except RuntimeError as problem:
        raise ConfigError(f"{setting}: cannot listen on {host}:{port}: {problem}") from None


def _credentials(options: ServerOptions) -> grpc.ServerCredentials:
    """Certificate and key as their files hold them when a connection begins."""
    certificate, key = Path(options.tls_certificate), Path(options.tls_key or options.tls_certificate)
    authority = Path(options.tls_client_ca) if options.tls_client_ca else None
    files = WatchedFiles(
        [file for file in (certificate, key, authority) if file is not None],
        lambda: grpc.ssl_server_certificate_configuration(
            [(key.read_bytes(), certificate.read_bytes())], None if authority is None else authority.read_bytes()
        ),
    )

    def newest() -> grpc.ServerCertificateConfiguration:
        found = files.content()
        if found is None:
            raise ConfigError(f"server.tls_certificate: {certificate} is gone")
        return found

    # a client may show a certificate; gRPC cannot ask for one without wanting it, so with an authority it is wanted
    return grpc.dynamic_ssl_server_credentials(newest(), newest, authority is not None)


def caller(context: Context) -> Caller:
    """Where a call comes from, and what it shows."""
    metadata = context.invocation_metadata() or ()
    shown = next((value for name, value in metadata if name == "authorization"), "")
    text = shown if isinstance(shown, str) else ""
    return Caller(address(context.peer()), text, _certificate(context))


def address(peer: str) -> str:
    """`ipv4:127.0.0.1:5000` and `ipv6:%5B::1%5D:5000` as an address alone."""
    kind, _, rest = unquote(peer).partition(":")
    return rest.rpartition(":")[0].strip("[]") if kind in ("ipv4", "ipv6") else ""


def _certificate(context: Context) -> dict[str, Any] | None:
    """A client's certificate, as `ssl` would describe it."""
    shown = list(context.auth_context().get("x509_pem_cert", ()))
    if not shown:
        return None
    found = load_pem_x509_certificate(shown[0])
    names = [(_NAMES[one.oid], str(one.value)) for one in found.subject if one.oid in _NAMES]
    return {
        "subject": tuple((name,) for name in names),
        "notAfter": found.not_valid_after_utc.strftime("%b %d %H:%M:%S %Y GMT"),
    }


async def refuse(context: Context, problem: CrawlGuideError) -> NoReturn:
    """End a call with an error: a code of gRPC, words, and details that programs can read.

    Words stand in a header of HTTP/2, which has little room; a client that is told more than it takes sees nothing.
    """
    words = problem.message if len(problem.message) <= MOST_WORDS else problem.message[:MOST_WORDS] + "…"
    trailing: list[tuple[str, str | bytes]] = [(DETAILS, _details(problem, words).SerializeToString())]
    if problem.retry_after_s is not None:
        trailing.append(("retry-after-ms", str(int(problem.retry_after_s * 1_000))))
    await context.abort(CODES[problem.code], words, tuple(trailing))


def _details(problem: CrawlGuideError, words: str) -> Status:
    """As the error model of google.rpc says it."""
    said: list[Message] = [ErrorInfo(reason=problem.code, domain=DOMAIN)]
    if problem.field is not None:
        said.append(BadRequest(field_violations=[{"field": problem.field[:MOST_WORDS], "description": words}]))
    if problem.retry_after_s is not None:
        wait = RetryInfo()
        wait.retry_delay.FromNanoseconds(int(problem.retry_after_s * 1e9))
        said.append(wait)
    status = Status(code=CODES[problem.code].value[0], message=words)
    for one in said:
        status.details.add().Pack(one)
    return status


async def write(context: Context, message: Message, stall_s: float) -> None:
    """A client that does not read loses its stream. Raises `UnavailableError`."""
    try:
        async with asyncio.timeout(stall_s):
            await context.write(message)
    except TimeoutError:
        raise UnavailableError("nothing was read for too long") from None


@contextmanager
def counted(service: Service, context: Context, credential: Credential = ANYONE) -> Iterator[None]:
    """A stream that may stay open counts as a connection, and among the sockets and streams of its credential."""
    where, load = address(context.peer()), service.load
    load.connections.enter(where)
    try:
        load.places.enter(credential, service.entrance.most_sockets(credential.tenant))
        try:
            yield
        finally:
            load.places.leave(credential)
    finally:
        load.connections.leave(where)
