"""A real HTTP server that answers as it is told, and keeps what it heard."""

from __future__ import annotations

import json
import threading
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest

from crawlguide.core.errors import UnavailableError

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass
class Told:
    """An answer that is to be given: `drops_s` between two bytes of it; one that `breaks` never comes to its end."""

    status: int
    body: bytes = b"{}"
    headers: dict[str, str] = field(default_factory=dict)
    drops_s: float = 0.0
    breaks: bool = False


BROKEN = Told(0, breaks=True)


@dataclass
class Heard:
    """A request that came, and when."""

    at: float
    method: str
    path: str
    body: Any
    headers: dict[str, str]


class Answering:
    """A real HTTP server that gives these answers one after the other, the last of them for ever."""

    def __init__(self, *answers: Told) -> None:
        self.answers, self.heard = list(answers), list[Heard]()
        self.listening = Listening(self.answer)
        self.url = f"http://127.0.0.1:{self.listening.server_port}"

    def __enter__(self) -> Answering:
        threading.Thread(target=self.listening.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.listening.shutdown()
        self.listening.server_close()

    def answer(self, request: Heard) -> Told:
        self.heard.append(request)
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


class Listening(ThreadingHTTPServer):
    def __init__(self, answer: Callable[[Heard], Told]) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.answer, self.connections = answer, 0


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Listening

    def setup(self) -> None:
        self.server.connections += 1
        super().setup()

    def do_GET(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", "0")))
        words = {name.lower(): value for name, value in self.headers.items()}
        told = self.server.answer(Heard(time.monotonic(), self.command, self.path, body, words))
        self.close_connection = told.breaks
        if told.status:  # else the connection breaks without a word
            self.send_response(told.status)
            for name, value in ({"content-length": str(len(told.body) + told.breaks)} | told.headers).items():
                self.send_header(name, value)
            self.end_headers()
            self.write(told)

    do_POST, do_PUT, do_DELETE = do_GET, do_GET, do_GET  # noqa: N815

    def write(self, told: Told) -> None:
        pieces = [told.body[at : at + 1] for at in range(len(told.body))] if told.drops_s else [told.body]
        try:
            for piece in pieces:
                self.wfile.write(piece)
                time.sleep(told.drops_s)
        except OSError:  # nobody listens any more
            self.close_connection = True

    def log_message(self, *_: object) -> None:
        pass


def unavailable(named: str) -> pytest.RaisesExc[UnavailableError]:
    return pytest.raises(UnavailableError, match=named)


def error(code: str, **more: Any) -> bytes:
    return json.dumps({"error": {"code": code, "message": f"{code} it is", **more}}).encode()


ADVICE = json.dumps({"assigned_urls": []}).encode()
