"""What came of one request: plain data, which the fetcher makes and everything else reads."""

from __future__ import annotations

from dataclasses import dataclass

Headers = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Redirect:
    """An answer that led elsewhere: who gave it, and the canonical URL it named ("" where that was none)."""

    url: str
    status: int
    headers: Headers = ()
    target: str = ""


@dataclass(frozen=True)
class Validators:
    """What a server said about the copy it sent; sent back on a recrawl, so that it may answer "unchanged" (304)."""

    etag: str = ""
    last_modified: str = ""


@dataclass(frozen=True)
class Fetched:
    """What came of one request, after its redirects."""

    url: str  # canonical, as it was assigned
    status: int | None = None  # of the last answer; None: none came
    error: str | None = None  # the protocol's word: timeout dns connect tls too_large blocked other
    problem: str = ""  # the same for people, one line
    redirected_to: str | None = None  # canonical URL of the last answer where it differs
    redirects: tuple[Redirect, ...] = ()
    headers: Headers = ()  # of the last answer
    body: bytes = b""  # content coding undone; empty where there was an error
    received_bytes: int = 0  # of the last body, as it came over the wire
    elapsed_ms: float = 0.0
    retry_after_s: float | None = None
    reason: str = ""  # reason phrase, for WARC
    version: str = "1.1"

    @property
    def final_url(self) -> str:
        """Whose content this is."""
        return self.redirected_to or self.url

    @property
    def content_type(self) -> str:
        """Media type in lower case, without parameters."""
        return self.header("content-type").partition(";")[0].strip().lower()

    @property
    def charset(self) -> str:
        """As the server names it, in lower case."""
        for parameter in self.header("content-type").split(";")[1:]:
            name, _, value = parameter.partition("=")
            if name.strip().lower() == "charset":
                return value.strip(" \t\"'").lower()
        return ""

    @property
    def validators(self) -> Validators:
        """For the next request of this URL."""
        return Validators(self.header("etag"), self.header("last-modified"))

    def header(self, name: str) -> str:
        """The first value of a header, by its name in lower case; "" without."""
        return next(iter(self.header_values(name)), "")

    def header_values(self, name: str) -> list[str]:
        """All values of a header, by its name in lower case."""
        return [value for key, value in self.headers if key.lower() == name]
