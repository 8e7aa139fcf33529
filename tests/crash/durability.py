"""Whether each answer was sent only after what it promises was kept, by the trace.

What a tell acknowledges must be on stable storage: written to the log and synced. What an ask grants must be in the
log: written. Every call carries a token of its own, which stands in its answer and in what is logged of it.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tests.crash.trace import SystemCall

TOLD, ASKED = "tell", "ask"
TOKEN = re.compile(rf"(?:{TOLD}|{ASKED})token\d{{6}}")
LOG = re.compile(r"\.log$")


@dataclass(frozen=True)
class Verdict:
    """`early` answers were sent before what they promise was kept; `untraced` ones have nothing in the log at all."""

    acks: int
    early: list[str] = field(default_factory=list)
    grants: int = 0
    early_grants: list[str] = field(default_factory=list)
    untraced: list[str] = field(default_factory=list)

    @property
    def good(self) -> bool:
        return self.acks > 0 and not (self.early or self.early_grants or self.untraced)

    def __str__(self) -> str:
        text = f"{self.acks} acks, {len(self.early)} early; {self.grants} grants, {len(self.early_grants)} early"
        return text + f"; {len(self.untraced)} untraced" * bool(self.untraced)


def token(verb: str, number: int) -> str:
    return f"{verb}token{number:06d}"


def judge(calls: Sequence[SystemCall]) -> Verdict:
    logged = [call for call in calls if LOG.search(call.target)]
    writes = _by_token(call for call in logged if not call.is_sync)
    syncs = [call for call in logged if call.is_sync and call.succeeded]
    sent = _by_token(call for call in calls if call.is_sent)
    answers = {name: min(mine, key=lambda call: call.began) for name, mine in sent.items()}
    acks = {name: answer for name, answer in answers.items() if name.startswith(TOLD)}
    grants = {name: answer for name, answer in answers.items() if name.startswith(ASKED)}
    return Verdict(
        acks=len(acks),
        early=[name for name, ack in acks.items() if writes[name] and not _synced(writes[name], syncs, ack)],
        grants=len(grants),
        early_grants=[name for name, grant in grants.items() if writes[name] and not _written(writes[name], grant)],
        untraced=[name for name in answers if not writes[name]],
    )


def _by_token(calls: Iterable[SystemCall]) -> Mapping[str, list[SystemCall]]:
    found: dict[str, list[SystemCall]] = defaultdict(list)
    for call in calls:
        for name in set(TOKEN.findall(call.text)):
            found[name].append(call)
    return found


def _synced(writes: Sequence[SystemCall], syncs: Sequence[SystemCall], ack: SystemCall) -> bool:
    """Each write of the tell before its ack was followed by a sync of the same file that ended before the ack."""
    before = [write for write in writes if write.began < ack.began]
    return bool(before) and all(any(_covers(sync, write, ack) for sync in syncs) for write in before)


def _covers(sync: SystemCall, write: SystemCall, ack: SystemCall) -> bool:
    return sync.target == write.target and write.ended < sync.began and sync.ended < ack.began


def _written(writes: Sequence[SystemCall], grant: SystemCall) -> bool:
    return any(write.ended < grant.began for write in writes)
