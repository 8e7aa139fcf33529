"""A sleeping bandit over URL templates, in the manner of SB-CLASSIFIER (Gauquier, Manolescu, Senellart): AUER.

An arm is a template: host, first two folders, kind of file, names of query keys, with numbers made alike. The arm with
the largest reward / (n + 1) + a · √(ln t / (n + 1)) is played, and within it a link at random: on many hosts there are
more templates than fetches, so one that was never played does not come before all others.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

from crawlguide.core import urls
from crawlguide.lab.policies._shared import Picking, PicksAhead, Policy, relevances

if TYPE_CHECKING:
    from crawlguide.core.definition import Goal
    from crawlguide.core.protocols import Strategy
    from crawlguide.core.types import Lesson

DIGITS = re.compile(r"\d+")
FOLDERS = 2


class Options(PicksAhead, frozen=True):
    exploration: float = 0.1  # SB's 2√2 is meant for rewards that are counts of links


def build(options: Options, seed: int, goal: Goal) -> Strategy:
    return Policy(Arms(seed, options))


class Arm:
    def __init__(self) -> None:
        self.waiting: list[int] = []
        self.plays, self.reward = 0, 0.0


class Arms(Picking):
    def __init__(self, seed: int, options: Options) -> None:
        super().__init__(seed, options.ahead)
        self.exploration = options.exploration
        self.arms: dict[str, Arm] = {}
        self.arm_of: dict[int, Arm] = {}
        self.plays = 0

    def observe(self, lesson: Lesson) -> None:
        fetched = self.columns.numbers(lesson.fetches.id).tolist()
        for number, reward in zip(fetched, relevances(lesson).tolist(), strict=True):
            if number in self.arm_of:
                self.arm_of[number].reward += reward
        links = lesson.links
        for number, url in zip(
            self.columns.numbers(links.id[lesson.fresh]).tolist(), links.url[lesson.fresh], strict=True
        ):
            self.arm_of[number] = self.arms.setdefault(template(url), Arm())
            self.arm_of[number].waiting.append(number)

    def pick(self) -> int | None:
        awake = [arm for arm in self.arms.values() if arm.waiting]
        if not awake:
            return None
        self.plays += 1
        best = max(awake, key=self._index)
        best.plays += 1
        place = int(self.rng.integers(len(best.waiting)))
        best.waiting[place], best.waiting[-1] = best.waiting[-1], best.waiting[place]
        return best.waiting.pop()

    def put_back(self, number: int) -> None:
        self.arm_of[number].waiting.append(number)
        self.arm_of[number].plays -= 1
        self.plays -= 1

    def _index(self, arm: Arm) -> float:
        plays = arm.plays + 1
        return arm.reward / plays + self.exploration * math.sqrt(math.log(self.plays + 1) / plays)


def template(url: str) -> str:
    parts = urls.parts(url)
    *folders, file = parts.path.split("/")[1:]
    ending = file.rpartition(".")[2] if "." in file else ""
    keys = sorted(pair.partition("=")[0] for pair in parts.query.split("&")) if parts.query else []
    return DIGITS.sub("0", "/".join([parts.host, *folders[:FOLDERS], f".{ending}", *keys]))
