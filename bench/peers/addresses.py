"""The addresses every peer gets. Standard library only: it is imported inside the environments of the peers."""

from __future__ import annotations


def urls(count: int, hosts: int) -> list[str]:
    """`count` distinct URLs over `hosts` hosts, the same ones on every call."""
    return [
        f"https://h{number % hosts:05d}.example/docs/section-{number % 97}/page-{number:08d}.html"
        for number in range(count)
    ]
