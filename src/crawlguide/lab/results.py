"""What runs leave behind: for each policy, task and repeat the fetches in their order, as one JSON document.

The document is the same to the byte for equal runs, but for the two times of each run. `docs/lab-results.md` tells what
every field means; whoever wants another figure than ours can compute it from here.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import msgspec

from crawlguide.core.errors import DataError
from crawlguide.gateway.transfers import written

if TYPE_CHECKING:
    from pathlib import Path

SCHEMA = 1
OUTCOMES = "pdruet"  # page, dead link, redirect, duplicate, error, trap
DECIMALS = 6  # of p: finer differences mean nothing, and the file stays small


class Run(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """One policy on one task, once. The four columns `relevant`, `outcome`, `host`, `p` have one place per fetch."""

    web: str
    task: str
    policy: str
    repeat: int
    seed: int
    budget: int
    batch: int
    crawlers: int
    seeds_from: str
    feedback: str
    reference: bool  # an oracle or a ceiling: it was shown what no crawler can know
    relevant: list[int]
    outcome: str
    host: list[int]
    p: list[float | None]
    targets: int
    reachable: int
    seconds: float
    cpu_us_per_fetch: float

    def __post_init__(self) -> None:
        fetches = len(self.relevant)
        for name in ("outcome", "host", "p"):
            if len(getattr(self, name)) != fetches:
                raise ValueError(f"{name}: expected {fetches} places as `relevant` has, got {len(getattr(self, name))}")
        if not 0 <= fetches <= self.budget:
            raise ValueError(f"relevant: expected at most {self.budget} fetches, as the budget says, got {fetches}")
        if odd := set(self.outcome) - set(OUTCOMES):
            raise ValueError(f"outcome: expected letters of {OUTCOMES!r}, got {min(odd)!r}")
        if odd_labels := set(self.relevant) - {0, 1}:
            raise ValueError(f"relevant: expected 0 or 1, got {min(odd_labels)}")
        self.p = [_plain(value) for value in self.p]
        if odd_chances := [value for value in self.p if value is not None and not 0 <= value <= 1]:
            raise ValueError(f"p: expected chances from 0 to 1, got {odd_chances[0]}")

    @property
    def pair(self) -> tuple[str, str, int]:
        """What two policies are compared on."""
        return self.web, self.task, self.repeat


class Results(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """All runs of one command, and what it takes to make them again."""

    schema: int = SCHEMA
    command: list[str]
    versions: dict[str, str]
    runs: list[Run]


def _plain(value: float | None) -> float | None:
    """A chance as it is written: JSON has no NaN, so an unknown one is null."""
    return None if value is None or math.isnan(value) else round(float(value), DECIMALS)


def encode(results: Results, *, times: bool = True) -> bytes:
    """The document, runs in a fixed order whoever finished first; without `times`, equal runs give equal bytes."""
    runs = sorted(results.runs, key=lambda run: (run.web, run.task, run.reference, run.policy, run.repeat))
    if not times:
        runs = [msgspec.structs.replace(run, seconds=0.0, cpu_us_per_fetch=0.0) for run in runs]
    ordered = msgspec.structs.replace(results, runs=runs, versions=dict(sorted(results.versions.items())))
    return msgspec.json.encode(ordered) + b"\n"


def write_json(results: Results, path: Path) -> None:
    """The file gets its name when it is whole."""
    with written(path) as file:
        file.write(encode(results))


def read_json(path: Path) -> Results:
    try:
        results = msgspec.json.decode(path.read_bytes(), type=Results)
    except OSError as problem:
        raise DataError(f"{path}: cannot be read: {problem.strerror}") from None
    except msgspec.DecodeError as problem:
        raise DataError(f"{path}: expected results of the lab: {problem}") from None
    if results.schema != SCHEMA:
        raise DataError(f"{path}: schema: expected {SCHEMA}, got {results.schema}")
    return results
