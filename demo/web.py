"""A tiny web on loopback: four sites, each on a port of its own, with pages that link mostly to their own kind."""

from __future__ import annotations

import random
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from typing import Self

SITES, PAGES, LINKS = 4, 120, 8
GOOD = ("database", "index", "transaction", "query", "storage", "join")
OTHER = ("garden", "music", "travel", "recipe", "football", "weather")
GOOD_SHARE, HOMOPHILY = 0.2, 0.8


class TinyWeb:
    """Serves until closed, and remembers when each site was asked."""

    def __init__(self, seed: int = 7) -> None:
        chance = random.Random(seed)
        self._servers = [ThreadingHTTPServer(("127.0.0.1", 0), self._handler()) for _ in range(SITES)]
        self.sites = [f"http://127.0.0.1:{server.server_port}" for server in self._servers]
        self._asked: dict[str, list[float]] = {site: [] for site in self.sites}
        names = [(site, f"/page-{number}") for site in self.sites for number in range(PAGES)]
        good = {name for name in names if chance.random() < GOOD_SHARE}
        self._bodies = {site + path: page(site, path, names, good, chance) for site, path in names}
        for site in self.sites:
            home = [name for name in names if name[0] == site][:LINKS]
            self._bodies[site + "/"] = html("home", "welcome", home)
        self.pages = len(self._bodies)
        self.share = len(good) / self.pages

    def __enter__(self) -> Self:
        for server in self._servers:
            threading.Thread(target=server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        for server in self._servers:
            server.shutdown()
            server.server_close()

    def shortest_gap(self) -> float:
        """Seconds between the two closest requests to one site."""
        gaps = [later - earlier for asked in self._asked.values() for earlier, later in pairwise(asked)]
        return min(gaps, default=float("inf"))

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        web = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                site = f"http://{self.headers['host']}"
                web._asked[site].append(time.monotonic())
                body = web._bodies.get(site + self.path)
                self.send_response(404 if body is None else 200)
                self.send_header("content-type", "text/html")
                self.end_headers()
                self.wfile.write(body or b"")

            def log_message(self, *_: object) -> None:
                pass

        return Handler


def page(
    site: str, path: str, names: list[tuple[str, str]], good: set[tuple[str, str]], chance: random.Random
) -> bytes:
    mine = (site, path) in good
    alike = [name for name in names if (name in good) == mine]
    targets = [chance.choice(alike if chance.random() < HOMOPHILY else names) for _ in range(LINKS)]
    words = GOOD if mine else OTHER
    return html(f"About {chance.choice(words)}", " ".join(chance.choices(words, k=300)), targets)


def html(title: str, text: str, links: list[tuple[str, str]]) -> bytes:
    anchors = "".join(f'<a href="{site}{path}">{path[1:]}</a> ' for site, path in links)
    return f"<html><head><title>{title}</title></head><body><p>{text}</p>{anchors}</body></html>".encode()
