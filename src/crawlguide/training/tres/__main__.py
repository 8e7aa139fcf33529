"""Train the network of `tres` on the transitions of crawls, and write it as an ONNX file."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from crawlguide.core.errors import ConfigError, NotFound
from crawlguide.training.tres import reading


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m crawlguide.training.tres", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="a data folder that is not being served, or a backup")
    parser.add_argument(
        "--crawl", action="append", default=[], help="whose transitions; by default those of all crawls"
    )
    parser.add_argument("--out", type=Path, required=True, help="where the ONNX file goes")
    parser.add_argument("--steps", type=int, default=5_000, help="batches of 64 transitions")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    found = reading.transitions(given.data, given.crawl)
    try:
        from crawlguide.training.tres import fitting, network  # noqa: PLC0415 - torch is an extra
    except ImportError as missing:
        raise ConfigError(f"training needs the extra train (pip install 'crawlguide[train]'): {missing}") from None
    trained = fitting.fitted(found, fitting.Fitting(steps=given.steps), given.seed)
    network.export(trained, given.out)
    sys.stdout.write(f"{given.out}: {len(found)} transitions, {given.steps} steps, {given.out.stat().st_size} bytes\n")


if __name__ == "__main__":
    try:
        main()
    except (ConfigError, NotFound) as wrong:
        sys.exit(wrong.message)
