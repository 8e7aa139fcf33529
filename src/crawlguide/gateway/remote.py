"""A server that runs: asked over HTTP, with every way in which that can fail said in one line.

What the guide itself is made of takes a second to load, so it is imported where it is needed.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import httpx
import msgspec

from crawlguide.core.errors import CrawlGuideError
from crawlguide.gateway.client import calls
from crawlguide.gateway.client.transport import CONNECT_S, are_lines, heard, shown
from crawlguide.gateway.places import address

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from crawlguide.core.messages import SeedMessage
    from crawlguide.gateway.backup import Slip
    from crawlguide.guide.crawl.transfer import Imported

ANSWER_S = 300.0
Message = TypeVar("Message")
_NUMBERED = re.compile(r"line (\d+): (.*)", re.DOTALL)


class ImportAnswer(msgspec.Struct):
    lines: int
    discovered: int
    skipped: list[str]


class BackupAnswer(msgspec.Struct):
    path: str
    made: str
    state_hash: str


class Remote:
    """The same calls as a `Folder` has. What a call returned is on the server's stable storage."""

    def __init__(self, url: str, most_bytes: int, answer_s: float = ANSWER_S) -> None:
        self.most_bytes = most_bytes
        waits = httpx.Timeout(answer_s, connect=CONNECT_S)
        self._client = httpx.Client(base_url=address(url), timeout=waits, trust_env=False)
        self._url = shown(self._client.base_url)

    def exported(self, crawl: str) -> Iterator[bytes]:
        with heard(self._url), self._client.stream("GET", calls.crawl_path(crawl, "/export")) as answer:
            if not are_lines(answer):
                answer.read()
                raise self._refusal(answer)
            yield from answer.iter_bytes()

    def imported(self, crawl: str, lines: Sequence[bytes], first: int) -> Imported:
        from crawlguide.guide.crawl.transfer import Imported  # noqa: PLC0415

        done = self._post(calls.crawl_path(crawl, "/import"), b"\n".join(lines), ImportAnswer)
        return Imported(done.lines, done.discovered, tuple(_renumbered(reason, first) for reason in done.skipped))

    def seeded(self, crawl: str, seeds: Sequence[SeedMessage]) -> int:
        body = msgspec.json.encode({"urls": seeds})
        return self._post(calls.crawl_path(crawl, "/seeds"), body, calls.SeedsAnswer).discovered

    def backed_up(self, target: Path) -> Slip:
        """The server puts its copy beside its data; it is moved here, which takes the server's machine."""
        from crawlguide.gateway.backup import half_of  # noqa: PLC0415

        half = half_of(target, "backup")  # refuses before anything is copied
        made = self._post("/v1/backups", b"", BackupAnswer)
        source = Path(made.path)
        slip = self._reached(source, made)
        try:
            shutil.move(source, half)
            half.rename(target)
        except OSError as problem:
            raise CrawlGuideError(f"backup: {source} cannot be moved to {target}: {problem}") from None
        return slip

    def close(self) -> None:
        self._client.close()

    def _reached(self, source: Path, made: BackupAnswer) -> Slip:
        """What lies at that path must be what the server has just made: it may name a path of another machine."""
        from crawlguide.gateway.backup import read_slip  # noqa: PLC0415

        try:
            slip = read_slip(source)
        except CrawlGuideError:
            slip = None
        if slip is None or (slip.made, slip.state_hash) != (made.made, made.state_hash):
            raise CrawlGuideError(
                f"backup: {self._url} has put it into {source}, which cannot be reached from here; fetch it from there"
            )
        return slip

    def _post(self, path: str, body: bytes, kind: type[Message]) -> Message:
        with heard(self._url):
            answer = self._client.post(path, content=body)
        if not answer.is_success:
            raise self._refusal(answer)
        return calls.decoded(self._reply(answer), kind)

    def _refusal(self, answer: httpx.Response) -> CrawlGuideError:
        reply = self._reply(answer)
        told = calls.told(reply)
        return CrawlGuideError(f"{self._url} says: {told.message}") if told else calls.stranger(reply)

    def _reply(self, answer: httpx.Response) -> calls.Reply:
        return calls.Reply(self._url, answer.status_code, answer.content)


def _renumbered(reason: str, first: int) -> str:
    """The server counts the lines of one request, a person those of the file."""
    numbered = _NUMBERED.fullmatch(reason)
    return f"line {first - 1 + int(numbered[1])}: {numbered[2]}" if numbered else reason
