"""Run a module as a program that Ctrl-C ends without a traceback, with 130: `python -m scripts.quietly bench.hard`.

The Makefile runs its programs so: also while they import what they need, of which they know nothing yet.
"""

from __future__ import annotations

import runpy
import sys

INTERRUPTED = 130


def main() -> None:
    try:
        runpy.run_module(sys.argv.pop(1), run_name="__main__", alter_sys=True)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


if __name__ == "__main__":
    main()
