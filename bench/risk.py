"""What the correction of risk by a crawl's own outcomes is worth, on domains that the model never saw.

    python bench/risk.py --labelled urls.parquet [--good links.parquet ...]

The labelled URLs are judged one after the other, in random order, each by a model that was fitted without its domain.
What is judged to be less risky than the threshold is fetched, and its outcome is heard before the next is judged: a
malicious one turns out bad (blocked, gone) with the probability `caught`, a good one is dead with the probability
`dead`. No page is known on which the URLs were found, so only the domain they lead to is corrected.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from crawlguide.core import urls as addresses
from crawlguide.policy.risk.outcomes import Outcomes
from crawlguide.training import risk
from crawlguide.training.risk import calibrated

if TYPE_CHECKING:
    from crawlguide.core.tables import F64
    from crawlguide.training.risk import Examples

THRESHOLD = 0.8
CASES = ((1.0, 0.0), (0.5, 0.05), (0.2, 0.1))  # caught, dead


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--labelled", type=Path, required=True, help="Parquet: url, label (1: malicious), source")
    parser.add_argument("--good", type=Path, action="append", default=[], help="more good URLs: .txt, or Parquet")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    chance = np.random.default_rng(given.seed)
    known = risk.read(given.labelled, given.good, chance)
    sums = risk.unseen_domains(known, given.seed)
    slope, offset = calibrated(sums, known.label)
    odds = slope * sums + offset
    print(f"{len(known)} URLs of {len(set(known.domain.tolist()))} domains")
    said("the model alone", known, odds)
    for caught, dead in CASES:
        said(f"corrected, caught {caught:g}, dead {dead:g}", known, replayed(known, odds, caught, dead, chance))


def replayed(known: Examples, odds: F64, caught: float, dead: float, chance: np.random.Generator) -> F64:
    """The corrected log odds of each URL at the moment when it was judged."""
    outcomes, found = Outcomes(), odds.copy()
    queues = [addresses.queue(url) for url in known.url]
    bad = chance.random(len(known)) < np.where(known.label == 1, caught, dead)
    for row in chance.permutation(len(known)).tolist():
        found[row] += outcomes.shift([queues[row]], [""])[0]
        if found[row] < np.log(THRESHOLD / (1 - THRESHOLD)):
            outcomes.count(queues[row], bool(bad[row]))
    return found


def said(what: str, known: Examples, odds: F64) -> None:
    likely = 1.0 / (1.0 + np.exp(-odds))
    auc, ece = risk.auc(known.label, odds), risk.calibration_error(known.label, likely)
    recall, wrong = (float((likely[known.label == label] >= THRESHOLD).mean()) for label in (1, 0))
    print(f"{what:36} AUC {auc:.4f}  ECE {ece:.4f}  refused: malicious {recall:.3f}, good {wrong:.4f}", flush=True)


if __name__ == "__main__":
    main()
