"""The log of a server: one line per event, as text or as JSON, never more than somebody can read.

Lines are written by a thread of their own: whoever does not read them delays nobody who asks.
"""

from __future__ import annotations

import json
import logging
import queue
import threading
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TextIO

from crawlguide.core.messages import DEFAULT_TENANT
from crawlguide.core.telemetry import LOGGER, printable, without_secrets

if TYPE_CHECKING:
    from collections.abc import Iterator

    from crawlguide.core.config import ServerOptions

WINDOW_S, AT_MOST = 10.0, 20  # so many lines of one kind in so long
LONGEST = 500  # characters of a field
WAITING = 10_000  # lines that nobody has taken yet; beyond, they are lost
PATIENCE_S = 2.0


@contextmanager
def kept(options: ServerOptions, stream: TextIO) -> Iterator[None]:
    """Until the end, everything this process logs becomes lines of `stream`; of others' parts only warnings."""
    lines, root, before = Lines(stream, options.log_format), logging.getLogger(), LOGGER.level
    root.addHandler(lines)
    LOGGER.setLevel(options.log_level.upper())
    logging.captureWarnings(True)
    try:
        yield
    finally:
        logging.captureWarnings(False)
        LOGGER.setLevel(before)
        root.removeHandler(lines)
        lines.close()


class Lines(logging.Handler):
    """Records to lines: bounded for each kind, escaped, one by one."""

    def __init__(self, stream: TextIO, form: str) -> None:
        super().__init__()
        self._stream, self._format = stream, FORMATS[form]
        self._bound = Bound()
        self._lines: queue.Queue[str | None] = queue.Queue(WAITING)
        self._thread = threading.Thread(target=self._write, name="crawlguide-log", daemon=True)
        self._thread.start()

    def emit(self, record: logging.LogRecord) -> None:
        for summary in self._bound.ended(record.created):
            self._put(summary)
        if self._bound.allows(record):
            self._put(record)

    def close(self) -> None:
        """Write what waits, but not for ever."""
        for summary in self._bound.ended(float("inf")):
            self._put(summary)
        with suppress(queue.Full):
            self._lines.put(None, timeout=PATIENCE_S)
        self._thread.join(PATIENCE_S)
        super().close()

    def _put(self, record: logging.LogRecord) -> None:
        with suppress(queue.Full):
            self._lines.put_nowait(self._format(record))

    def _write(self) -> None:
        while (line := self._lines.get()) is not None:
            with suppress(OSError, ValueError):  # whoever read has gone, and there is nobody to tell
                self._stream.write(line)
                self._stream.flush()


class Bound:
    """At most so many lines of one kind in a while; how many were left out is said when the while has ended."""

    def __init__(self) -> None:
        self._seen: dict[tuple[str, str], list[float]] = {}  # by event and code: since when, how many

    def allows(self, record: logging.LogRecord) -> bool:
        kind = _event(record), str(_fields(record).get("code", ""))
        began, count = self._seen.get(kind, (record.created, 0))
        self._seen[kind] = [began, count + 1]
        return count < AT_MOST

    def ended(self, now: float) -> list[logging.LogRecord]:
        """A record for each kind of which some were left out; every kind whose while is over begins anew."""
        over = {kind: seen for kind, seen in self._seen.items() if not 0 <= now - seen[0] < WINDOW_S}
        for kind in over:
            del self._seen[kind]
        return [_left_out(*kind, int(count) - AT_MOST) for kind, (_, count) in over.items() if count > AT_MOST]


def _left_out(event: str, code: str, count: int) -> logging.LogRecord:
    what = f"{event} {code}".strip()
    message = f"{count} more lines of {what} were left out; /metrics counts all of them"
    made = logging.makeLogRecord({"levelno": logging.WARNING, "levelname": "WARNING", "msg": message})
    made.__dict__.update(event="left_out", fields={"of": event, "code": code or None, "count": count})
    return made


def as_json(record: logging.LogRecord) -> str:
    """Plain ASCII, so that nothing in it ends a line or moves a cursor, wherever it is read."""
    about = {"at": _instant(record), "level": record.levelname.lower(), "event": _event(record)}
    about |= {"message": record.getMessage(), **_fields(record)}
    if record.exc_info:
        about["traceback"] = logging.Formatter().formatException(record.exc_info)
    shown = {name: without_secrets(value)[: _longest(name)] if isinstance(value, str) else value
             for name, value in about.items()}  # fmt: skip
    return json.dumps(shown, separators=(",", ":"), default=str).replace("\x7f", "\\u007f") + "\n"


def as_text(record: logging.LogRecord) -> str:
    """For people: when, how bad, what. Lines of a traceback are set in, so none can be taken for an event."""
    said = printable(without_secrets(record.getMessage()))[: 2 * LONGEST]
    line = f"{_instant(record)} {record.levelname.lower()} {said}{_whose(record)}\n"
    if not record.exc_info:
        return line
    trace = without_secrets(logging.Formatter().formatException(record.exc_info))
    return line + "".join(f"    {printable(part)}\n" for part in trace.splitlines())


FORMATS = {"json": as_json, "text": as_text}


def _whose(record: logging.LogRecord) -> str:
    """The tenant, where there are several: a crawl of the same name may be another's."""
    tenant = _fields(record).get("tenant", DEFAULT_TENANT)
    return "" if tenant == DEFAULT_TENANT else f" (tenant {printable(str(tenant))})"


def _instant(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _event(record: logging.LogRecord) -> str:
    """Ours have a name; of others it is that of their logger."""
    return str(getattr(record, "event", record.name))


def _fields(record: logging.LogRecord) -> dict[str, Any]:
    found: dict[str, Any] = getattr(record, "fields", {})
    return found


def _longest(name: str) -> int:
    return 20 * LONGEST if name == "traceback" else 2 * LONGEST if name == "message" else LONGEST
