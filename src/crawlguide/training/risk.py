"""The model of risk: fitted from labelled URLs, measured on domains and collections it never saw, and written."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from crawlguide.core import urls as addresses
from crawlguide.core.errors import ConfigError, UrlError
from crawlguide.core.kernels import f32s, f64s, i32s, i64s, kernel, nothing, one_f64
from crawlguide.policy.risk import features
from crawlguide.policy.risk.model import Model
from crawlguide.policy.risk.url_text import url_texts
from crawlguide.training import needed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from crawlguide.core import tables
    from crawlguide.core.tables import F32, F64, I64, Mask, Text

MALICIOUS = "malicious"
PER_DOMAIN = 3  # URLs of one domain from a list of good ones, and from how many on a bad host is a shared one
HOME = 0.3  # of URLs also count as their home page
POWER = 0.8  # a domain with n URLs counts n^(1 − POWER)
PASSES, RATE = 2, 0.1
FOLDS, BINS, THRESHOLD = 5, 15, 0.8
OPSET, FORMAT = 17, 8


def train(known: Examples, seed: int, out: Path, onnx: Path | None, say: Callable[[str], None]) -> None:
    """Fit a model, say what it is worth, and write it; `onnx` is where it goes as an ONNX file as well."""
    collections = np.unique(known.source[known.label == 0]).tolist()
    for source in collections if len(collections) > 1 else ():
        label, sums = unseen_source(known, source, seed)
        say(f"without {source}: auc {auc(label, sums):.4f} on it")
    model, figures = final(known, seed)
    model.save(out)
    if onnx is not None:
        export(model, onnx)
    say("unseen domains: " + ", ".join(f"{name} {figure:.4f}" for name, figure in figures.items()))
    say(f"{out}: {out.stat().st_size} bytes")


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


def read(labelled_urls: Path, good_urls: Sequence[Path], chance: np.random.Generator) -> Examples:
    """Labelled URLs, and lists of good ones besides."""
    found = labelled(labelled_urls)
    for path in good_urls:
        found += good(path, chance)
    return found


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


def of(urls: Iterable[str], label: int, source: str) -> Examples:
    """What cannot be read as a URL is left out."""
    found = [known for known in map(_canonical, urls) if known is not None]
    domains = [addresses.domain_of(addresses.queue(url)) for url in found]
    return Examples(_column(found), np.full(len(found), float(label)), _column(domains), _column([source] * len(found)))


def _canonical(url: str) -> str | None:
    try:
        return addresses.canonical(url)
    except UrlError:
        return None


def _table(path: Path) -> Any:
    try:
        return needed("pyarrow.parquet").read_table(path)
    except (OSError, ValueError) as problem:
        raise ConfigError(f"{path}: cannot be read: {problem}") from None


def _column(values: list[str]) -> Text:
    column = np.empty(len(values), object)
    column[:] = values
    return column


def final(examples: Examples, seed: int) -> tuple[Model, dict[str, float]]:
    """The model of all examples, calibrated on sums of models that had not seen them; and what those were worth."""
    sums = unseen_domains(examples, seed)
    slope, offset = calibrated(sums, examples.label)
    likely = 1.0 / (1.0 + np.exp(-(slope * sums + offset)))
    figures = {"auc": auc(examples.label, sums), "ece": calibration_error(examples.label, likely)}
    for source in np.unique(examples.source).tolist():
        mine = examples.source == source
        word = "recall" if source == MALICIOUS else f"refused {source}"
        figures[word] = float((likely[mine] >= THRESHOLD).mean())
    return replace(fitted(examples, seed), slope=slope, offset=offset), figures


def unseen_domains(examples: Examples, seed: int) -> F64:
    """The sum of each example by a model that saw no URL of its domain."""
    sums = np.empty(len(examples))
    for test in folds(examples, FOLDS, np.random.default_rng(seed)):
        sums[test] = fitted(examples.take(~test), seed).sums(examples.url[test].tolist())
    return sums


def unseen_source(examples: Examples, source: str, seed: int) -> tuple[F64, F64]:
    """Labels and sums where the good URLs of one collection, and a fifth of the bad domains, were left out."""
    bad = folds(examples, FOLDS, np.random.default_rng(seed))[0] & (examples.label == 1)
    rest = ~bad & (examples.source != source)
    known = set(examples.domain[rest].tolist())
    fresh = np.array([domain not in known for domain in examples.domain], np.bool_)
    test = bad | ((examples.source == source) & fresh)
    return examples.label[test], fitted(examples.take(rest), seed).sums(examples.url[test].tolist())


def folds(examples: Examples, count: int, chance: np.random.Generator) -> list[Mask]:
    """Each example once in a test set; never a domain in two of them."""
    domains, number = np.unique(examples.domain, return_inverse=True)
    place = chance.permutation(len(domains)) % count
    return [place[number] == fold for fold in range(count)]


def fitted(examples: Examples, seed: int) -> Model:
    """Logistic regression on hashed features by AdaGrad, not calibrated yet.

    Two models in one: of whole URLs, and of URLs whose host is hidden; what holds without it carries further.
    """
    chance = np.random.default_rng(seed)
    known = with_copies(examples, chance)
    whole, hidden = (_fit(known, hide, chance) for hide in (False, True))
    both = whole + hidden
    scale = float(np.abs(both).max()) / 127
    return Model(np.rint(both / scale).astype(np.int8), scale, 0.0, 1.0, 0.0)


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


def _cut(url: str, chance: np.random.Generator) -> str:
    return _first(url, int(chance.integers(3, max(4, url.count("/") + 1))))


def _first(url: str, segments: int) -> str:
    return "/".join(url.split("/")[:segments]) + "/"


def _fit(known: Examples, hide_host: bool, chance: np.random.Generator) -> tables.F64:
    text, seams = url_texts(known.url.tolist())
    if hide_host:
        seams[:, :2] = seams[:, 2:3]
    room = len(known) * (features.MOST_FEATURES // 4) + 3 * len(text)
    index, value, ends = np.empty(room, np.int32), np.empty(room, np.float32), np.empty(len(known), np.int64)
    features.extract(text, seams, index, value, ends)  # type: ignore[no-untyped-call]
    found, steps = np.zeros(features.FEATURES), np.full(features.FEATURES, 1e-4)
    for _ in range(PASSES):
        order = chance.permutation(len(known))
        descend(index, value, ends, known.label, weights(known), order, RATE, found, steps)  # type: ignore[no-untyped-call]
    return found


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


@kernel(nothing(i32s, f32s, i64s, f64s, f64s, i64s, one_f64, f64s, f64s))
def descend(index, value, ends, label, weight, order, rate, found, steps):  # type: ignore[no-untyped-def]  # noqa: PLR0913, PLR0917
    """One pass of AdaGrad."""
    for row in order:
        first = ends[row - 1] if row else 0
        total = 0.0
        for place in range(first, ends[row]):
            total += found[index[place]] * value[place]
        error = (1.0 / (1.0 + np.exp(-total)) - label[row]) * weight[row]
        for place in range(first, ends[row]):
            slope = error * value[place]
            steps[index[place]] += slope * slope
            found[index[place]] -= rate * slope / np.sqrt(steps[index[place]])


def calibrated(sums: tables.F64, label: tables.F64) -> tuple[float, float]:
    """Slope and offset of log odds (Platt), by Newton's method."""
    slope, offset = 0.0, 0.0
    columns = np.column_stack([sums, np.ones(len(sums))])
    for _ in range(50):
        p = 1.0 / (1.0 + np.exp(-np.clip(slope * sums + offset, -30, 30)))
        gradient = columns.T @ (p - label)
        curvature = (columns * (p * (1 - p))[:, None]).T @ columns + 1e-9 * np.eye(2)
        slope, offset = np.array([slope, offset]) - np.linalg.solve(curvature, gradient)
    return float(slope), float(offset)


def auc(label: F64, score: F64) -> float:
    """The chance that a bad URL scores higher than a good one; ties count half."""
    _, place, count = np.unique(score, return_inverse=True, return_counts=True)
    rank = (np.cumsum(count) - (count - 1) / 2)[place]
    bad = label.sum()
    return float((rank[label == 1].sum() - bad * (bad + 1) / 2) / (bad * (len(label) - bad)))


def calibration_error(label: F64, likely: F64) -> float:
    """Expected calibration error: |how many were bad − how many were said to be|, over bins of equal width."""
    place = np.minimum((likely * BINS).astype(np.int64), BINS - 1)
    gaps = [abs(label[place == at].sum() - likely[place == at].sum()) for at in range(BINS)]
    return float(sum(gaps) / len(label))


def export(model: Model, path: Path) -> None:
    """Write an ONNX file for other runtimes: any number of URLs with any number of features in, the risk of each out.

    risk = 1 / (1 + exp(−(slope · (bias + scale · Σ weight[feature] · amount) + offset)))

    Its inputs `feature` and `amount` are what `inputs` makes of URLs. The weights stay bytes.
    """
    onnx: Any = needed("onnx")
    made, numbers, kind = onnx.helper, onnx.numpy_helper, onnx.TensorProto
    factor = np.array(model.slope * model.scale, np.float32)
    offset = np.array(model.slope * model.bias + model.offset, np.float32)
    constants = {"weights": model.weights, "factor": factor, "offset": offset, "along": np.array([1], np.int64)}
    steps: tuple[tuple[str, list[str], str, dict[str, int]], ...] = (
        ("Gather", ["weights", "feature"], "bytes", {}),
        ("Cast", ["bytes"], "weight", {"to": kind.FLOAT}),
        ("Mul", ["weight", "amount"], "share", {}),
        ("ReduceSum", ["share", "along"], "sum", {"keepdims": 0}),
        ("Mul", ["sum", "factor"], "slope", {}),
        ("Add", ["slope", "offset"], "odds", {}),
        ("Sigmoid", ["odds"], "risk", {}),
    )
    graph = made.make_graph(
        [made.make_node(name, given, [result], **options) for name, given, result, options in steps],
        "risk",
        [
            made.make_tensor_value_info("feature", kind.INT64, ["urls", "features"]),
            made.make_tensor_value_info("amount", kind.FLOAT, ["urls", "features"]),
        ],
        [made.make_tensor_value_info("risk", kind.FLOAT, ["urls"])],
        [numbers.from_array(values, name) for name, values in constants.items()],
    )
    known = made.make_model(graph, opset_imports=[made.make_opsetid("", OPSET)], ir_version=FORMAT)
    onnx.checker.check_model(known)
    path.write_bytes(known.SerializeToString())


def inputs(urls: Sequence[str]) -> tuple[I64, F32]:
    """The features of canonical URLs and how much each counts: a row for each URL, filled up with the amount 0."""
    text, seams = url_texts(urls)
    room = len(urls) * features.MOST_FEATURES
    index, value, ends = np.empty(room, np.int32), np.empty(room, np.float32), np.empty(len(urls), np.int64)
    features.extract(text, seams, index, value, ends)  # type: ignore[no-untyped-call]
    starts = np.concatenate([[0], ends[:-1]])
    width = int((ends - starts).max(initial=1))
    feature, amount = np.zeros((len(urls), width), np.int64), np.zeros((len(urls), width), np.float32)
    for row, (start, end) in enumerate(zip(starts.tolist(), ends.tolist(), strict=True)):
        feature[row, : end - start], amount[row, : end - start] = index[start:end], value[start:end]
    return feature, amount
