"""URLs with labels: where they come from, which copies of them are made, and how much each counts."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from crawlguide.core import urls as addresses
from crawlguide.core.errors import ConfigError, UrlError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from crawlguide.core.tables import F64, Mask, Text

MALICIOUS = "malicious"
PER_DOMAIN = 3  # URLs of one domain from a list of good ones, and from how many on a bad host is a shared one
HOME = 0.3  # of URLs also count as their home page
POWER = 0.8  # a domain with n URLs counts n^(1 − POWER)


@dataclass(frozen=True)
class Examples:
    """Columns: canonical URL, 1 for a malicious one, registrable domain, and the collection it came from."""

    url: Text
    label: F64
    domain: Text
    source: Text

    def __len__(self) -> int:
        return len(self.label)

    def take(self, rows: Mask) -> Examples:
        return Examples(self.url[rows], self.label[rows], self.domain[rows], self.source[rows])

    def __add__(self, other: Examples) -> Examples:
        mine, theirs = vars(self), vars(other)
        return Examples(**{name: np.concatenate([mine[name], theirs[name]]) for name in mine})


def of(urls: Iterable[str], label: int, source: str) -> Examples:
    """What cannot be read as a URL is left out."""
    found = [known for known in map(_canonical, urls) if known is not None]
    domains = [addresses.domain_of(addresses.queue(url)) for url in found]
    return Examples(_column(found), np.full(len(found), float(label)), _column(domains), _column([source] * len(found)))


def labelled(path: Path) -> Examples:
    """A Parquet file with the columns `url`, `label` (1: malicious) and `source`."""
    table = _table(path)
    known = zip(table["url"].to_pylist(), table["label"].to_pylist(), table["source"].to_pylist(), strict=True)
    groups: dict[tuple[int, str], list[str]] = {}
    for url, label, source in known:
        groups.setdefault((label, MALICIOUS if label else source), []).append(url)
    parts = [of(urls, label, source) for (label, source), urls in sorted(groups.items())]
    if not parts:
        raise ConfigError(f"{path}: expected URLs, got none")
    return sum(parts[1:], parts[0])


def good(path: Path, chance: np.random.Generator) -> Examples:
    """A list of good URLs, a text file or a Parquet file with a column `url`; a few of each domain."""
    urls = path.read_text().split() if path.suffix == ".txt" else _table(path)["url"].to_pylist()
    found = of(sorted(set(urls)), 0, str(path))
    order = chance.permutation(len(found))
    seen: Counter[str] = Counter()
    kept = np.zeros(len(found), np.bool_)
    for row in order.tolist():
        seen[found.domain[row]] += 1
        kept[row] = seen[found.domain[row]] <= PER_DOMAIN
    return found.take(kept)


def with_copies(examples: Examples, chance: np.random.Generator) -> Examples:
    """Each URL also cut short, and some as their home page, so that no model lives on how long they are.

    Not those of malicious pages on shared hosts: their hosts are innocent.
    """
    count = Counter(examples.domain.tolist())
    alone = np.array([count[domain] <= PER_DOMAIN for domain in examples.domain], np.bool_)
    some = examples.take((examples.label == 0) | alone)
    cut = Examples(_column([_cut(url, chance) for url in some.url]), some.label, some.domain, some.source)
    homes = some.take(chance.random(len(some)) < HOME)
    homes = Examples(_column([_first(url, 3) for url in homes.url]), homes.label, homes.domain, homes.source)
    return examples + cut + homes


def weights(examples: Examples) -> F64:
    """Malicious and good ones count the same, every collection of good ones too, and large domains little more."""
    count = Counter(examples.domain.tolist())
    weight = np.array([count[domain] ** -POWER for domain in examples.domain])
    collections = np.unique(examples.source[examples.label == 0])
    for source in (MALICIOUS, *collections):
        mine = examples.source == source
        share = 0.5 if source == MALICIOUS else 0.5 / len(collections)
        weight[mine] *= len(examples) * share / weight[mine].sum()
    return weight


def folds(examples: Examples, count: int, chance: np.random.Generator) -> list[Mask]:
    """Each example once in a test set; never a domain in two of them."""
    domains, number = np.unique(examples.domain, return_inverse=True)
    place = chance.permutation(len(domains)) % count
    return [place[number] == fold for fold in range(count)]


def _canonical(url: str) -> str | None:
    try:
        return addresses.canonical(url)
    except UrlError:
        return None


def _cut(url: str, chance: np.random.Generator) -> str:
    return _first(url, int(chance.integers(3, max(4, url.count("/") + 1))))


def _first(url: str, segments: int) -> str:
    return "/".join(url.split("/")[:segments]) + "/"


def _table(path: Path) -> Any:
    try:
        return import_module("pyarrow.parquet").read_table(path)
    except ImportError:
        raise ConfigError("reading Parquet needs pyarrow: pip install 'crawlguide[train]'") from None
    except (OSError, ValueError) as problem:
        raise ConfigError(f"{path}: cannot be read: {problem}") from None


def _column(values: list[str]) -> Text:
    column = np.empty(len(values), object)
    column[:] = values
    return column
