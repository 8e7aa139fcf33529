"""`python -m tests.crash.kill --kills 50 --seed 7 [--points [NAME …]]`: kill a working server, start it again, check.

Exits with 1, and keeps the folder, if any promise was broken.
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from tests.crash import chaos
from tests.crash.trial import Summary, Trial

if TYPE_CHECKING:
    from collections.abc import Sequence

SHOWN = 20


def main(words: Sequence[str] | None = None) -> int:
    options = _options(words)
    if options.points is None:
        summaries = [_kills(options.kills, options.seed, options.forgetful)]
    else:
        summaries = _points(options.points, options.seed)
    return int(any(summary.violations for summary in summaries))


def _options(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="tests.crash.kill", description=__doc__)
    parser.add_argument("--kills", type=int, default=50, help="how many times the server is killed")
    parser.add_argument("--seed", type=int, default=1, help="what crawlers do and when kills come")
    parser.add_argument("--points", nargs="*", help="one run for each of these fault points instead; all without names")
    parser.add_argument("--forgetful", action="store_true", help="serve :memory:, to see that the checker notices")
    return parser.parse_args(words)


def _kills(count: int, seed: int, forgetful: bool) -> Summary:
    folder = _folder()
    summary = asyncio.run(Trial(folder, seed, forgetful=forgetful).run(chaos.kills(count)))
    _tell(summary, folder)
    return summary


def _points(names: Sequence[str], seed: int) -> list[Summary]:
    from crawlguide.core.faults import POINTS

    summaries = []
    for name in names or POINTS:
        folder = _folder()
        summary = asyncio.run(Trial(folder, seed, heal_s=0.5).run(chaos.points([name])))
        _say(f"point {name}")
        _tell(summary, folder)
        summaries.append(summary)
    return summaries


def _folder() -> Path:
    return Path(tempfile.mkdtemp(prefix="crash-"))


def _tell(summary: Summary, folder: Path) -> None:
    """One line, and the first violations where there are any."""
    _say(str(summary))
    for violation in summary.violations[:SHOWN]:
        _say(f"  {violation}")
    if summary.violations:
        _say(f"  history, folder and words of the server are in {folder}")
    else:
        shutil.rmtree(folder)


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
