"""A client that stock tools make of our .proto for Java, the language that URLFrontier's own clients are written in."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from tests.gateway.urlfrontier.common import open_frontier

from crawlguide.gateway.urlfrontier import urlfrontier_pb2

PROTO = Path(urlfrontier_pb2.__file__).with_name("urlfrontier.proto")
CONFORMANCE = Path(__file__).with_name("Conformance.java")
PACKAGES = Path("/usr/share/java")  # where Debian keeps packages for Java
NAMES = (
    *("grpc-api", "grpc-context", "grpc-core", "grpc-netty", "grpc-protobuf", "grpc-protobuf-lite", "grpc-stub"),
    *("netty-buffer", "netty-codec", "netty-codec-http", "netty-codec-http2", "netty-codec-socks", "netty-common"),
    *(
        "netty-handler",
        "netty-handler-proxy",
        "netty-resolver",
        "netty-transport",
        "netty-transport-native-unix-common",
    ),
    *("protobuf", "protobuf-util", "guava", "gson", "perfmark-api", "geronimo-annotation-1.3-spec"),
)
JARS = [PACKAGES / f"{name}.jar" for name in NAMES]
TOOLS = ("java", "javac", "protoc", "grpc_java_plugin")
CHECKS = [
    "never fetched again",
    "right order",
    "updates",
    "names of queues",
    "ids of crawls",
    "dump and import",
    "dump of queues and import",
    "dump by four threads",
]


has_java = all(map(shutil.which, TOOLS)) and all(jar.exists() for jar in JARS)


def run(*words: str | Path, cwd: Path) -> str:
    command = [str(word) for word in words]
    ended = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=120, check=False)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


@pytest.mark.skipif(not has_java, reason="Java, its packages for gRPC or the compilers are not installed")
def test_a_client_for_java_finds_what_the_conformance_classes_assert(tmp_path: Path) -> None:
    """Twice: what a check leaves behind would fail the next."""
    (made := tmp_path / "made").mkdir()
    plugin = f"--plugin=protoc-gen-grpc-java={shutil.which('grpc_java_plugin')}"
    run(
        "protoc", f"-I{PROTO.parent}", f"--java_out={made}", f"--grpc-java_out={made}", plugin, PROTO.name, cwd=tmp_path
    )
    path = ":".join(map(str, JARS))
    run("javac", "-nowarn", "-d", made, "-cp", path, *made.rglob("*.java"), CONFORMANCE, cwd=tmp_path)
    with open_frontier(tmp_path) as (_, raw):
        printed = run("java", "-cp", f"{made}:{path}", "Conformance", "127.0.0.1", str(raw.port), cwd=tmp_path)
    assert printed.splitlines() == CHECKS * 2
