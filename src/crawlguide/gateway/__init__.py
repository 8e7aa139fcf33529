"""The doors: each decodes, asks the guide, and encodes. None of them decides anything."""

from __future__ import annotations

import os

# read when grpc is first imported: else anybody whose handshake fails writes lines of gRPC's own to the standard error
os.environ.setdefault("GRPC_VERBOSITY", "ERROR")
