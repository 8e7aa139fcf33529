"""Links that were found get their features and go to their leaves."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from crawlguide.predictors.tres import features
from crawlguide.predictors.tres.records import DONE, FREE, MOST_LINKS, WAITING, X

if TYPE_CHECKING:
    from crawlguide.core.tables import F32, F64, I64
    from crawlguide.core.types import Lesson
    from crawlguide.predictors.tres.learner import Tres
    from crawlguide.predictors.tres.memory import Memory


def found(memory: Memory, learner: Tres, lesson: Lesson, reward: F64, pages: I64) -> None:
    """Those nobody knew before and nobody refused. `pages` are the records of the lesson's fetches, -1: unknown."""
    links = lesson.links
    rows = np.flatnonzero(lesson.fresh & (links.reason == None))  # noqa: E711 - for each row
    if not len(rows) or memory.live + len(rows) > MOST_LINKS:
        return
    fetched = np.append(pages, -1)[links.parent[rows]]  # seeds stand on no page
    depth = memory.told("depth", fetched, -1.0) + 1.0
    x = described(memory, learner, lesson, rows)
    x[:, features.DEPTH] = features.depth(depth)
    x[:, features.PARENT_SCORE] = np.append(reward, 0.0)[links.parent[rows]]
    x[:, features.SIBLING_SCORE] = np.append(siblings(memory, lesson, len(pages)), 0.0)[links.parent[rows]]
    claimed = memory.claim(links.id[rows])
    new = memory.links.rows["state"][claimed] != WAITING
    memory.links.rows["x"][claimed[new]] = x[new]
    memory.links.rows["depth"][claimed[new]] = depth[new]
    memory.enter(claimed[new])


def described(memory: Memory, learner: Tres, lesson: Lesson, rows: I64) -> F32:
    """The features that do not depend on the page where a link stands."""
    urls, hosts = lesson.links.url[rows].tolist(), lesson.links.host[rows].tolist()
    domains = memory.domain(hosts)
    fetched, failed, score = (memory.domains.rows[name][domains] for name in ("fetched", "failed", "score"))
    x = np.zeros((len(rows), X), np.float32)
    x[:, features.DOMAIN_RELEVANCE] = features.domain_relevance(score, fetched)
    x[:, features.DOMAIN_COUNT] = features.domain_count(fetched)
    x[:, features.DOMAIN_FAILURE_RATE] = features.domain_failure_rate(failed, fetched)
    x[:, features.ANCHOR_SIMILARITY] = learner.likeness.of(lesson.links.anchor[rows].tolist(), urls)
    x[:, features.PATH_DEPTH] = features.path_depth(urls)
    x[:, features.HAS_QUERY] = features.has_query(urls)
    x[:, features.DOMAIN_WEIGHT] = features.domain_weight(hosts, learner.settings.domain_weights)
    x[:, features.ROUND_DISCOVERED] = features.round_discovered(learner.turn)
    return x


def siblings(memory: Memory, lesson: Lesson, pages: int) -> F64:
    """For each page the mean reward of those of its links that were fetched."""
    parent, known = lesson.links.parent, memory.find(lesson.links.id)
    done = np.flatnonzero((memory.told("state", known, FREE) == DONE) & (parent >= 0))
    count = np.bincount(parent[done], minlength=pages)[:pages]
    total = np.bincount(parent[done], memory.links.rows["reward"][known[done]], minlength=pages)[:pages]
    mean: F64 = total / np.maximum(count, 1)
    return mean
