"""Listens at every address there is, and hears every connection that anybody tries to make, whatever its port.

Only inside a network namespace in which all addresses are this machine's own.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv6Address

EVERY_PROTOCOL, IPV4, IPV6, TCP = 3, 0x0800, 0x86DD, 6
SYN, ACK = 0x02, 0x10
REDIRECT = "/redirect/"


@dataclass
class Canary:
    """`tried`: address and port of each connection somebody began. It answers redirects to where it was told."""

    targets: list[str] = field(default_factory=list)
    tried: set[tuple[str, int]] = field(default_factory=set)
    requests: int = 0

    def listen(self) -> None:
        """Hear what leaves and what arrives."""
        wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(EVERY_PROTOCOL))
        wire.bind(("lo", 0))
        wire.setblocking(False)
        asyncio.get_running_loop().add_reader(wire, self._heard, wire)

    def _heard(self, wire: socket.socket) -> None:
        try:
            while True:
                found = began(wire.recv(65_536))
                if found is not None:
                    self.tried.add(found)
        except BlockingIOError:
            return

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            path = (await reader.readuntil(b"\r\n\r\n")).split()[1].decode()
            self.requests += 1
            head = b"HTTP/1.1 200 OK\r\n"
            if path.startswith(REDIRECT):
                target = self.targets[int(path.removeprefix(REDIRECT))]
                head = b"HTTP/1.1 302 Found\r\nLocation: " + target.encode("utf-8", "replace") + b"\r\n"
            writer.write(head + b"Content-Length: 0\r\nConnection: close\r\n\r\n")
            await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


def began(frame: bytes) -> tuple[str, int] | None:
    """Where a connection is begun to, if that is what a frame does."""
    kind, packet = struct.unpack("!H", frame[12:14])[0], frame[14:]
    if kind == IPV4 and packet[9] == TCP:
        head, to = (packet[0] & 15) * 4, str(IPv4Address(packet[16:20]))
    elif kind == IPV6 and packet[6] == TCP:
        head, to = 40, str(IPv6Address(packet[24:40]))
    else:
        return None
    port, flags = struct.unpack("!H", packet[head + 2 : head + 4])[0], packet[head + 13]
    return (to, port) if flags & SYN and not flags & ACK else None
