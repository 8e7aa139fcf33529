"""The audit log: who changed what, when and from where, a line of JSON each, beside the data."""

from __future__ import annotations

import json
import logging
import os
import time
from logging.handlers import RotatingFileHandler
from typing import TYPE_CHECKING

from crawlguide.core.clock import iso
from crawlguide.core.telemetry import happened, without_secrets

if TYPE_CHECKING:
    from pathlib import Path

FILE = "audit.jsonl"
MOST_BYTES, FILES_KEPT = 16 * 1024 * 1024, 10
LONGEST = 500


class AuditLog:
    """Appends lines; without a folder they go to the log of the server alone."""

    def __init__(self, path: Path | None) -> None:
        self._handler = None if path is None else _PrivateFile(path, maxBytes=MOST_BYTES, backupCount=FILES_KEPT - 1)

    def write(self, who: str, tenant: str, address: str, what: str, status: int) -> None:
        """`who` and `what` may hold names from outside; what is not plain ASCII is escaped."""
        fields = {
            "who": who[:LONGEST],
            "tenant": tenant,
            "address": address,
            "what": without_secrets(what)[:LONGEST],
            "status": status,
        }
        if self._handler is None:
            happened("audit", "{who} at {address}: {what} -> {status}", **fields)  # type: ignore[arg-type]
        else:
            line = json.dumps({"at": iso(time.time()), **fields}, separators=(",", ":")).replace("\x7f", "\\u007f")
            self._handler.emit(logging.makeLogRecord({"msg": line}))

    def close(self) -> None:
        if self._handler is not None:
            self._handler.close()


class _PrivateFile(RotatingFileHandler):
    """Only its owner can read it. A line that cannot be written is missing, and said so on the standard error."""

    def __init__(self, path: Path, **options: int) -> None:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        super().__init__(path, encoding="ascii", delay=True, **options)  # type: ignore[arg-type]

    def _open(self):  # type: ignore[no-untyped-def]
        return open(self.baseFilename, "a", encoding="ascii", opener=lambda name, flags: os.open(name, flags, 0o600))
