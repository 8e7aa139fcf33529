"""People who have logged in to the status page: a random cookie stands for the credential that they showed.

The cookie opens pages and nothing else: what changes something takes the credential itself, which no other site's page
can make a browser send.
"""

from __future__ import annotations

import secrets
import time
from typing import TYPE_CHECKING, NamedTuple

from crawlguide.core.bounded import Bounded

if TYPE_CHECKING:
    from collections.abc import Callable

COOKIE = "crawlguide_session"
LASTS_S = 12 * 3_600.0
MOST, MOST_OF_ONE = 10_000, 20  # at once, and of one credential; beyond, whoever logged in first logs in again


class Login(NamedTuple):
    authorization: str  # as it was shown; it is checked again for every page, so that a revoked key ends here too
    ends: float


class Logins:
    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._open: Bounded[str, Login] = Bounded(MOST)

    def begin(self, authorization: str) -> str:
        """The cookie of somebody who has shown a credential."""
        cookie = secrets.token_urlsafe(32)
        own = [name for name, one in self._open.items() if one.authorization == authorization]
        for name in own[: len(own) - MOST_OF_ONE + 1] if len(own) >= MOST_OF_ONE else ():
            del self._open[name]
        self._open[cookie] = Login(authorization, self._clock() + LASTS_S)
        return cookie

    def authorization(self, cookie: str) -> str | None:
        found = self._open.get(cookie)
        if found is None or found.ends <= self._clock():
            self._open.pop(cookie, None)
            return None
        return found.authorization

    def end(self, cookie: str) -> None:
        self._open.pop(cookie, None)


def cookie_in(header: str) -> str:
    """The cookie of ours in a header; empty where there is none.

    It needs no quotes. To undo those of others takes the standard library half a minute for some.
    """
    pairs = (pair.partition("=") for pair in header.split(";"))
    return next((value.strip() for name, _, value in pairs if name.strip() == COOKIE), "")


def set_cookie(cookie: str, *, secure: bool) -> str:
    """The header that gives it to a browser."""
    words = f"{COOKIE}={cookie}; Path=/; Max-Age={int(LASTS_S)}; HttpOnly; SameSite=Strict"
    return words + ("; Secure" if secure else "")


def removed_cookie() -> str:
    return f"{COOKIE}=; Path=/; Max-Age=0; HttpOnly; SameSite=Strict"
