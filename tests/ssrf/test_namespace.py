"""The proof for requests of our own: in a network where every address answers, none that is not public is tried.

Inside a network namespace all addresses belong to this machine, and a canary hears every connection that is begun. It
takes root and iproute2, which `make test` installs.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from ipaddress import ip_network
from pathlib import Path

import pytest

from tests.crash.server import PATH

CORPUS = Path(__file__).parents[3] / "shared" / "corpora" / "ssrf_cases.jsonl"
OWN = (
    "http://127.0.0.1/", "http://localhost/", "http://[::1]/", "http://169.254.169.254/latest/", "http://10.0.0.1:22/",
    "http://2130706433/", "http://0x7f.1/", "http://[::ffff:10.0.0.1]/", "http://[64:ff9b::7f00:1]/", "http://0/",
    "http://192.168.0.1:8080/", "http://[fd00:ec2::254]/", "http://100.100.100.200/", "http://1.1.1.1/", "ftp://10.0.0.1/",
)  # fmt: skip
ALL_ADDRESSES_ARE_OURS = (
    "ip link set lo up && ip route add local 0.0.0.0/0 dev lo && ip -6 route add local ::/0 dev lo"
    ' && exec "$0" -m tests.ssrf.inside'
)


def hostile() -> list[str]:
    """URLs of our own, and of the corpus where it is there: whole URLs, odd ways to write addresses, networks."""
    found = list(OWN)
    for line in CORPUS.read_text().splitlines() if CORPUS.exists() else ():
        case = json.loads(line)
        if "url" in case:
            found.append(case["url"])
        elif "cidr" in case:
            network = ip_network(case["cidr"])
            found += [f"http://{f'[{one}]' if network.version == 6 else one}/" for one in (network[0], network[-1])]
        else:
            found.append(f"http://{case['input']}/")
    return found


@pytest.mark.timeout(240)
@pytest.mark.skipif(os.geteuid() != 0, reason="a network namespace takes root")
def test_no_connection_to_an_address_that_is_not_public_is_ever_begun() -> None:
    for program in ("unshare", "ip"):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed: apt-get install iproute2 util-linux")
    tried = hostile()
    command = ["unshare", "--net", "sh", "-c", ALL_ADDRESSES_ARE_OURS, sys.executable]
    environment = os.environ | {"PYTHONPATH": PATH}
    ran = subprocess.run(command, input=json.dumps(tried), capture_output=True, text=True, env=environment, check=False)
    if "Operation not permitted" in ran.stderr and not ran.stdout:
        pytest.skip("this machine permits no network namespaces")
    assert ran.returncode == 0, ran.stderr[-3_000:]
    found = json.loads(ran.stdout)
    assert found["control"], "the canary is deaf"
    assert found["public"] > 0
    assert found["requests"] >= len(tried)  # each redirect was asked for
    assert found["secret"] == []
