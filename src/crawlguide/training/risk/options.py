"""Which URLs a model of risk is fitted and measured with, as a command is told."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from crawlguide.training.risk import examples

if TYPE_CHECKING:
    import numpy as np

    from crawlguide.training.risk.examples import Examples


def parser(description: str | None, program: str | None = None) -> argparse.ArgumentParser:
    """Commands add what they need besides."""
    asked = argparse.ArgumentParser(program, description=description)
    asked.add_argument("--labelled", type=Path, required=True, help="Parquet: url, label (1: malicious), source")
    asked.add_argument(
        "--good", type=Path, action="append", default=[], help="more good URLs: .txt, or Parquet with url"
    )
    asked.add_argument("--seed", type=int, default=0)
    return asked


def known(given: argparse.Namespace, chance: np.random.Generator) -> Examples:
    """All that was named."""
    found = examples.labelled(given.labelled)
    for path in given.good:
        found += examples.good(path, chance)
    return found
