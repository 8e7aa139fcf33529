"""The network of `tres`, trained apart and brought in as an ONNX file."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from crawlguide.core.errors import ConfigError, MalformedRequest, NotFound
from crawlguide.strategies.tres import network
from crawlguide.strategies.tres.network import weights_of
from crawlguide.strategies.tres.records import HIDDEN, NEXT, TRANSITION, WEIGHTS, X
from crawlguide.training import tres
from tests.strategies.site import HOME, crawled, opened, web
from tests.support import running

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from crawlguide.core.notebook import Records
    from crawlguide.core.tables import F32

SIZES = ((X, HIDDEN[0]), HIDDEN, (HIDDEN[1], 1))


def number(value: int) -> bytes:
    low, rest = value & 127, value >> 7
    return bytes([low | 128]) + number(rest) if rest else bytes([low])


def field(place: int, content: bytes | int) -> bytes:
    """A field of a protocol buffer."""
    if isinstance(content, int):
        return number(place << 3) + number(content)
    return number(place << 3 | 2) + number(len(content)) + content


def tensor(name: str, values: F32, packed: bool) -> bytes:
    dims = b"".join(map(number, values.shape))
    shape = field(1, dims) if packed else b"".join(field(1, size) for size in values.shape)
    return shape + field(2, 1) + field(8, name.encode()) + field(4 if packed else 9, values.tobytes())


def model(tensors: dict[str, F32], packed: bool = False) -> bytes:
    """As little of an ONNX file as makes one: a version, and a graph of constants."""
    graph = field(2, b"graph") + b"".join(field(5, tensor(name, values, packed)) for name, values in tensors.items())
    return field(1, 10) + field(7, graph)


def layers(seed: int = 1) -> dict[str, F32]:
    chance, made = np.random.default_rng(seed), dict[str, "F32"]()
    for place, (inputs, outputs) in enumerate(SIZES):
        made[f"layers.{place}.weight"] = chance.normal(size=(outputs, inputs)).astype(np.float32)
        made[f"layers.{place}.bias"] = chance.normal(size=outputs).astype(np.float32)
    return made


def answered(made: dict[str, F32], x: F32) -> F32:
    """What a network of these layers says."""
    for place in range(3):
        x = x @ made[f"layers.{place}.weight"].T + made[f"layers.{place}.bias"]
        x = np.where(x > 0, x, np.float32(0.1) * x) if place < 2 else x
    return x[:, 0]


def values_of(weights: F32, x: F32) -> Any:
    found, kernels = np.empty(len(x)), network
    kernels.values(weights, x, found)  # type: ignore[no-untyped-call]
    return found


@pytest.mark.parametrize("packed", [False, True])
def test_the_weights_of_a_file_answer_as_its_layers_do(packed: bool, tmp_path: Path) -> None:
    path, made, x = tmp_path / "m.onnx", layers(), np.random.default_rng(2).random((9, X)).astype(np.float32)
    path.write_bytes(model(made, packed))
    weights = weights_of(path)
    assert weights.shape == (WEIGHTS,)
    assert values_of(weights, x) == pytest.approx(answered(made, x), rel=1e-4, abs=1e-4)


def broken() -> dict[str, bytes]:
    good, wrong_shape, not_a_number = model(layers()), layers(), layers()
    wrong_shape["layers.0.weight"] = np.zeros((30, 12), np.float32)
    not_a_number["layers.2.bias"] = np.full(1, np.nan, np.float32)
    missing = {name: values for name, values in layers().items() if name != "layers.1.bias"}
    return {
        "nothing": b"",
        "cut": good[:-100],
        "text": b"this is not a model, it only looks like one",
        "shape": model(wrong_shape),
        "nan": model(not_a_number),
        "missing": model(missing),
        "large": good + b"\0" * (1 << 20),
        "endless": b"\xff" * 40,
    }


@pytest.mark.parametrize("what", broken())
def test_whatever_is_wrong_with_a_file_the_answer_is_the_same(what: str, tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(broken()[what])
    with pytest.raises(MalformedRequest) as wrong:
        weights_of(path)
    with pytest.raises(MalformedRequest) as absent:
        weights_of(tmp_path / "nowhere.onnx")
    assert wrong.value.message == absent.value.message


def test_a_crawl_begins_with_the_network_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(model(layers()))
    with opened({"kind": "tres", "model": str(path)}) as guide:
        predictor: Any = running(guide).strategy.predictor
        assert np.array_equal(predictor.tables.weights(0), weights_of(path))
        guide.seed("default", [HOME])
        assert len(crawled(guide, web(), 20)) >= 20


def test_transitions_are_read_from_a_data_folder(tmp_path: Path) -> None:
    with opened({"kind": "tres"}, tmp_path / "data") as guide:
        guide.seed("default", [HOME])
        order = crawled(guide, web(), 30)
    found = tres.transitions(tmp_path / "data", [])
    assert len(found) == len(order)
    assert set(found["reward"].tolist()) <= {0.0, 1.0}
    assert found["ways"].max() == NEXT
    with pytest.raises(ConfigError, match="no such folder"):
        tres.transitions(tmp_path / "nowhere", [])
    with pytest.raises(NotFound, match="another"):
        tres.transitions(tmp_path / "data", ["another"])
    with opened({"kind": "random"}, tmp_path / "other"):
        pass
    with pytest.raises(ConfigError, match="got none"):
        tres.transitions(tmp_path / "other", [])


@pytest.mark.skipif(find_spec("torch") is not None, reason="the extra train is installed")
def test_without_the_extra_the_command_says_what_to_install(
    here: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    with opened({"kind": "tres"}, tmp_path / "data") as guide:
        guide.seed("default", [HOME])
        crawled(guide, web(), 5)
    ended = here("train", "tres", "--data", tmp_path / "data", "--out", tmp_path / "m.onnx")
    assert ended.returncode == 2
    assert ended.stderr.startswith("crawlguide: training needs the extra train: pip install '.[train]' in a clone")


def made_up(count: int = 300) -> Records:
    """What pays is the fifth feature; nothing follows."""
    chance, made = np.random.default_rng(1), np.zeros(count, TRANSITION)
    made["x"] = chance.random((count, X))
    made["reward"] = made["x"][:, 4] > 0.5
    return made


@pytest.mark.filterwarnings("ignore")  # torch warns of itself
def test_what_torch_has_learned_is_served_without_it(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason="needs the extra train")
    pytest.importorskip("onnxscript", reason="needs the extra train")
    from crawlguide.training import tres_network as torches

    trained = torches.fitted(made_up(), torches.Fitting(steps=1_500), seed=1)
    torches.export(trained, tmp_path / "m.onnx")
    x = made_up()["x"].copy()
    served = values_of(weights_of(tmp_path / "m.onnx"), x)
    assert served == pytest.approx(trained(torch.from_numpy(x)).detach().numpy(), rel=1e-4, abs=1e-4)
    good = x[:, 4] > 0.5
    assert served[good].mean() > served[~good].mean() + 0.5
    runtime = pytest.importorskip("onnxruntime")
    (same,) = runtime.InferenceSession(tmp_path / "m.onnx").run(None, {"x": x})
    assert served == pytest.approx(same, rel=1e-4, abs=1e-4)


def test_serving_never_loads_torch() -> None:
    said = "import sys, crawlguide.strategies.tres; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", said], check=False).returncode == 0
