# SPDX-License-Identifier: Apache-2.0
"""Inside a node: runs commands for whoever holds the cluster's token, over the private line."""

from __future__ import annotations

import fcntl
import hmac
import json
import os
import pty
import select
import signal
import socket
import struct
import subprocess
import termios
import threading

import wire

# Commands that a session waits for itself: whoever reaps orphans leaves these alone.
waited_for: set[int] = set()

_READ_BYTES = 1 << 15
_REQUEST_SECONDS = 10


class Session(threading.Thread):
    """One connection: one command, its input, its output, its exit status."""

    def __init__(self, sock: socket.socket, token: str, actions: dict) -> None:
        super().__init__(daemon=True)
        self._sock, self._token, self._actions = sock, token, actions

    def run(self) -> None:
        with self._sock as sock:
            try:
                sock.settimeout(_REQUEST_SECONDS)
                kind, payload = wire.receive(sock)
                request = json.loads(payload)
                if kind != wire.REQUEST or not hmac.compare_digest(request["token"], self._token):
                    return
                sock.settimeout(None)
                self._answer(request)
                self._drain()
            except (OSError, ValueError, KeyError, TypeError, wire.WireError):
                return

    def _drain(self) -> None:
        """Closing with input unread would reset the connection, and the answer could be lost."""
        self._sock.shutdown(socket.SHUT_WR)
        self._sock.settimeout(_REQUEST_SECONDS)
        while self._sock.recv(_READ_BYTES):
            pass

    def _answer(self, request: dict) -> None:
        if "action" in request:
            status, text = self._actions[request["action"]](request)
            wire.send(self._sock, wire.OUTPUT, text.encode())
        elif request.get("tty"):
            status = self._run_on_terminal(request)
        else:
            status = self._run(request)
        wire.send(self._sock, wire.EXIT, str(status).encode())

    def _start(self, argv: list[str], **streams) -> subprocess.Popen | None:
        try:
            child = subprocess.Popen(argv, cwd="/", start_new_session=True, **streams)
        except OSError as error:
            wire.send(self._sock, wire.ERROR, f"{argv[0]}: {error.strerror}\n".encode())
            return None
        waited_for.add(child.pid)
        return child

    @staticmethod
    def _end(child: subprocess.Popen) -> int:
        code = child.wait()
        waited_for.discard(child.pid)
        return 128 - code if code < 0 else code

    def _run(self, request: dict) -> int:
        pipe = subprocess.PIPE
        child = self._start(request["argv"], stdin=pipe, stdout=pipe, stderr=pipe)
        if not child:
            return 127
        outputs = {child.stdout.fileno(): wire.OUTPUT, child.stderr.fileno(): wire.ERROR}
        self._pump(child, outputs, child.stdin)
        return self._end(child)

    def _run_on_terminal(self, request: dict) -> int:
        master, slave = pty.openpty()
        size = struct.pack("HHHH", int(request.get("rows", 24)), int(request.get("columns", 80)), 0, 0)
        fcntl.ioctl(slave, termios.TIOCSWINSZ, size)
        child = self._start(request["argv"], stdin=slave, stdout=slave, stderr=slave,
                            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        os.close(slave)
        if not child:
            os.close(master)
            return 127
        with open(master, "wb", buffering=0) as terminal:
            self._pump(child, {master: wire.OUTPUT}, terminal)
        return self._end(child)

    def _pump(self, child: subprocess.Popen, outputs: dict[int, bytes], stdin) -> None:
        """Carries bytes both ways until the command's outputs end."""
        sock_fd = self._sock.fileno()
        watched = [*outputs, sock_fd]
        while outputs:
            for ready in select.select(watched, [], [])[0]:
                if ready == sock_fd:
                    if not self._take_input(child, stdin):
                        watched.remove(sock_fd)
                    continue
                try:
                    data = os.read(ready, _READ_BYTES)
                except OSError:                 # a terminal whose last user is gone
                    data = b""
                if data:
                    wire.send(self._sock, outputs[ready], data)
                else:
                    watched.remove(ready)
                    del outputs[ready]

    def _take_input(self, child: subprocess.Popen, stdin) -> bool:
        """One frame of input; False when there will be no more. Hanging up ends the command."""
        try:
            kind, payload = wire.receive(self._sock)
        except (OSError, wire.WireError):
            os.killpg(child.pid, signal.SIGKILL)
            return False
        try:
            if kind == wire.INPUT:
                stdin.write(payload)
                stdin.flush()
                return True
            if kind == wire.CLOSE and stdin is child.stdin:
                stdin.close()
        except (BrokenPipeError, ValueError):
            pass
        return True


def serve(address: str, token: str, actions: dict) -> None:
    """Listens in a thread of its own. actions: name -> function(request) -> (status, text)."""
    listener = socket.create_server((address, wire.PORT))

    def accept() -> None:
        while True:
            Session(listener.accept()[0], token, actions).start()

    threading.Thread(target=accept, daemon=True).start()
