# SPDX-License-Identifier: Apache-2.0
"""Commands in a node, over the private line: the host's side of guest/control.py."""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import sys
import termios
import threading
import tty
from pathlib import Path

from .errors import LabError
from .network import Network

_GUEST = str(Path(__file__).resolve().parents[1] / "guest")
if _GUEST not in sys.path:
    sys.path.insert(0, _GUEST)

import wire  # noqa: E402  (shared with the guest, so it lies there)

CONNECT_SECONDS = 5
_READ_BYTES = 1 << 15


class Remote:
    """The control server of one node."""

    def __init__(self, network: Network, address: str, token: str) -> None:
        self._network, self._address, self._token = network, address, token

    def _request(self, timeout_seconds: float | None, **request):
        sock = self._network.connect(self._address, wire.PORT, CONNECT_SECONDS)
        sock.settimeout(timeout_seconds)
        wire.send(sock, wire.REQUEST, json.dumps({"token": self._token, **request}).encode())
        return sock

    def reachable(self) -> bool:
        """Whether the node takes commands."""
        try:
            self._network.connect(self._address, wire.PORT, CONNECT_SECONDS).close()
            return True
        except OSError:
            return False

    def _collect(self, sock) -> tuple[int, bytes, bytes]:
        output, errors = [], []
        while True:
            kind, payload = wire.receive(sock)
            if kind == wire.OUTPUT:
                output.append(payload)
            elif kind == wire.ERROR:
                errors.append(payload)
            elif kind == wire.EXIT:
                return int(payload), b"".join(output), b"".join(errors)

    def action(self, name: str, timeout_seconds: float = 30, **arguments) -> str:
        """Something that the node's first process does itself; what it answered."""
        with self._request(timeout_seconds, action=name, **arguments) as sock:
            try:
                status, output, _ = self._collect(sock)
            except (OSError, wire.WireError) as error:
                raise LabError(f"the node did not answer to {name}: {error}") from error
        if status != 0:
            raise LabError(f"the node could not {name}: {output.decode('utf-8', 'replace').strip()}")
        return output.decode("utf-8", "replace")

    def capture(self, argv: list[str], timeout_seconds: float = 60) -> str:
        """What a command prints; an error with its message when it fails."""
        try:
            with self._request(timeout_seconds, argv=argv) as sock:
                wire.send(sock, wire.CLOSE)
                status, output, errors = self._collect(sock)
        except (OSError, wire.WireError) as error:
            raise LabError(f"{' '.join(argv)}: the node did not answer: {error}") from error
        if status != 0:
            raise LabError(f"{' '.join(argv)}: exit {status}: "
                           f"{(errors or output).decode('utf-8', 'replace').strip()}")
        return output.decode("utf-8", "replace")

    def run(self, argv: list[str]) -> int:
        """Runs a command with our own standard streams; on a terminal, as on a terminal."""
        on_terminal = sys.stdin.isatty() and sys.stdout.isatty()
        size = shutil.get_terminal_size()
        with self._request(None, argv=argv, tty=on_terminal, rows=size.lines,
                           columns=size.columns) as sock:
            with _raw_terminal() if on_terminal else contextlib.nullcontext():
                threading.Thread(target=_send_input, args=(sock,), daemon=True).start()
                return _print_output(sock)


@contextlib.contextmanager
def _raw_terminal():
    """Keys go to the node as they are; the terminal is put back at the end."""
    before = termios.tcgetattr(0)
    tty.setraw(0)
    try:
        yield
    finally:
        termios.tcsetattr(0, termios.TCSADRAIN, before)


def _send_input(sock) -> None:
    try:
        while True:
            select.select([0], [], [])
            data = os.read(0, _READ_BYTES)
            if not data:
                wire.send(sock, wire.CLOSE)
                return
            wire.send(sock, wire.INPUT, data)
    except (OSError, ValueError):
        return


def _print_output(sock) -> int:
    streams = {wire.OUTPUT: sys.stdout.buffer, wire.ERROR: sys.stderr.buffer}
    try:
        while True:
            kind, payload = wire.receive(sock)
            if kind == wire.EXIT:
                return int(payload)
            if kind in streams:
                streams[kind].write(payload)
                streams[kind].flush()
    except (OSError, wire.WireError) as error:
        raise LabError(f"the node hung up: {error}") from error
