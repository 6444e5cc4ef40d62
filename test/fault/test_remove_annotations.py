# SPDX-License-Identifier: Apache-2.0
"""The uninstall hook: reads all Nodes, then takes our annotations off them one by one."""

import json
import subprocess

from harness import WAIT, Case
from server import bookmark, event
from test_publisher import AGENT


def node(name, version, annotations):
    return {"kind": "Node", "apiVersion": "v1", "metadata": {"name": name, "uid": f"uid-{name}", "resourceVersion": str(version),
                                                            "annotations": annotations}}


class Remove(Case):
    def remove(self, nodes, refused=()):
        left = list(refused)

        def scenario(request, connection):
            if request.kind == "watch_list":
                connection.start_stream()
                # All in one piece, so that the patches begin while it is being read.
                connection.chunk(b"".join(event("ADDED", n) for n in nodes) + bookmark(9, end=True))
                connection.stay()
            elif left:
                connection.status(left.pop(0), "X", headers=["Retry-After: 1"])
            else:
                connection.answer(body=nodes[0])
        self.serve(scenario)
        done = subprocess.run([AGENT, "remove-annotations", f"--kubeconfig={self.kubeconfig()}"], timeout=WAIT, text=True,
                              capture_output=True, check=False)
        return done, [(r.path, json.loads(r.body)) for r in self.server.requests if r.method == "PATCH"]

    def test_our_keys_go_and_those_of_others_stay(self):
        done, patches = self.remove([
            node("a", 1, {"x.default.pernode.io/c": "{}", "pernode.io/agent": "{}", "other.example/y": "1"}),
            node("b", 2, {"other.example/y": "1"}), node("c", 3, {"pernode.io/agent": "{}"})])
        self.assertEqual(done.returncode, 0, done.stderr)
        gone = {path: set(patch["metadata"]["annotations"].items()) for path, patch in patches}
        self.assertEqual(gone, {"/api/v1/nodes/a": {("x.default.pernode.io/c", None), ("pernode.io/agent", None)},
                                "/api/v1/nodes/c": {("pernode.io/agent", None)}})
        self.assertIn("removed 3 annotations of 2 Nodes (3 Nodes seen, 0 failed)", done.stdout)

    def test_nothing_to_remove_is_done_at_once(self):
        done, patches = self.remove([])
        self.assertEqual((done.returncode, patches), (0, []), done.stderr)

    def test_a_refusal_is_tried_again(self):
        done, patches = self.remove([node("a", 1, {"pernode.io/agent": "{}"})], refused=[429])
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(len(patches), 2)
