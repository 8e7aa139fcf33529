"""Requests over HTTP and messages over WebSockets, made from values, with oddities of each protocol."""

from __future__ import annotations

import json
import os
import re
import socket
from base64 import b64encode
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import msgspec

from tests.fuzz.values import TEXTS

if TYPE_CHECKING:
    from random import Random

    from tests.fuzz.values import Values

ANSWERS_WITHIN_S = 45.0  # a body that does not come is given up before
HANG_UP = 0.02
FINAL = re.compile(rb"HTTP/1\.1 ([2-9]\d\d) ")
TYPES = ("next", "report", "subscribe", "unsubscribe", "release", "stats", "ping", "pong", "")
BODIES = (
    "application/json", "application/yaml", "text/yaml; charset=utf-8", "text/plain", "application/x-ndjson", "",
    "text/plain;a=,application/yaml", "application/json; charset=utf-16", "multipart/form-data", "x" * 500,
)  # fmt: skip
ODD = (
    b"Host: other.example", b"Expect: 100-continue", b"Upgrade: h2c", b"Connection: close", b"Connection: upgrade",
    b"Origin: https://evil.example", b"Sec-Fetch-Site: cross-site", b"Accept: application/yaml", b"Accept: ;;q=,,",
    b"Range: bytes=0-1", b"If-None-Match: *", b"Content-Encoding: gzip", b"Cookie: crawlguide_session=x",
    b"Authorization: Bearer x", b"Authorization: Basic \xff", b"Transfer-Encoding: identity", b" folded: 1", b"a b: c",
    b"Content-Length: 5", b"Content-Length: -1", b"Sec-WebSocket-Key: x", b"X-Forwarded-For: 127.0.0.1", b"X: \x00",
    b"Cookie: " + b"a=b;" * 2_000, b"X:" + b"y" * 70_000,
)  # fmt: skip


class HttpDoor:
    """Every operation of the document, one request on each connection."""

    def __init__(self, port: int, document: dict[str, Any], values: Values, chance: Random) -> None:
        self._port, self._values, self._chance = port, values, chance
        paths = document["paths"]
        self._operations = [(path, method, one) for path in paths for method, one in paths[path].items()]
        self._operations += [("/", "get", {}), ("/docs", "get", {}), ("/login", "post", {}), ("/no/such", "get", {})]

    def request(self) -> bytes:
        """One request, whole."""
        chance = self._chance
        path, method, operation = chance.choice(self._operations)
        content: dict[str, dict[str, Any]] = operation.get("requestBody", {}).get("content", {})
        kind, body = next(iter(content), "application/json"), b""
        if content or chance.random() < 0.05:
            body, kind = self._body(kind, next(iter(content.values()), {}).get("schema", {}))
        target = path.replace("{crawl_id}", quote(self._name(), safe="%")) + self._query(operation)
        verb = chance.choice(("BREW", "OPTIONS", "get", "PUT", "DELETE")) if chance.random() < 0.02 else method.upper()
        version = chance.choice(("HTTP/1.0", "HTTP/9.9", "")) if chance.random() < 0.01 else "HTTP/1.1"
        head = [f"{verb} {target} {version}".encode("utf-8", "replace")]
        if chance.random() > 0.01:
            head.append(b"Host: 127.0.0.1")
        if kind:
            head.append(b"Content-Type: " + kind.encode())
        head += chance.sample(ODD, chance.choice((1, 1, 2))) if chance.random() < 0.15 else []
        return self._framed(head, body)

    def _name(self) -> str:
        return self._chance.choice(("fuzz", "fuzz", "fuzz-2", self._chance.choice(TEXTS)))

    def _query(self, operation: dict[str, Any]) -> str:
        names = [one["name"] for one in operation.get("parameters", ()) if one["in"] == "query"]
        names += ["nonsense"] if self._chance.random() < 0.02 else []
        given = [name for name in names if self._chance.random() < 0.6]
        said = {
            name: self._name() if name == "crawl_id" else self._chance.choice((*TEXTS, "1", "10")) for name in given
        }
        return ("?" + "&".join(f"{name}={quote(text)}" for name, text in said.items())) if given else ""

    def _body(self, kind: str, schema: dict[str, Any]) -> tuple[bytes, str]:
        chance = self._chance
        value = self._values.of(schema)
        if isinstance(value, dict) and "crawl_id" in value:
            value["crawl_id"] = self._name()
        body = json.dumps(value, ensure_ascii=chance.random() < 0.5).encode("utf-8", "replace")
        if kind == "application/x-ndjson":
            body = b"\n".join([body, b'{"url": "https://a.example/1", "state": "queued"}', b"{", b""])
        if chance.random() < 0.1:
            kind = chance.choice(BODIES)
        if "yaml" in kind and chance.random() < 0.5:
            body = body.replace(b"{", chance.choice((b"{", b"&a {", b"!!map {", b"[" * chance.choice((1, 99, 30_000)))))
        if chance.random() < 0.05:
            body = spoilt(body, chance)
        return body, kind

    def _framed(self, head: list[bytes], body: bytes) -> bytes:
        chance = self._chance
        if body and chance.random() < 0.1:
            head.append(b"Transfer-Encoding: chunked")
            cut = chance.randrange(1, len(body) + 1)
            pieces = [body[at : at + cut] for at in range(0, len(body), cut)][:50]
            body = b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"
        elif body or chance.random() < 0.1:
            wrong = chance.random() < 0.001
            head.append(b"Content-Length: %d" % max(0, len(body) + (chance.choice((-3, 3)) if wrong else 0)))
        return b"\r\n".join(head) + b"\r\n\r\n" + body

    def send(self) -> tuple[str, bytes]:
        """What came of one request: its status, or how the connection ended; and the request."""
        request = self.request()
        try:
            with socket.create_connection(("127.0.0.1", self._port), timeout=ANSWERS_WITHIN_S) as line:
                line.sendall(request)
                if self._chance.random() < HANG_UP:
                    line.shutdown(socket.SHUT_WR)
                answer = b""
                while piece := line.recv(65_536):
                    answer += piece
                    if FINAL.search(answer):
                        break
        except TimeoutError:
            return "no answer", request
        except OSError:
            return "reset", request
        final = FINAL.search(answer)
        return final[1].decode() if final else "closed", request


def spoilt(body: bytes, chance: Random) -> bytes:
    at = chance.randrange(len(body) + 1)
    return chance.choice((body[:at], body[:at] + bytes([chance.randrange(256)]) + body[at:], body * 3, b"\xff" + body))


class SocketDoor:
    """A few messages on each WebSocket, and now and then a frame that is none."""

    name, protocol, opcode = "socket", "crawlguide.json", 0x81

    def __init__(self, port: int, document: dict[str, Any], values: Values, chance: Random) -> None:
        self._port, self._values, self._chance = port, values, chance
        schemas = document["components"]["schemas"]
        self._bodies = [schemas[name] for name in ("AskMessage", "ReportMessage", "ReleaseMessage")]

    def message(self) -> bytes:
        chance = self._chance
        body = self._values.of(chance.choice(self._bodies))
        said: Any = (
            {"type": chance.choice(TYPES), "id": chance.choice((1, "a", None, [], 2**70)), **body}
            if isinstance(body, dict)
            else body
        )
        return self.written(said)

    @staticmethod
    def written(message: Any) -> bytes:
        return json.dumps(message).encode("utf-8", "replace")

    def frames(self) -> bytes:
        return b"".join(self._frame() for _ in range(self._chance.randrange(1, 6)))

    def _frame(self) -> bytes:
        chance = self._chance
        payload = self.message() if chance.random() < 0.9 else os.urandom(chance.choice((0, 1, 125, 126, 70_000)))
        if chance.random() < 0.05:
            payload = spoilt(payload, chance)
        first = self.opcode if chance.random() < 0.9 else chance.randrange(256)
        masked = 0x80 if chance.random() < 0.98 else 0
        size = len(payload)
        length = bytes([masked | size]) if size < 126 else bytes([masked | 126]) + (size & 0xFFFF).to_bytes(2, "big")
        if size > 0xFFFF:
            length = bytes([masked | 127]) + size.to_bytes(8, "big")
        return bytes([first]) + length + (bytes(4) if masked else b"") + payload

    def send(self) -> tuple[str, bytes]:
        """Whether the handshake was answered, and something came after the frames."""
        frames = self.frames()
        key = b64encode(bytes(16))
        head = b"GET /ws HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        head += b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: " + key + b"\r\n"
        head += f"Sec-WebSocket-Protocol: {self.protocol}\r\n\r\n".encode()
        try:
            with socket.create_connection(("127.0.0.1", self._port), timeout=ANSWERS_WITHIN_S) as line:
                line.sendall(head + frames)
                line.shutdown(socket.SHUT_WR)
                answer = b""
                while piece := line.recv(65_536):
                    answer += piece
        except TimeoutError:
            return f"{self.name}: no answer", frames
        except OSError:
            return f"{self.name}: reset", frames
        return f"{self.name}: {answer[9:12].decode(errors='replace')}", frames


class PackedSocketDoor(SocketDoor):
    """The same in MessagePack, with values that only it can say."""

    name, protocol, opcode = "packed socket", "crawlguide.msgpack", 0x82

    def message(self) -> bytes:
        whole = super().message()
        return whole + whole if self._chance.random() < 0.01 else whole

    @staticmethod
    def written(message: Any) -> bytes:
        return msgspec.msgpack.encode(packable(message))


def packable(value: Any) -> Any:
    """Integers that MessagePack has no room for become what JSON never has."""
    if isinstance(value, dict):
        return {key: packable(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [packable(inner) for inner in value]
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        return (float("nan"), b"\xff", msgspec.msgpack.Ext(5, b"x"))[value % 3]
    return value
