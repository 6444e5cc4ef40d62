# SPDX-License-Identifier: Apache-2.0
"""The whole agent publishing to a server that misbehaves: what it asks, how often, and what it says of it."""

import json
import os
import signal
import subprocess
import threading
import time

from harness import WAIT, Case

BESIDE = os.path.join(os.path.dirname(os.environ.get("FAULT_PROBE", "build/asan/test/fault_probe")), "..", "pernode-agent")
AGENT = os.environ.get("FAULT_AGENT", BESIDE)
PATCH = "application/merge-patch+json"


class Node:
    """One Node object. fault(method, connection) may answer in its place, and then returns True; lost(connection) answers a
    patch that was taken."""

    def __init__(self):
        self.annotations = {}
        self.uid = "uid-1"
        self.fault = self.lost = None
        self.there = True
        self.taken = []
        self.changed = threading.Condition()

    def document(self):
        return {"kind": "Node", "apiVersion": "v1", "metadata": {"name": "n", "uid": self.uid, "annotations": self.annotations},
                "status": {"nodeInfo": {"machineID": "m", "bootID": "b"}, "images": [{"names": ["x" * 200], "sizeBytes": 1}] * 50}}

    def __call__(self, request, connection):
        if request.path != "/api/v1/nodes/n":
            connection.status(404, "NotFound")
            return
        if self.fault and self.fault(request.method, connection):
            return
        if not self.there:
            connection.status(404, "NotFound", 'nodes "n" not found')
            return
        with self.changed:
            if request.method == "PATCH":
                patch = json.loads(request.body)
                self.taken.append(patch)
                for key, value in patch["metadata"]["annotations"].items():
                    if value is None:
                        self.annotations.pop(key, None)
                    else:
                        self.annotations[key] = value
                self.changed.notify_all()
        if request.method == "PATCH" and self.lost:
            self.lost(connection)
            return
        connection.answer(body=self.document())

    def until(self, condition, what):
        with self.changed:
            if not self.changed.wait_for(condition, WAIT):
                raise AssertionError(f"not {what}: {self.annotations}, {len(self.taken)} patches taken")


class Publishing(Case):
    def run_agent(self, node, pods=()):
        self.serve(node)
        for name in ("cgroup", "state"):
            os.mkdir(self.path(name))
        self.write("pods.json", json.dumps({"kind": "PodList", "apiVersion": "v1", "items": pods}))
        log = open(self.path("log"), "w+", encoding="utf-8")  # pylint: disable=consider-using-with
        self.addCleanup(log.close)
        # pylint: disable=consider-using-with
        self.agent = subprocess.Popen(
            [AGENT, "run", "--node-name=n", f"--pod-source=file:{self.path('pods.json')}", "--publish=api",
             f"--kubeconfig={self.kubeconfig()}", f"--cgroup-root={self.path('cgroup')}", f"--state-dir={self.path('state')}",
             "--listen=127.0.0.1:0", "--first-publish-spread=0s", "--publish-interval=1s"], stderr=log)
        self.log = log
        self.addCleanup(self._end_agent)

    def said(self):
        with open(self.path("log"), encoding="utf-8") as f:
            return f.read()

    def until_said(self, text):
        end = time.monotonic() + WAIT
        while text not in self.said():
            self.assertLess(time.monotonic(), end, f"{text!r} was never said: {self.said()}")
            self.assertIsNone(self.agent.poll(), self.said())
            time.sleep(0.02)

    def _end_agent(self):
        if self.agent.poll() is None:
            self.agent.send_signal(signal.SIGTERM)
        code = self.agent.wait(WAIT)
        if code != 0:
            raise AssertionError(f"the agent ended with {code}: {self.said()}")

    def test_the_first_patch_tells_who_is_here_and_clears_what_nobody_knows(self):
        node = Node()
        node.annotations = {"gone.default.pernode.io/c": "{}", "other.example/x": "theirs"}
        self.run_agent(node)
        node.until(lambda: node.taken, "patched")
        node.until(lambda: "gone.default.pernode.io/c" not in node.annotations, "cleared")
        self.assertEqual(node.annotations["other.example/x"], "theirs")
        agent = json.loads(node.annotations["pernode.io/agent"])
        self.assertEqual((agent["nodeUID"], agent["state"]), ("uid-1", "ok"))
        self.assertRegex(agent["machine"], "^[0-9a-f]{16}$")
        get, patch = self.server.requests[:2]
        self.assertEqual((get.method, get.target), ("GET", "/api/v1/nodes/n"))
        self.assertEqual((patch.method, patch.target), ("PATCH", "/api/v1/nodes/n?fieldManager=pernode-agent"))
        self.assertEqual(patch.headers["content-type"], PATCH)
        self.assertEqual(list(json.loads(patch.body)), ["metadata"])
        self.assertEqual(list(json.loads(patch.body)["metadata"]), ["annotations"])

    def test_a_patch_whose_answer_is_lost_is_looked_for_and_not_sent_again(self):
        def page(connection):
            connection.answer(200, b"<html>sign in</html>", content_type="text/html")

        ways = {"closed": lambda c: c.close(), "reset": lambda c: c.reset(), "page": page,
                "cut": lambda c: (c.send(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{"), c.close()),
                "failed": lambda c: c.status(500, "InternalError"), "late": lambda c: c.status(504, "Timeout")}
        for name, lose in ways.items():
            with self.subTest(name):
                node = Node()
                node.lost = lose  # each time
                self.run_agent(node)
                self.until_said("publishing works again")
                self.assertEqual([r.method for r in self.server.requests], ["GET", "PATCH", "GET"])
                self.assertIn("pernode.io/agent", node.annotations)
                self.doCleanups()
                self.setUp()

    def test_a_patch_that_was_lost_on_its_way_is_sent_again(self):
        node = Node()
        lost = []

        def fault(method, connection):
            if method != "PATCH" or lost:
                return False
            lost.append(method)
            connection.close()
            return True
        node.fault = fault
        self.run_agent(node)
        node.until(lambda: node.taken, "patched after all")
        self.assertEqual([r.method for r in self.server.requests], ["GET", "PATCH", "GET", "PATCH"])

    def test_who_writes_here_is_told_before_there_is_a_value(self):
        """The first patch would wait two minutes for the container, longer than this test waits."""
        owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "u", "controller": True}
        pod = {"kind": "Pod", "apiVersion": "v1", "spec": {"nodeName": "n", "containers": [{"name": "c", "image": "i"}]},
               "metadata": {"name": "d-1", "namespace": "default", "uid": "6c2fbe3c-8b9c-4f0e-9d4e-1d7f1a2b3c4d",
                            "ownerReferences": [owner]},
               "status": {"phase": "Running", "containerStatuses": [{"name": "c", "containerID": "containerd://" + "a" * 64,
                                                                     "state": {"running": {}}}]}}
        node = Node()
        self.run_agent(node, [pod])
        node.until(lambda: "pernode.io/agent" in node.annotations, "told")
        self.assertEqual(list(node.taken[0]["metadata"]["annotations"]), ["pernode.io/agent"])

    def test_refusals_are_said_once_and_outlived(self):
        for code, reason, name in ((403, "Forbidden", "forbidden"), (404, "NotFound", "not-found"), (409, "Conflict", "conflict"),
                                   (422, "Invalid", "invalid"), (429, "TooManyRequests", "throttled"),
                                   (500, "InternalError", "server"), (401, "Unauthorized", "unauthorized")):
            with self.subTest(code):
                node = Node()
                refused = []

                def fault(_method, connection, code=code, reason=reason, refused=refused):
                    if refused:
                        return False
                    refused.append(code)
                    connection.status(code, reason, "ValidatingAdmissionPolicy 'pernode-agent-own-node' denied request")
                    return True
                node.fault = fault
                self.run_agent(node)
                self.until_said(f"cannot publish ({name})")
                self.assertIn("pernode-agent-own-node", self.said())
                node.until(lambda node=node: node.taken, "patched after all")
                self.assertEqual(len(node.taken), 1)
                self.assertEqual(self.said().count("cannot publish"), 1, self.said())
                self.assertLess(len(self.server.requests), 8)
                self.doCleanups()
                self.setUp()

    def test_answers_that_are_cut_are_asked_again(self):
        node = Node()
        whole = json.dumps(node.document()).encode()
        cuts = [0, len(whole) - 1]

        def fault(_method, connection):
            if not cuts:
                return False
            n = cuts.pop()
            connection.send(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(whole) + whole[:n])
            connection.close()
            return True
        node.fault = fault
        self.run_agent(node)
        node.until(lambda: node.taken, "patched")
        self.assertEqual(len(node.taken), 1)
        self.assertIn("cannot publish (unreachable)", self.said())

    def test_a_page_in_place_of_an_answer(self):
        node = Node()
        pages = [b"<html>sign in</html>", b"[" * 5000]

        def fault(_method, connection):
            if not pages:
                return False
            page = pages.pop()
            connection.answer(200, page, content_type="text/html" if page.startswith(b"<") else "application/json")
            return True
        node.fault = fault
        self.run_agent(node)
        node.until(lambda: node.taken, "patched")
        self.assertIn("cannot publish (protocol)", self.said())

    def test_a_node_that_does_not_exist_yet(self):
        node = Node()
        node.there = False
        self.run_agent(node)
        self.until_said("cannot publish (not-found)")
        self.assertIn('nodes "n" not found', self.said())
        node.there = True
        node.until(lambda: node.taken, "patched")
        self.assertIn("publishing works again", self.said())

    def test_an_end_while_the_server_is_silent_is_orderly(self):
        node = Node()
        asked = threading.Event()

        def fault(_method, connection):
            asked.set()
            connection.stay()
            return True
        node.fault = fault
        self.run_agent(node)
        self.assertTrue(asked.wait(WAIT))
        self.agent.send_signal(signal.SIGTERM)
        self.assertEqual(self.agent.wait(WAIT), 0)
