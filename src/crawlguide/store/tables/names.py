"""Numbers for names; the number of a forgotten name serves a new one."""

from __future__ import annotations


class Names:
    def __init__(self) -> None:
        self.number_of: dict[str, int] = {}
        self.names: list[str] = []  # by number; "" for one that is spare
        self._spare: list[int] = []

    def __len__(self) -> int:
        return len(self.number_of)

    @property
    def end(self) -> int:
        """Every number in use is smaller."""
        return len(self.names)

    def numbers(self) -> list[int]:
        """Those in use, in order."""
        return sorted(self.number_of.values())

    def find(self, name: str) -> int | None:
        return self.number_of.get(name)

    def add(self, name: str) -> int:
        """A number for a name that has none."""
        number = self._spare.pop() if self._spare else self.end
        self.put(name, number)
        return number

    def put(self, name: str, number: int) -> None:
        """The name is known by this number."""
        self.number_of[name] = number
        self.names += [""] * (number + 1 - len(self.names))
        self.names[number] = name

    def forget(self, name: str) -> None:
        number = self.number_of.pop(name)
        self.names[number] = ""
        self._spare.append(number)

    def close_gaps(self) -> None:
        """After `put`: numbers that no name has are for new names."""
        self._spare = [number for number in reversed(range(self.end)) if not self.names[number]]
