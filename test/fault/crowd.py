# SPDX-License-Identifier: Apache-2.0
"""A stand-in for the API server of a large cluster: thousands of connections in one thread, and a log of who asked what
and when, and how much was under way at once."""

import asyncio
import json
import re
import resource
import threading
import time
from urllib.parse import parse_qs, urlsplit

from server import bookmark

SERVICE = 0.02  # seconds that a request takes, and a seat is taken


class Asked:
    def __init__(self, method, target):
        parts = urlsplit(target)
        self.at = time.monotonic()
        self.method, self.target, self.path = method, target, parts.path
        self.query = {k: v[0] for k, v in parse_qs(parts.query, keep_blank_values=True).items()}
        self.refused = False

    @property
    def node(self):
        if self.path.startswith("/api/v1/nodes/"):
            return self.path.rsplit("/", 1)[1]
        return self.query.get("fieldSelector", "").removeprefix("spec.nodeName=")


class Conversation(asyncio.Protocol):
    def __init__(self, crowd):
        self.crowd, self.buffer, self.transport, self.watches = crowd, b"", None, False

    def connection_made(self, transport):
        self.transport = transport

    def connection_lost(self, exc):
        self.crowd.watchers.discard(self)

    def data_received(self, data):
        self.buffer += data
        while True:
            head, gap, rest = self.buffer.partition(b"\r\n\r\n")
            if not gap:
                return
            length = re.search(rb"(?i)content-length: *(\d+)", head)
            n = int(length[1]) if length else 0
            if len(rest) < n:
                return
            self.buffer = rest[n:]
            method, target, _ = head.split(b"\r\n", 1)[0].decode("latin-1").split(" ", 2)
            self.crowd.asked(self, Asked(method, target), rest[:n])

    def answer(self, status, body, headers=""):
        body = json.dumps(body).encode()
        self.transport.write(f"HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n{headers}\r\n"
                             .encode() + body)

    def stream(self, chunk):
        if chunk:
            self.transport.write(b"%x\r\n%s\r\n" % (len(chunk), chunk))


class Crowd:
    """Runs in a thread of its own. Everything but .log, .most_seats and the methods below belongs to that thread."""

    def __init__(self):
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        self.log, self.watchers, self.annotations = [], set(), {}
        self.seats = self.most_seats = 0
        self.refusals_left = 0
        self.changed = threading.Condition()
        self.loop = asyncio.new_event_loop()
        self.server = self.loop.run_until_complete(
            self.loop.create_server(lambda: Conversation(self), "127.0.0.1", 0, backlog=4096))
        self.url = f"http://127.0.0.1:{self.server.sockets[0].getsockname()[1]}"
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()

    def asked(self, conversation, asked, body):
        self.seats += 1
        self.most_seats = max(self.most_seats, self.seats)
        asked.refused = self.refusals_left > 0
        if asked.refused:
            self.refusals_left -= 1
            self.seats -= 1
            conversation.answer(429, {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
                                      "message": "too many requests", "reason": "TooManyRequests", "code": 429},
                                "Retry-After: 1\r\n")
        else:
            self.loop.call_later(SERVICE, self.serve, conversation, asked, body)
        with self.changed:
            self.log.append(asked)
            self.changed.notify_all()

    def serve(self, conversation, asked, body):
        """The end of a request, or the end of what a watch costs at its start."""
        self.seats -= 1
        if conversation.transport.is_closing():
            return
        if "watch" in asked.query:
            conversation.transport.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")
            conversation.stream(bookmark(100, end="sendInitialEvents" in asked.query))
            with self.changed:
                self.watchers.add(conversation)
                self.changed.notify_all()
        elif asked.path.startswith("/api/v1/nodes/"):
            mine = self.annotations.setdefault(asked.node, {})
            if asked.method == "PATCH":
                mine.update(json.loads(body)["metadata"]["annotations"])
            conversation.answer(200, {"kind": "Node", "apiVersion": "v1", "status": {"nodeInfo": {"machineID": "m", "bootID": "b"}},
                                      "metadata": {"name": asked.node, "uid": f"uid-{asked.node}", "annotations": mine}})
        else:
            conversation.answer(200, {"kind": "PodList", "apiVersion": "v1", "metadata": {"resourceVersion": "100"}, "items": []})

    def fall_over(self, refusals):
        """Ends every watch at once and refuses the next requests."""
        done = threading.Event()

        def now():
            self.refusals_left = refusals
            for conversation in list(self.watchers):
                conversation.transport.abort()
            self.watchers.clear()
            done.set()
        self.loop.call_soon_threadsafe(now)
        done.wait()

    def wait_for(self, condition, what, timeout):
        with self.changed:
            if not self.changed.wait_for(lambda: condition(self), timeout):
                raise AssertionError(f"{what} did not come: {len(self.log)} requests, {len(self.watchers)} watches")

    def close(self):
        async def end():
            self.server.close()
            for task in asyncio.all_tasks():
                if task is not asyncio.current_task():
                    task.cancel()
            self.loop.stop()
        asyncio.run_coroutine_threadsafe(end(), self.loop)
        self.thread.join(30)
        self.loop.close()
