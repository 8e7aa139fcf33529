"""Values that a JSON schema describes, and values that it almost does: structure first, chance second."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from random import Random

DEEPEST = 5
WRONG = 0.04  # of all values are of another kind
NUMBERS = (0, 1, -1, 2, 3, 0.5, 200, 404, 503, 2**31, 2**53, 2**63, -(2**63) - 1, 1e18, 1e308, -0.0, 1e-320, 10**400)
URLS = (
    "https://a.example/", "https://b.example/x?y=1#z", "http://[::1]:1/", "https://a.example:99999/", "mailto:a@b",
    "https://xn--a.example/", "https://ä.example/ö?ü", "//a.example", "https://a.example/" + "a/" * 900, "http://a..b/",
    "https://a.example/robots.txt", "https://user:pass@a.example/", "javascript:alert(1)", "https://1.2.3/", "https://%/",
)  # fmt: skip
TEXTS = (
    "", "a", "default", "c-1", "fuzz", "2025-11", "auto", "layered", "best-first", "tres", "ignore", "obey", "released",
    "ü", "\u0000", "\ud7ff\U0010ffff", "\u202e", "a" * 300, "(a|b)*c", "(", r"\pL{99}", "*", ".", "..", "a/b", "%00",
    "2026-01-01T00:00:00Z", "1e5", "null", "{}", "<script>", "' or 1=1 --", *URLS,
)  # fmt: skip


class Values:
    """Makes values by the schemas of one OpenAPI document."""

    def __init__(self, document: dict[str, Any], chance: Random) -> None:
        self._schemas, self._chance = document["components"]["schemas"], chance

    def of(self, schema: dict[str, Any], depth: int = 0) -> Any:
        chance = self._chance
        if chance.random() < WRONG:
            return self.any(depth)
        if "$ref" in schema:
            return self.of(self._schemas[schema["$ref"].rpartition("/")[2]], depth)
        if "anyOf" in schema:
            return self.of(chance.choice(schema["anyOf"]), depth)
        for name in ("enum", "const"):
            if name in schema:
                return chance.choice(schema[name]) if name == "enum" else schema[name]
        if "default" in schema and chance.random() < 0.1:
            return schema["default"]
        return self._of_kind(schema, depth)

    def _of_kind(self, schema: dict[str, Any], depth: int) -> Any:
        chance, kind = self._chance, schema.get("type")
        if kind == "object":
            return self._object(schema, depth)
        if kind == "array":
            return [self.of(schema.get("items") or {}, depth + 1) for _ in range(self._count(depth))]
        if kind == "string":
            return chance.choice(TEXTS) if chance.random() < 0.5 else chance.choice(URLS)
        if kind in {"number", "integer"}:
            low, high = schema.get("minimum", -10), schema.get("maximum", 1_000)
            near = chance.choice((low, high, chance.uniform(low, min(high, 1_000)), chance.choice(NUMBERS)))
            return int(near) if kind == "integer" and abs(near) < 1e15 else near
        if kind == "boolean":
            return chance.random() < 0.5
        return None if kind == "null" else self.any(depth)

    def _object(self, schema: dict[str, Any], depth: int) -> dict[str, Any]:
        chance, found = self._chance, dict[str, Any]()
        for name, inner in schema.get("properties", {}).items():
            if name in schema.get("required", ()) or chance.random() < 0.3:
                found[name] = self.of(inner, depth + 1)
        more = schema.get("additionalProperties")
        if isinstance(more, dict):
            found |= {chance.choice(TEXTS): self.of(more, depth + 1) for _ in range(self._count(depth))}
        if chance.random() < WRONG and found:
            del found[chance.choice(list(found))]
        return found

    def any(self, depth: int = 0) -> Any:
        """Whatever JSON can say."""
        chance = self._chance
        kind = chance.randrange(4 if depth >= DEEPEST else 7)
        if kind < 4:
            return (None, chance.random() < 0.5, chance.choice(NUMBERS), chance.choice(TEXTS))[kind]
        if kind == 4:
            return {chance.choice(TEXTS): self.any(depth + 1) for _ in range(self._count(depth))}
        return [self.any(depth + 1) for _ in range(self._count(depth))]

    def _count(self, depth: int) -> int:
        chance = self._chance
        return 0 if depth > DEEPEST else chance.choice((0, 1, 1, 2, 3, 200 if chance.random() < 0.05 else 5))
