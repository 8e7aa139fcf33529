"""The measurement as tables for people, with the ratios that count."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Row = tuple[str, str | tuple[str, ...], str]
ROWS: tuple[Row, ...] = (
    ("ask in process, CPU µs (mean)", "ask_us", "{:.0f}"),
    ("ask in process, CPU µs (p50 / p99)", ("ask_us_p50", "ask_us_p99"), "{:.0f} / {:.0f}"),
    ("… against the smallest frontier", "growth", "{:.2f}×"),
    ("… against 200 pops and pushes of a plain heap", "ask_to_heap", "{:.2f}×"),
    ("… against the reference loop", "ask_to_reference", "{:.2f}×"),
    ("… URLs in an answer", "urls_per_ask", "{:.1f}"),
    ("… the first after a start, CPU µs (mean)", "first_asks_us", "{:.0f}"),
    ("tell of a page with 20 links in process, CPU µs", "tell_us", "{:.0f}"),
    ("… against the reference loop", "tell_to_reference", "{:.2f}×"),
    ("… per link", "link_us", "{:.1f}"),
    ("… per link where a tell holds ten such pages", "link_us_of_ten_pages", "{:.1f}"),
    ("tell of ten pages against the reference loop", "long_tell_to_reference", "{:.2f}×"),
    ("background threads, CPU µs per ask and tell", "background_us", "{:.0f}"),
    ("ask over HTTP, server CPU µs", "http_ask_cpu_us", "{:.0f}"),
    ("ask over HTTP, µs (p50 / p99)", ("http_ask_p50_us", "http_ask_p99_us"), "{:.0f} / {:.0f}"),
    ("… URLs in an answer", "http_urls_per_ask", "{:.1f}"),
    ("tell over HTTP, server CPU µs", "http_tell_cpu_us", "{:.0f}"),
    ("tell over HTTP, µs (p50 / p99), on the disk", ("http_tell_p50_us", "http_tell_p99_us"), "{:.0f} / {:.0f}"),
    (
        "acks a second over 1 / 8 / 64 connections",
        ("acks_per_s_1", "acks_per_s_8", "acks_per_s_64"),
        "{:.0f} / {:.0f} / {:.0f}",
    ),
    ("ask over HTTP, p99 µs while 8 connections tell", "http_ask_p99_us_while_tells_commit", "{:.0f}"),
    ("asks a second over WebSockets, server and clients on one core", "socket_asks_per_s", "{:.0f}"),
    ("… server CPU µs for each", "socket_ask_cpu_us", "{:.0f}"),
    ("… URLs in an answer", "socket_urls_per_ask", "{:.1f}"),
    ("memory, bytes a URL", "memory_bytes_per_url", "{:.0f}"),
    ("disk, bytes a URL", "disk_bytes_per_url", "{:.0f}"),
    ("folder opened after a clean stop / kill -9, s", ("open_clean_s", "open_killed_s"), "{:.2f} / {:.2f}"),
    ("process started and ready, s", ("ready_clean_s", "ready_killed_s"), "{:.2f} / {:.2f}"),
)
GROWTH_ROWS: tuple[Row, ...] = (
    ("ask over HTTP, server CPU µs, all threads", "ask_cpu_us", "{:.0f}"),
    ("… against the reference loop", "ask_to_reference", "{:.2f}×"),
    ("… URLs in an answer", "urls_per_ask", "{:.1f}"),
    ("link in a tell of ten pages over HTTP, server CPU µs, all threads", "link_cpu_us", "{:.1f}"),
    ("… against the reference loop", "link_to_reference", "{:.4f}×"),
    ("… for each link that was new", "new_link_cpu_us", "{:.1f}"),
    ("… new links on a page", "new_links_per_page", "{:.1f}"),
    ("resident memory of the server, MiB", "resident_mib", "{:.0f}"),
    ("… bytes a URL since the first column (first column: since empty)", "resident_bytes_per_url", "{:.0f}"),
)


def sizes(measured: Sequence[Mapping[str, Any]]) -> str:
    """A row for each figure, a column for each size."""
    first = measured[0]["ask_us_p50"]
    rows = [row for row in ROWS if row[1] != "first_asks_us" or "first_asks_us" in measured[0]]
    return _columns(rows, [{**row, "growth": row["ask_us_p50"] / first} for row in measured])


def growth(measured: Sequence[Mapping[str, Any]]) -> str:
    """What it cost a lived crawl to grow, at some points."""
    return _columns(GROWTH_ROWS, [{**row, "resident_mib": row["resident_bytes"] / 2**20} for row in measured])


def _columns(rows: Sequence[Row], columns: Sequence[Mapping[str, Any]]) -> str:
    lines = [["", *(f"{column['urls']:,} URLs" for column in columns)]]
    for title, keys, form in rows:
        names = (keys,) if isinstance(keys, str) else keys
        lines.append([title, *(form.format(*(column[name] for name in names)) for column in columns)])
    return markdown(lines)


def whole(found: Mapping[str, Any]) -> str:
    """All tables of a document."""
    parts = []
    if found["sizes"]:
        parts += ["Filled past the learner:", sizes(found["sizes"])]
    if found["lived"]:
        parts += ["Lived, brought in by tells:", sizes(found["lived"])]
        parts += ["The lived crawl while it grew:", growth(found["growth"])]
    return "\n\n".join([*parts, queues(found["queues"]), quoted(found["quoted"])])


def quoted(rows: Sequence[Mapping[str, str]]) -> str:
    """What was not measured in this run."""
    return markdown([["not measured here", "figure", "where"], *([*row.values()] for row in rows)])


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
