"""The measurement as tables for people, with the ratios that count."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

ROWS = (
    ("ask in process, CPU µs (mean)", "ask_us", "{:.0f}"),
    ("ask in process, CPU µs (p50 / p99)", ("ask_us_p50", "ask_us_p99"), "{:.0f} / {:.0f}"),
    ("… against the smallest frontier", "growth", "{:.2f}×"),
    ("… against 200 pops and pushes of a plain heap", "ask_to_heap", "{:.2f}×"),
    ("tell of a page with 20 new links in process, CPU µs", "tell_us", "{:.0f}"),
    ("… per discovered link", "link_us", "{:.1f}"),
    ("… per discovered link where a tell holds ten such pages", "link_us_of_ten_pages", "{:.1f}"),
    ("background threads, CPU µs per ask and tell", "background_us", "{:.0f}"),
    ("ask over HTTP, server CPU µs", "http_ask_cpu_us", "{:.0f}"),
    ("ask over HTTP, µs (p50 / p99)", ("http_ask_p50_us", "http_ask_p99_us"), "{:.0f} / {:.0f}"),
    ("tell over HTTP, server CPU µs", "http_tell_cpu_us", "{:.0f}"),
    ("tell over HTTP, µs (p50 / p99), on the disk", ("http_tell_p50_us", "http_tell_p99_us"), "{:.0f} / {:.0f}"),
    (
        "acks a second over 1 / 8 / 64 connections",
        ("acks_per_s_1", "acks_per_s_8", "acks_per_s_64"),
        "{:.0f} / {:.0f} / {:.0f}",
    ),
    ("ask over HTTP, p99 µs while 8 connections tell", "http_ask_p99_us_while_tells_commit", "{:.0f}"),
    ("memory, bytes a URL", "memory_bytes_per_url", "{:.0f}"),
    ("disk, bytes a URL", "disk_bytes_per_url", "{:.0f}"),
    ("folder opened after a clean stop / kill -9, s", ("open_clean_s", "open_killed_s"), "{:.2f} / {:.2f}"),
    ("process started and ready, s", ("ready_clean_s", "ready_killed_s"), "{:.2f} / {:.2f}"),
)


def sizes(measured: Sequence[Mapping[str, Any]]) -> str:
    """A row for each figure, a column for each size."""
    first = measured[0]["ask_us_p50"]
    columns = [{**row, "growth": row["ask_us_p50"] / first} for row in measured]
    lines = [["", *(f"{row['urls']:,} URLs" for row in columns)]]
    for title, keys, form in ROWS:
        names = (keys,) if isinstance(keys, str) else keys
        lines.append([title, *(form.format(*(row[name] for name in names)) for row in columns)])
    return markdown(lines)


def queues(measured: Sequence[Mapping[str, Any]]) -> str:
    """Add and next beside other frontiers; the ratio is ours to theirs."""
    ours = measured[0]["add_next_per_s"]
    lines = [["frontier", "URLs", "add/s", "next/s", "add+next/s", "ours to it", "what it lacks"]]
    for row in measured:
        if "failed" in row:
            lines.append([row["peer"], "", "", "", "", "", f"could not be measured: {row['failed']}"])
            continue
        rates = [f"{row[name]:,.0f}" for name in ("add_per_s", "next_per_s", "add_next_per_s")]
        name = f"{row['peer']} {row.get('version', '')}".strip()
        lines.append([name, f"{row['count']:,}", *rates, f"{ours / row['add_next_per_s']:.1f}×", row["lacks"]])
    return markdown(lines)


def markdown(lines: Sequence[Sequence[str]]) -> str:
    head, *body = (f"| {' | '.join(line)} |" for line in lines)
    return "\n".join([head, "|" + "---|" * len(lines[0]), *body])
