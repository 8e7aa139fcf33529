"""What a client needs of whatever carries its calls: `over_http.py` does it, and `over_grpc.py`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypedDict, TypeVar

from crawlguide.core.errors import ConfigError, CrawlGuideError
from crawlguide.gateway.arguments import address

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Generator

    from crawlguide.gateway.client.calls import Call
    from crawlguide.gateway.client.patience import Tries

Result = TypeVar("Result")
OTHER_NAME = "its certificate is for another name: use that name, or make one that has this name or address"
REMEDIES = {  # by what OpenSSL and gRPC say of a certificate
    "mismatch": OTHER_NAME,
    "Peer name": OTHER_NAME,
    "Hostname Verification": OTHER_NAME,
    "has expired": "it needs a new certificate, if the clock here is right",
    "not yet valid": "compare the clocks of both machines",
}
NO_TLS = "WRONG_VERSION_NUMBER"  # in what OpenSSL says of somebody who does not speak it


class Shown(TypedDict, total=False):
    """What a client may show and trust; docs/clients.md says where each comes from when it is not given."""

    token: str | None
    ca: str | None
    certificate: str | None
    certificate_key: str | None


NOTICE = "crawlguide-insecure"  # the header, or the trailer, in which a server says it


class Notice:
    """What a server wants people to know, as it said in the last answer; empty: nothing."""

    def __init__(self) -> None:
        self.text = ""


class Transport(Protocol):
    """What carries calls to one server, for scripts. What goes wrong is raised as `CrawlGuideError`."""

    notice: Notice

    @property
    def is_closed(self) -> bool: ...

    def close(self) -> None: ...

    def answered(self, call: Call[Result], tries: Tries) -> Result: ...

    def opened(self, call: Call[None], tries: Tries) -> Generator[bytes, None, None]:
        """An answer whose lines are still to come."""


class AsyncTransport(Protocol):
    """The same for asyncio programs."""

    server: str

    @property
    def is_closed(self) -> bool: ...

    async def close(self) -> None: ...

    async def answered(self, call: Call[Result], tries: Tries) -> Result: ...

    async def opened(self, call: Call[None], tries: Tries) -> AsyncGenerator[bytes, None]: ...


def checked_address(url: str) -> str:
    """The URL of a server, without a slash at its end. Raises `ConfigError`."""
    try:
        return address(url)
    except ConfigError as wrong:  # it is no option of a command here
        raise ConfigError(wrong.message.removeprefix("--")) from None


def untrusted(server: str, words: object) -> CrawlGuideError:
    """Of a certificate that nobody known has signed, that is of somebody else, or not of this time."""
    unknown = "name the authority that signed its certificate with --ca or CRAWLGUIDE_CA"
    how = next((remedy for sign, remedy in REMEDIES.items() if sign in str(words)), unknown)
    return CrawlGuideError(f"{server} cannot be trusted ({how}): {words}")


def check_open(closed: bool) -> None:
    if closed:
        raise RuntimeError("this client is closed; open another one")
