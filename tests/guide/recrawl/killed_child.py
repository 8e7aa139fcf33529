"""A crawler with a guide of its own that crawls for some days, says what it knows, and waits to be killed."""

from __future__ import annotations

import json
import sys
import threading

import numpy as np

from crawlguide import Guide
from crawlguide.testing import ManualClock
from tests.guide.recrawl.web import DAY_S, NEVER_PACED, ChangingWeb, addresses, crawl, known
from tests.support import asked

URLS = addresses(30)


def main(folder: str, start: float, days: float) -> None:
    clock = ManualClock(start)
    web = ChangingWeb(URLS, np.linspace(0.05, 2.0, len(URLS)), clock)
    guide = Guide.open(folder, clock=clock)
    guide.define("default", {"policy": NEVER_PACED | {"recrawl": "refresh", "recrawl_per_day": 40}})
    guide.seed("default", URLS)
    crawl(guide, web, days, 40, DAY_S / 8)
    clock.advance(DAY_S / 4)
    given = asked(guide, max_urls=5)  # and never told
    said = {"at": clock.now(), "known": known(guide, URLS), "given": given}
    sys.stdout.write(json.dumps(said) + "\n")
    sys.stdout.flush()
    threading.Event().wait(600)


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]), float(sys.argv[3]))
