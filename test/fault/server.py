# SPDX-License-Identifier: Apache-2.0
"""A stand-in for the API server that does what a real one cannot be asked to: lie, stall, cut, refuse.

It listens on a loopback port that the kernel chooses, in plain HTTP or TLS. Every request is handed to the scenario, a
function of (request, connection), in a thread of its own; the connection writes whatever bytes it is told to."""

import json
import socket
import struct
import threading
import time
from urllib.parse import parse_qs, urlsplit


class Gone(Exception):
    """The client went away, or the test is over."""


class Request:
    def __init__(self, method, target, headers, body):
        self.method, self.target, self.headers, self.body = method, target, headers, body
        parts = urlsplit(target)
        self.path = parts.path
        self.query = {k: v[0] for k, v in parse_qs(parts.query, keep_blank_values=True).items()}
        self.at = time.monotonic()
        self.client_certificate = None

    @property
    def kind(self):
        """What the reflector wants: watch_list, watch, list, more; or the method of a single call."""
        if self.method != "GET":
            return self.method
        if "watch" in self.query:
            return "watch_list" if "sendInitialEvents" in self.query else "watch"
        if "limit" in self.query:
            return "more" if "continue" in self.query else "list"
        return "GET"

    def __repr__(self):
        return f"{self.method} {self.target}"


class Connection:
    """One TCP connection: raw bytes out, with the usual answers ready-made."""

    def __init__(self, sock):
        self.sock = sock
        self.file = sock.makefile("rb")
        self.closed = False

    def send(self, data):
        try:
            self.sock.sendall(data)
        except OSError as e:
            raise Gone() from e

    def answer(self, status=200, body=b"", content_type="application/json", headers=()):
        if isinstance(body, (dict, list)):
            body = json.dumps(body).encode()
        head = [f"HTTP/1.1 {status} X", f"Content-Type: {content_type}", f"Content-Length: {len(body)}"]
        self.send("\r\n".join(head + list(headers)).encode() + b"\r\n\r\n" + body)

    def status(self, code, reason, message="no", headers=()):
        self.answer(code, {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
                           "message": message, "reason": reason, "code": code}, headers=headers)

    def start_stream(self, content_type="application/json", headers=()):
        head = ["HTTP/1.1 200 OK", f"Content-Type: {content_type}", "Transfer-Encoding: chunked"]
        self.send("\r\n".join(head + list(headers)).encode() + b"\r\n\r\n")

    def chunk(self, data):
        if data:
            self.send(b"%x\r\n%s\r\n" % (len(data), data))

    def end_stream(self):
        self.send(b"0\r\n\r\n")

    def close(self):
        """FIN, in the middle of whatever it is."""
        self.closed = True
        try:
            self.sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.file.close()
        self.sock.close()

    def reset(self):
        """RST."""
        self.closed = True
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.file.close()
        self.sock.close()

    def stay(self, timeout=60):
        """Says nothing more; returns when the client has had enough, or the server is closed."""
        self.sock.settimeout(timeout)
        try:
            while self.sock.recv(4096):
                pass
        except OSError:
            pass
        self.close()


class Server:
    def __init__(self, scenario, tls=None, port=0):
        """tls: an ssl.SSLContext, or None. A test may set .scenario and .tls anew while it runs."""
        self.scenario, self.tls = scenario, tls
        self.requests = []
        self.connections = 0
        self.lock = threading.Condition()
        self.open = set()
        self.listener = socket.create_server(("127.0.0.1", port), backlog=64)
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def url(self):
        return f"{'https' if self.tls else 'http'}://127.0.0.1:{self.port}"

    def _accept(self):
        while True:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(sock,), daemon=True).start()

    def _serve(self, sock):
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.settimeout(60)
        try:
            if self.tls:
                sock = self.tls.wrap_socket(sock, server_side=True)
        except OSError:
            sock.close()
            return
        connection = Connection(sock)
        with self.lock:
            self.connections += 1
            self.open.add(connection)
        try:
            while not connection.closed:
                request = self._read(connection)
                if not request:
                    break
                request.client_certificate = sock.getpeercert() if self.tls else None
                with self.lock:
                    self.requests.append(request)
                    self.lock.notify_all()
                self.scenario(request, connection)
        except (Gone, OSError, ValueError):
            pass
        finally:
            with self.lock:
                self.open.discard(connection)
            if not connection.closed:
                connection.close()

    @staticmethod
    def _read(connection):
        line = connection.file.readline(16384)
        if not line.strip():
            return None
        method, target, _ = line.decode("latin-1").split(" ", 2)
        headers = {}
        while True:
            line = connection.file.readline(65536)
            if line in (b"\r\n", b"\n", b""):
                break
            name, _, value = line.decode("latin-1").partition(":")
            headers[name.strip().lower()] = value.strip()
        body = connection.file.read(int(headers.get("content-length", 0)))
        return Request(method, target, headers, body)

    def wait_for(self, condition, what="what was waited for", timeout=30):
        """Until condition(requests) holds; returns what it returned."""
        end = time.monotonic() + timeout
        with self.lock:
            while True:
                result = condition(self.requests)
                if result:
                    return result
                left = end - time.monotonic()
                if left <= 0:
                    raise AssertionError(f"{what} did not come; requests: {self.requests[-8:]}")
                self.lock.wait(left)

    def close(self):
        try:
            self.listener.shutdown(socket.SHUT_RDWR)  # else the thread in accept keeps it open
        except OSError:
            pass
        self.listener.close()
        with self.lock:
            left = list(self.open)
        for connection in left:
            try:
                connection.sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


def pod(name, version, namespace="default", **more):
    return {"kind": "Pod", "apiVersion": "v1",
            "metadata": {"name": name, "namespace": namespace, "resourceVersion": str(version)}, **more}


def event(kind, obj):
    return json.dumps({"type": kind, "object": obj}, separators=(",", ":")).encode() + b"\n"


def bookmark(version, end=False):
    meta = {"resourceVersion": str(version)}
    if end:
        meta["annotations"] = {"k8s.io/initial-events-end": "true"}
    return event("BOOKMARK", {"kind": "Pod", "apiVersion": "v1", "metadata": meta})


def error_event(code, reason):
    return event("ERROR", {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
                           "message": "too old resource version: 1 (2)", "reason": reason, "code": code})


def pod_list(version, pods, token=""):
    meta = {"resourceVersion": str(version)}
    if token:
        meta["continue"] = token
    return {"kind": "PodList", "apiVersion": "v1", "metadata": meta, "items": pods}
