"""What became of a fetch: what counts as failed, what is worth another try, and whose fault it was. Said here alone.

One fetch is known by its status (0: nobody answered) and its error ("": none); many by the columns of `Fetches`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from crawlguide.core.tables import F32, Mask
    from crawlguide.core.types import Fetches

RELEASED = "released"  # the error of a URL that was given back unused: nobody fetched it
LATE = -1  # the status of feedback that comes after its fetch was told
GONE = (404, 410)
REDIRECTS = (301, 302, 303, 307, 308)
RETRIED_ERRORS = frozenset({"timeout", "dns", "connect"})
NOT_THE_HOSTS = ("", RELEASED, "too_large")


def is_success(status: int, error: str = "") -> bool:
    return not error and 200 <= status < 300


def is_failure(status: int, error: str = "") -> bool:
    """It did not answer, or said no."""
    return bool(error) or status >= 400


def is_retryable(status: int, error: str = "") -> bool:
    """A failure that may pass: worth another try later."""
    return error in RETRIED_ERRORS or (not error and (status == 429 or status >= 500))


def failures(fetches: Fetches) -> Mask:
    """What did not answer, or said no."""
    return (fetches.status >= 400) | np.array(fetches.error != "", np.bool_)


def retryables(fetches: Fetches) -> Mask:
    """Failures that may pass: worth another try later."""
    unreached = np.array([error in RETRIED_ERRORS for error in fetches.error], np.bool_)
    refused: Mask = (fetches.status == 429) | (fetches.status >= 500)
    return unreached | (refused & np.array(fetches.error == "", np.bool_))


def host_errors(fetches: Fetches) -> Mask:
    """Failures that say something about the host; a missing page does not."""
    return retryables(fetches) | np.array(fetches.error == "tls", np.bool_)


def releases(fetches: Fetches) -> Mask:
    """What was given back unused."""
    return np.array(fetches.error == RELEASED, np.bool_)


def host_failures(fetches: Fetches) -> Mask:
    """What the host or the way to it failed at, as a crawl learns its usual rate: also `blocked` and `other` count."""
    failed: Mask = (fetches.status == 429) | (fetches.status >= 500)
    return failed | np.array([error not in NOT_THE_HOSTS for error in fetches.error], np.bool_)


def refusals(fetches: Fetches) -> F32:
    """1 where a host turned the crawler away, else 0."""
    turned_away: Mask = (
        (fetches.status == 403) | (fetches.status == 429) | np.array(fetches.error == "blocked", np.bool_)
    )
    return np.asarray(turned_away, np.float32)
