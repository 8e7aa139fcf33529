"""What other crawlers' frontiers do on the same URLs: add and next, each peer in a process and environment of its own.

    .venv/bin/python -m bench.peers.run [--scale 1.0]

Not equalised: no peer promises what another does, so each row says what its peer lacks. Wall clock for the rates,
CPU time of the process for the last column, which is the steadier one on a busy machine.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import tempfile
from typing import Any

from bench.peers import environments

ROOT = environments.FOLDER.parent
RUN_LIMIT_S = 900
ENVIRONMENTS = {
    "scrapy_jobdir": "scrapy",
    "frontera_memory": "frontera",
    "crawlee_files": "crawlee",
    "crawlee_sqlite": "crawlee",
}
COUNTS = {"scrapy_jobdir": 100_000, "frontera_memory": 100_000, "crawlee_files": 2_000, "crawlee_sqlite": 2_000}


def measured(counts: dict[str, int], hosts: int = 10_000) -> list[dict[str, Any]]:
    """One row for each peer named in `counts`: its figures, or why there are none."""
    return [row(name, count, hosts) for name, count in counts.items()]


def row(name: str, count: int, hosts: int) -> dict[str, Any]:
    """A peer that is broken today must not cost us the other rows."""
    try:
        return answer(name, count, hosts)
    except subprocess.TimeoutExpired as late:
        return {"peer": name, "failed": f"not finished within {late.timeout:.0f} s"}
    except subprocess.CalledProcessError as failed:
        return {"peer": name, "failed": last_line(failed.stderr) or f"exit status {failed.returncode}"}
    except (OSError, ValueError) as failed:
        return {"peer": name, "failed": last_line(str(failed))}


def answer(name: str, count: int, hosts: int) -> dict[str, Any]:
    python = environments.python(ENVIRONMENTS[name])
    # The peer's data lies in a folder of ours, so that nothing is left behind by one that ran out of time.
    with tempfile.TemporaryDirectory() as folder:
        finished = subprocess.run(
            [python, "-m", f"bench.peers.{name}", str(count), str(hosts)],
            cwd=ROOT,
            env=os.environ | {"TMPDIR": folder},
            check=True,
            capture_output=True,
            text=True,
            timeout=RUN_LIMIT_S,
        )
    found: dict[str, Any] = json.loads(last_line(finished.stdout))
    return found


def last_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1].strip() if lines else ""


def table(rows: list[dict[str, Any]]) -> str:
    """The figures, and below them what each peer lacks."""
    lines = ["peer             version    count     add/s    next/s  add+next/s  cpu µs/url"]
    for found in rows:
        if "failed" in found:
            lines.append(f"{found['peer']:<16} failed: {found['failed']}")
            continue
        lines.append(
            f"{found['peer']:<16} {found['version']:<8} {found['count']:>7} {found['add_per_s']:>9.0f} "
            f"{found['next_per_s']:>9.0f} {found['add_next_per_s']:>11.0f} {found['cpu_us_per_url']:>11.1f}"
        )
    lines += [f"{found['peer']} lacks: {found['lacks']}" for found in rows if "lacks" in found]
    return "\n".join(lines)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--scale", type=float, default=1.0, help="of the default counts")
    scale = arguments.parse_args().scale
    print(table(measured({name: max(1, round(count * scale)) for name, count in COUNTS.items()})))


if __name__ == "__main__":
    main()
