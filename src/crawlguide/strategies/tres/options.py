"""forager's options of Select and Tune, by its names and defaults, and switches where its text can be read two ways."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from crawlguide.core.definition import Factor, Fixed, Name, Share

Positive = Annotated[float, Meta(gt=0, le=1e9, description="a number above 0")]
Whole = Annotated[int, Meta(ge=1, le=1_000_000, description="an integer from 1 to 1000000")]
Unit = Annotated[Literal["rounds", "transitions"], Meta(description="rounds or transitions")]


class Param(Fixed, frozen=True):
    """A number that may be learned: a bare number or `fixed` stays, `auto` moves freely, `range` within its bounds."""

    value: Positive
    mode: Annotated[Literal["fixed", "auto", "range"], Meta(description="one of fixed, auto, range")] = "auto"
    min: float = 0.0
    max: float = float("inf")

    def bound(self, value: float) -> float:
        return {"fixed": self.value, "auto": value}.get(self.mode, min(max(value, self.min), self.max))


class Options(Fixed, frozen=True):
    """`pages_per_round` says what a round is: everything that counts rounds counts so many pages.

    The target network follows the online one every `target_update_freq` steps of training. forager counts rounds, which
    makes 5 000 pages by its defaults: longer than most crawls, so that it would never move.
    """

    kind: str = "tres"

    max_depth: Annotated[int, Meta(ge=0, le=64, description="an integer from 0 to 64")] = 18
    min_samples_per_split: Annotated[int, Meta(ge=2, le=128, description="an integer from 2 to 128")] = 5
    domain_max_pages: Positive | Param = Param(value=100.0)
    slow_domain_ms: Positive | Param = Param(value=3_000.0)
    unreliable_threshold: Share | Param = Param(value=0.3)
    slow_domains: Annotated[Literal["off", "penalty", "filter"], Meta(description="one of off, penalty, filter")] = (
        "penalty"
    )
    pages_per_round: Whole = 50
    per_leaf: Annotated[Literal["one", "several"], Meta(description="one of one, several")] = "several"
    cut: Annotated[Literal["after", "before"], Meta(description="after or before")] = "after"
    domain_weights: Annotated[dict[Name, Factor], Meta(max_length=100_000)] = msgspec.field(default_factory=dict)

    replay_capacity: Annotated[int, Meta(ge=64, le=1_000_000, description="an integer from 64 to 1000000")] = 50_000
    batch_size: Annotated[int, Meta(ge=1, le=4_096, description="an integer from 1 to 4096")] = 64
    learning_rate: Positive = 0.001
    lr_decay: Share = 0.995
    gamma: Share = 0.99
    replay_period: Whole = 4
    min_replay_size: Whole = 500
    target_update_freq: Whole = 100
    target_update_unit: Annotated[
        Literal["steps", "rounds", "transitions"], Meta(description="one of steps, rounds, transitions")
    ] = "steps"
    per_alpha: Share | Param = Param(value=0.6)
    per_epsilon: Positive | Param = Param(value=1e-4, mode="fixed")
    epsilon: Share = 1.0
    epsilon_min: Share = 0.05
    decay_steps: Whole = 500
    decay_unit: Unit = "transitions"
    untrained: Annotated[Literal["tree", "network"], Meta(description="tree or network")] = "tree"
    model: Annotated[str, Meta(max_length=4_096, description="the path of an ONNX file")] = ""


def param(value: float | Param) -> Param:
    """A bare number is fixed."""
    return value if isinstance(value, Param) else Param(value=value, mode="fixed")
