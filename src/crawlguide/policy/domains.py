"""Not more pages of a domain than wanted, and nothing of hosts that keep failing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from crawlguide.core.columns import rank_within

if TYPE_CHECKING:
    from crawlguide.core.crawls import Definition
    from crawlguide.core.tables import F64, Mask
    from crawlguide.core.types import Ask, Batch, Hosts


@dataclass(frozen=True)
class Domains:
    max_pages: int
    unreliable_threshold: float
    unreliable_after: int
    probe_after_s: float = 600.0
    full_for_s: float = 30.0
    name: str = "domains"
    refusal: str = "withhold"

    def keep(self, batch: Batch, ask: Ask) -> Mask:
        if not self.max_pages and not np.count_nonzero(batch.hosts.errors):
            return np.ones(len(batch), np.bool_)
        hosts = batch.hosts
        keep: Mask = ~(self.full(hosts) | self.unreliable(hosts, ask.at))[batch.host]
        if self.max_pages:  # what this answer gives out counts too
            place = rank_within(hosts.domain[batch.host].astype(np.int64))
            keep &= hosts.domain_pages[batch.host] + place < self.max_pages
        return keep

    def until(self, hosts: Hosts, ask: Ask) -> F64:
        """An unreliable host stays out until its next probe, a full domain for a while: what is on its way counts as
        fetched and may still fail. NaN: not at all.
        """
        probe = np.where(self.unreliable(hosts, ask.at), hosts.last_fetch + self.probe_after_s, np.nan)
        return np.where(self.full(hosts), ask.at + self.full_for_s, probe)

    def why(self, batch: Batch, ask: Ask) -> str:
        hosts = batch.hosts
        if self.full(hosts)[0]:
            return f"its domain gave {int(hosts.domain_pages[0])} pages, policy.domain_max_pages is {self.max_pages}"
        if self.unreliable(hosts, ask.at)[0]:
            wait = hosts.last_fetch[0] + self.probe_after_s - ask.at
            return f"{int(hosts.errors[0])} of its host's fetches failed; it is tried again in {wait:.0f} s"
        return "its domain may give more pages and its host answers"

    def full(self, hosts: Hosts) -> Mask:
        """The registrable domain has given, or is about to give, as many pages as it may."""
        if not self.max_pages:
            return np.zeros(len(hosts.name), np.bool_)
        return hosts.domain_pages >= self.max_pages

    def unreliable(self, hosts: Hosts, at: float) -> Mask:
        """Most fetches fail, there were enough of them to say so, and the last was not long ago: probe now and then.

        Missing pages do not count: they say nothing about the host.
        """
        tries = hosts.pages + hosts.failures
        failing = hosts.errors > self.unreliable_threshold * tries
        return failing & (tries >= self.unreliable_after) & (hosts.last_fetch > at - self.probe_after_s)


def build(definition: Definition) -> Domains:
    policy = definition.policy
    return Domains(policy.domain_max_pages, policy.unreliable_threshold, policy.unreliable_after)
