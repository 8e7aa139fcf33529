"""Make typed Python of the .proto files, beside each: a step of every build, so of `make setup` as of a wheel."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from grpc_tools import command, protoc
from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class Protos(BuildHookInterface[Any]):
    """Hatchling calls it before it packs or links the package."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002 - what hatchling passes
        source = Path(self.root) / "src"
        files = sorted(str(file) for file in source.rglob("*.proto"))
        makes = [f"--{kind}_out={source}" for kind in ("python", "grpc_python", "mypy", "mypy_grpc")]
        included = Path(command.__file__).parent / "_proto"  # google's own messages
        if files and protoc.main(["protoc", f"-I{source}", f"-I{included}", *makes, *files]):
            raise RuntimeError(f"protoc refuses one of {', '.join(files)}")
