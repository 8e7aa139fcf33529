"""Fit the model of risk from labelled URLs, say what it is worth, and write it."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from crawlguide.core.errors import ConfigError
from crawlguide.policy.risk.model import SHIPPED
from crawlguide.training.risk import exporting, measuring, options


def main() -> None:
    parser = options.parser(__doc__, "python -m crawlguide.training.risk")
    parser.add_argument("--out", type=Path, default=SHIPPED, help="where the model goes")
    parser.add_argument("--onnx", type=Path, help="where it goes as an ONNX file as well")
    given = parser.parse_args()
    known = options.known(given, np.random.default_rng(given.seed))
    collections = np.unique(known.source[known.label == 0]).tolist()
    for source in collections if len(collections) > 1 else ():
        label, sums = measuring.unseen_source(known, source, given.seed)
        said(f"without {source}: auc {measuring.auc(label, sums):.4f} on it")
    model, figures = measuring.final(known, given.seed)
    model.save(given.out)
    if given.onnx:
        exporting.export(model, given.onnx)
    said("unseen domains: " + ", ".join(f"{name} {figure:.4f}" for name, figure in figures.items()))
    said(f"{given.out}: {given.out.stat().st_size} bytes")


def said(line: str) -> None:
    sys.stdout.write(line + "\n")


if __name__ == "__main__":
    try:
        main()
    except ConfigError as wrong:
        sys.exit(wrong.message)
