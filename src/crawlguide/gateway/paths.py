"""Which endpoint a request is for: what a router of Starlette finds, without trying one path after the other."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import Response

if TYPE_CHECKING:
    import re
    from collections.abc import Iterable, Mapping

    from starlette.routing import Route

Endpoint = Callable[[Request], Awaitable[Response]]


class Paths:
    """The endpoints of a server, by path and method. A path with a name in it is matched, any other is looked up."""

    def __init__(self, routes: Iterable[Route]) -> None:
        self._plain: dict[str, dict[str, Endpoint]] = {}
        self._named: dict[re.Pattern[str], dict[str, Endpoint]] = {}
        for route in routes:
            methods = (
                self._named.setdefault(route.path_regex, {})
                if route.param_convertors
                else self._plain.setdefault(route.path, {})
            )
            methods.update(dict.fromkeys(route.methods or (), route.endpoint))

    def found(self, path: str) -> tuple[Mapping[str, Endpoint], Mapping[str, str]] | None:
        """The methods of a path, and what is named in it; None: there is no such path."""
        methods = self._plain.get(path)
        if methods is not None:
            return methods, {}
        for pattern, methods in self._named.items():
            if matched := pattern.match(path):
                return methods, matched.groupdict()
        return None
