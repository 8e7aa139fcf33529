"""`crawlguide` with snapshots as often as a test needs them: in a minute, not in an hour, of being killed."""

from __future__ import annotations

from crawlguide import cli
from crawlguide.store.embedded import writer

LOG_AT_LEAST = 1 << 18

if __name__ == "__main__":
    writer.LOG_AT_LEAST = LOG_AT_LEAST
    cli.main()
