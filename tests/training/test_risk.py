"""How the model of risk is fitted: what it is shown, what it learns, and that the figures are honest."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from crawlguide.core.errors import ConfigError
from crawlguide.policy.risk.model import load, shipped
from crawlguide.training import risk
from crawlguide.training.risk import MALICIOUS, Examples, calibrated, fitted

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable

SHARED = Path(__file__).parents[3] / "shared" / "data"
NAMES = ["apple", "birch", "cedar", "daisy", "elder", "fern", "gorse", "hazel", "iris", "jasmine"]


def some() -> Examples:
    """Good pages have stories, bad ones logins; on many domains each."""
    good = [f"https://{name}{number}.org/story/of-{name}/{number}" for number in range(40) for name in NAMES]
    bad = [f"http://{name}-{number}.tk/verify/login.php" for number in range(40) for name in NAMES]
    return risk.of(good, 0, "made up") + risk.of(bad, 1, MALICIOUS)


def write_labelled(path: Path) -> Path:
    """Some examples as a Parquet file."""
    parquet, arrow = pytest.importorskip("pyarrow.parquet"), pytest.importorskip("pyarrow")
    known = some()
    columns = {"url": known.url.tolist(), "label": known.label.astype(int).tolist(), "source": known.source.tolist()}
    parquet.write_table(arrow.table(columns), path)
    return path


def test_it_learns_what_tells_them_apart_on_domains_it_never_saw() -> None:
    known = some()
    assert risk.auc(known.label, risk.unseen_domains(known, 0)) > 0.95


def test_no_domain_is_in_two_folds() -> None:
    known = some()
    parts = [set(known.domain[fold].tolist()) for fold in risk.folds(known, 5, np.random.default_rng(0))]
    assert sum(map(len, parts)) == len(set(known.domain.tolist()))


def test_copies_are_shorter_and_never_of_bad_pages_on_shared_hosts() -> None:
    shared = risk.of([f"https://host.org/{number}/a/b" for number in range(9)], 1, MALICIOUS)
    good = risk.of([f"https://host{number}.org/x/a/b" for number in range(9)], 0, "good")
    chance = np.random.default_rng(0)
    assert len(risk.with_copies(shared, chance)) == 9
    assert 18 <= len(risk.with_copies(good, chance)) <= 27


def test_good_and_bad_weigh_the_same_whatever_their_number() -> None:
    known = some() + risk.of([f"https://more{n}.net/a/b" for n in range(3_000)], 0, "another")
    weight = risk.weights(known)
    for source, share in ((MALICIOUS, 0.5), ("made up", 0.25), ("another", 0.25)):
        assert weight[known.source == source].sum() == pytest.approx(share * len(known))


def test_a_calibrated_probability_is_what_happens() -> None:
    chance = np.random.default_rng(0)
    sums = chance.normal(0, 3, 20_000)
    label = (chance.random(20_000) < 1 / (1 + np.exp(-(0.5 * sums - 1)))).astype(np.float64)
    slope, offset = calibrated(sums, label)
    assert slope == pytest.approx(0.5, abs=0.05)
    assert offset == pytest.approx(-1, abs=0.1)
    assert risk.calibration_error(label, 1 / (1 + np.exp(-(slope * sums + offset)))) < 0.02


def test_auc_by_hand() -> None:
    assert risk.auc(np.array([0.0, 1, 0, 1]), np.array([1.0, 2, 3, 4])) == 0.75
    assert risk.auc(np.array([0.0, 1]), np.array([1.0, 1])) == 0.5


def test_one_seed_gives_one_model(tmp_path: Path) -> None:
    fitted(some(), 7).save(tmp_path / "a.npz")
    fitted(some(), 7).save(tmp_path / "b.npz")
    assert (load(tmp_path / "a.npz").weights == load(tmp_path / "b.npz").weights).all()


def test_what_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        risk.labelled(tmp_path / "missing.parquet")


def test_the_command_writes_a_model_and_says_what_it_is_worth(
    here: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    write_labelled(tmp_path / "urls.parquet")
    (tmp_path / "good.txt").write_text("\n".join(f"https://list{n}.example/page/{n}" for n in range(50)))
    words = shlex.split(f"train risk --labelled {tmp_path}/urls.parquet --good {tmp_path}/good.txt")
    ended = here(*words, "--out", tmp_path / "model.npz")
    assert ended.returncode == 0, ended.stderr
    assert "without made up: auc" in ended.stdout
    assert "unseen domains: auc" in ended.stdout
    assert load(tmp_path / "model.npz").probabilities(["http://apple-3.tk/verify/login.php"])[0] > 0.5


def test_the_figures_of_the_shipped_model_hold() -> None:
    """On a sample: domains it never saw, and a collection of good URLs it never saw."""
    path, links = SHARED / "risk" / "urls.parquet", SHARED / "webs" / "debpkg" / "external.parquet"
    if not (path.exists() and links.exists()):
        pytest.skip("the labelled URLs of ../shared are not here")
    chance = np.random.default_rng(1)
    known = risk.labelled(path)
    known = known.take(chance.random(len(known)) < 0.15) + risk.good(links, chance)
    label, sums = risk.unseen_source(known, str(links), 1)
    assert risk.auc(label, sums) > 0.80  # a model that lives on lengths and hosts has 0.76
    _, figures = risk.final(known, 1)
    assert figures["auc"] > 0.95
    assert figures["ece"] < 0.03


URLS = ["https://en.wikipedia.org/wiki/Cat", "http://paypal.com.secure-login.tk/webscr/login.php", "https://a.org/"]


def test_the_inputs_of_an_exported_model_are_the_features_of_each_url() -> None:
    model, (feature, amount) = shipped(), risk.inputs(URLS)
    sums = model.bias + model.scale * (model.weights[feature] * amount).sum(1)
    assert np.allclose(sums, model.sums(URLS), atol=1e-5)


def test_an_exported_model_says_the_same(tmp_path: Path) -> None:
    pytest.importorskip("onnx", reason="writing ONNX needs the extra train")
    runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not here")
    risk.export(shipped(), tmp_path / "risk.onnx")
    assert (tmp_path / "risk.onnx").stat().st_size <= 2 * 1024 * 1024
    feature, amount = risk.inputs(URLS)
    session = runtime.InferenceSession(str(tmp_path / "risk.onnx"))
    (found,) = session.run(None, {"feature": feature, "amount": amount})
    assert np.allclose(found, shipped().probabilities(URLS), atol=1e-5)
