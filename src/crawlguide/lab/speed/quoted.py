"""What others say of URLFrontier, and what we measured of it once: it is a server in Java, and no run installs it.

Not comparable with the rows beside it: other machines, other settings. It ranks by due time alone, keeps leases in
memory, and its memory service keeps nothing on disk.
"""

from __future__ import annotations

from collections.abc import Mapping

ELSEWHERE = "published"
HERE = "measured once, two busy shared cores, Python client over gRPC"
QUOTED: tuple[Mapping[str, str], ...] = (
    {
        "peer": "URLFrontier 2.6, RocksDB",
        "figure": "PutURLs: 95,700 URLs/s over 1 stream, 130,000 over 2, 76,000 over 8",
        "where": f"{ELSEWHERE}: 20 cores, 2 million URLs, Java client (pull request 190)",
    },
    {
        "peer": "URLFrontier 2.6, RocksDB",
        "figure": "PutDiscovered in batches of 256: 49,000 to 52,000 URLs/s",
        "where": f"{ELSEWHERE}: 500,000 new URLs, 1 stream (commit 7efe898)",
    },
    {
        "peer": "URLFrontier 2.6, RocksDB",
        "figure": "21.5 million URLs put in 280 s, 76,800 URLs/s",
        "where": f"{ELSEWHERE} (pull request 189)",
    },
    {
        "peer": "URLFrontier 2.6, memory",
        "figure": "GetURLs: 100 URLs of a queue of 500,000 in 0.14 ms",
        "where": f"{ELSEWHERE} (commit d215575)",
    },
    {
        "peer": "URLFrontier 2.6, memory",
        "figure": "PutURLs 5,441 URLs/s in; GetURLs 10×10 and PutURLs(done) 4,016 out; both 2,311 (best of 3)",
        "where": f"{HERE}, 50,000 URLs on 5,000 hosts",
    },
    {
        "peer": "URLFrontier 2.6, memory",
        "figure": "PutDiscovered(100) 152,933 URLs/s in; the same 3,300 out; both 3,230 (best of 3)",
        "where": f"{HERE}, 50,000 URLs on 5,000 hosts",
    },
    {
        "peer": "URLFrontier 2.6, memory",
        "figure": "PutURLs 7,200 and 9,700 URLs/s; PutDiscovered(100) 47,000 and 73,000",
        "where": "measured once, the same machine, its own Java client, 100,000 URLs on 1,000 hosts",
    },
)
