"""The reader of traces itself: an acknowledgement before its sync must be noticed."""

from __future__ import annotations

import pytest

from tests.crash import durability, trace
from tests.crash.durability import ASKED, TOLD, Verdict, token

LOG, OLD_LOG, TABLE = "/data/000004.log", "/data/000003.log", "/data/000005.sst"


def write(name: str, file: str = LOG, thread: int = 7) -> str:
    return f'{thread} 1.5 write(12<{file}>, "\\0\\1https://{name}.example/{name}", 40) = 40'


def sync(file: str = LOG, words: str = "0", thread: int = 8) -> str:
    return f"{thread} 1.6 fdatasync(12<{file}>) = {words}"


def ack(name: str, thread: int = 7) -> str:
    body = f'{{\\"results\\":[{{\\"url\\":\\"https://{name}.example/\\"}}]}}'
    return f'{thread} 1.7 write(14<TCP:[127.0.0.1:80->127.0.0.1:99]>, "{body}", 40) = 40'


def judged(*lines: str) -> Verdict:
    return durability.judge(trace.read(lines))


ONE, TWO, GRANT = token(TOLD, 1), token(TOLD, 2), token(ASKED, 3)
BEGUN, DONE = "8 1.6 fdatasync(12</data/000004.log> <unfinished ...>", "8 1.9 <... fdatasync resumed>) = 0"
WRITING = f'7 1.5 write(12</data/000004.log>, "{ONE}", 12 <unfinished ...>'
WRITTEN = "7 1.9 <... write resumed>) = 12"


def test_an_ack_after_its_sync_is_in_order() -> None:
    assert str(judged(write(ONE), sync(), ack(ONE))) == "1 acks, 0 early; 0 grants, 0 early"
    assert judged(write(ONE), sync(), ack(ONE)).good


@pytest.mark.parametrize(
    "lines",
    [
        (write(ONE), ack(ONE), sync()),
        (sync(), write(ONE), ack(ONE)),
        (ack(ONE), write(ONE), sync()),
        (write(ONE), ack(ONE)),
        (write(ONE), sync(OLD_LOG), ack(ONE)),
        (write(ONE), sync(TABLE), ack(ONE)),
        (write(ONE), sync(words="-1 EIO (Input/output error)"), ack(ONE)),
        (write(ONE), sync(words="0 (INJECTED)"), ack(ONE)),
        (write(ONE), sync(), write(ONE), ack(ONE)),
        (write(ONE), BEGUN, ack(ONE), DONE),
        (BEGUN, write(ONE), DONE, ack(ONE)),
        (WRITING, sync(), WRITTEN, ack(ONE)),
    ],
    ids=[
        "sync comes later", "sync came before the write", "all comes later", "no sync", "another log", "another file",
        "sync failed", "sync was pretended", "a later write of the same tell", "sync still runs",
        "sync began before the write", "sync began while the write ran",
    ],
)  # fmt: skip
def test_an_ack_without_a_completed_sync_after_its_write_is_early(lines: tuple[str, ...]) -> None:
    assert judged(*lines) == Verdict(1, [ONE])
    assert not judged(*lines).good


def test_calls_that_were_interrupted_in_the_trace_are_put_together() -> None:
    assert judged(WRITING, write(TWO, thread=9), WRITTEN, BEGUN, DONE, ack(ONE), ack(TWO)) == Verdict(2)


def test_one_sync_covers_all_that_was_written_before_it() -> None:
    assert judged(write(ONE), write(TWO), sync(), ack(TWO), ack(ONE)) == Verdict(2)
    assert judged(write(ONE), sync(), write(TWO), ack(TWO), ack(ONE)) == Verdict(2, [TWO])


def test_a_lease_is_written_before_it_is_granted() -> None:
    assert judged(write(GRANT), ack(GRANT)) == Verdict(0, grants=1)
    assert judged(ack(GRANT), write(GRANT)) == Verdict(0, grants=1, early_grants=[GRANT])
    assert not judged(write(ONE), sync(), ack(ONE), ack(GRANT), write(GRANT)).good


def test_an_ack_that_has_nothing_in_the_log_is_not_good() -> None:
    assert judged(ack(ONE)) == Verdict(1, untraced=[ONE])
    assert not judged(write(ONE, TABLE), sync(TABLE), ack(ONE)).good
    assert not judged().good
