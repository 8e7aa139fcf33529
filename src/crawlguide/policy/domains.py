"""No more pages of a domain than its bound, and nothing of hosts that keep failing."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from crawlguide.core.columns import rank_within
from crawlguide.core.definition import AUTO
from crawlguide.policy.profile import RECORD, Profile

if TYPE_CHECKING:
    from typing import Literal

    from crawlguide.core.definition import Definition
    from crawlguide.core.notebook import Notebook
    from crawlguide.core.tables import F64, Mask
    from crawlguide.core.types import Ask, Batch, Hosts, Lesson

    Auto = Literal["auto"]


@dataclass
class Domains:
    """A limit is a number, or `auto`: then it is learned from the crawl's own fetches (`profile.py`)."""

    label: ClassVar = "host full or failing"
    max_pages: int | Auto
    unreliable_threshold: float | Auto
    unreliable_after: int
    probe_after_s: float = 600.0
    full_for_s: float = 30.0
    profile: Profile = field(default_factory=Profile, compare=False)
    kept: bool = False  # whether the profile is written into a notebook
    name: str = "domains"
    refusal: str = "withhold"

    def keep(self, batch: Batch, ask: Ask) -> Mask:
        if not self.max_pages and not np.count_nonzero(batch.hosts.errors):
            return np.ones(len(batch), np.bool_)
        hosts = batch.hosts
        keep: Mask = ~(self.full(hosts) | self.unreliable(hosts, ask.at))[batch.host]
        if self.max_pages:  # rows of this answer count too
            place = rank_within(hosts.domain[batch.host].astype(np.int64))
            keep &= hosts.domain_pages[batch.host] + place < self.most(hosts)[batch.host]
        return keep

    def until(self, hosts: Hosts, ask: Ask) -> F64:
        """Until when each host is withheld, NaN: not at all. An unreliable host waits for its next probe; one of a full
        domain waits for a while, since leased pages count as fetched and may still fail.

        Where every domain is full and the bound is learned, the bound is raised, so that the next ask finds something.
        """
        if self.max_pages == AUTO and self.full(hosts).all():
            self.profile.raise_page_bound()
        probe = np.where(self.unreliable(hosts, ask.at), hosts.last_fetch + self.probe_after_s, np.nan)
        return np.where(self.full(hosts), ask.at + self.full_for_s, probe)

    def learn(self, lesson: Lesson) -> None:
        self.profile.learn(lesson)

    def remember(self, notebook: Notebook) -> None:
        """Go on with what lies in the crawl's notebook, and write there from now on."""
        self.profile, self.kept = Profile(notebook.sheet("profile", RECORD)), True

    def inherit(self, before: Domains) -> None:
        """Go on with what another filter of the crawl has met, unless it lies in a notebook that is read anew."""
        if not self.kept or self.profile.sheet is before.profile.sheet:
            self.profile, self.kept = before.profile, before.kept

    def why(self, batch: Batch, ask: Ask) -> str:
        hosts = batch.hosts
        if self.full(hosts)[0]:
            most = f"{self.most(hosts)[0]:.0f}" + (" by what it has met" if self.max_pages == AUTO else "")
            return f"its domain gave {int(hosts.domain_pages[0])} pages, policy.domain_max_pages is {most}"
        if self.unreliable(hosts, ask.at)[0]:
            wait = hosts.last_fetch[0] + self.probe_after_s - ask.at
            return f"{int(hosts.errors[0])} of its host's fetches failed; it is tried again in {wait:.0f} s"
        return "its domain may give more pages and its host answers"

    def full(self, hosts: Hosts) -> Mask:
        """The registrable domain has given, or is about to give, as many pages as it may."""
        if not self.max_pages:
            return np.zeros(len(hosts.name), np.bool_)
        return hosts.domain_pages >= self.most(hosts)

    def most(self, hosts: Hosts) -> F64:
        """How many pages the domain of each host may give."""
        if self.max_pages == AUTO:
            return self.profile.most_pages(hosts)
        return np.full(len(hosts.name), float(self.max_pages))

    def unreliable(self, hosts: Hosts, at: float) -> Mask:
        """Hosts of which most fetches fail, after enough fetches to say so, unless it is time for a probe.

        Missing pages do not count: they say nothing about the host.
        """
        given = self.unreliable_threshold
        tries, most = hosts.pages + hosts.failures, self.profile.unreliable if given == AUTO else given
        failing: Mask = hosts.errors > most * tries
        return failing & (tries >= self.unreliable_after) & (hosts.last_fetch > at - self.probe_after_s)


def build(definition: Definition) -> Domains:
    policy = definition.policy
    return Domains(policy.domain_max_pages, policy.unreliable_threshold, policy.unreliable_after)
