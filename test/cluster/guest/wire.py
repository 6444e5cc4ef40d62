# SPDX-License-Identifier: Apache-2.0
"""Frames between the command `cluster` and a node: one type byte, a length, that many bytes."""

from __future__ import annotations

import struct

PORT = 1

REQUEST = b"r"      # JSON: {"token", "argv" | "action", "tty", "rows", "columns"}; first frame
INPUT = b"i"        # bytes for the command's standard input
CLOSE = b"c"        # end of the command's input
OUTPUT = b"o"
ERROR = b"e"
EXIT = b"x"         # decimal exit status; last frame

HEADER = struct.Struct("!cI")
MAX_FRAME_BYTES = 1 << 16


class WireError(Exception):
    """The other side ended early or does not speak this protocol."""


def send(sock, kind: bytes, payload: bytes = b"") -> None:
    """Sends bytes as one frame, or as several where they are longer than one may be."""
    for start in range(0, max(len(payload), 1), MAX_FRAME_BYTES):
        piece = payload[start:start + MAX_FRAME_BYTES]
        sock.sendall(HEADER.pack(kind, len(piece)) + piece)


def _exactly(sock, count: int) -> bytes:
    pieces = []
    while count:
        piece = sock.recv(count)
        if not piece:
            raise WireError("the connection ended in the middle of a frame")
        pieces.append(piece)
        count -= len(piece)
    return b"".join(pieces)


def receive(sock) -> tuple[bytes, bytes]:
    """The next frame's type and bytes."""
    kind, length = HEADER.unpack(_exactly(sock, HEADER.size))
    if length > MAX_FRAME_BYTES:
        raise WireError(f"a frame of {length} bytes; at most {MAX_FRAME_BYTES} are allowed")
    return kind, _exactly(sock, length)
