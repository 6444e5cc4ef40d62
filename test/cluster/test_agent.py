# SPDX-License-Identifier: Apache-2.0
"""pernode's agent on a real cluster: each node tells what its own containers need, through everything that happens."""

import json
import unittest
from datetime import datetime

from lab import LabError, agent, wait, workload
from lab.http import fetch
from support import OnCluster, new_cluster

QUIET, BUSY, LARGE = "memory=8Mi", "cpu=300m memory=8Mi", "cpu=10m memory=40Mi"
LIMITS = {"memory": "96Mi"}
REQUESTS = {"cpu": "20m", "memory": "16Mi"}
FIRST_VALUE_SECONDS = 300  # two samples, a minute each, and the kubelet's and the machine's slowness


def instant(text: str) -> float:
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


class Agent(OnCluster):
    """One story in the order of the names: each test leaves the cluster as the next one wants it."""

    @classmethod
    def setUpClass(cls):
        cls.cluster = new_cluster("agent")
        cls.cluster.up()
        cls.addClassCleanup(cls.cluster.down)
        cls.kube = cls.cluster.kube
        cls.namespace = "default"
        agent.install(cls.cluster, stale_after="45s")
        cls.start_load("shipper", QUIET, limits=LIMITS, requests=REQUESTS)
        for node, instruction in (("b", BUSY), ("c", LARGE)):
            workload.instruct(cls.cluster, workload.pod_on(cls.cluster, node, "shipper"), instruction)

    def value(self, node: str, daemonset: str = "shipper"):
        return agent.recommendation(self.cluster, node, daemonset)

    def cpu(self, node: str) -> int:
        return agent.millicores(self.value(node)["target"]["cpu"])

    def memory(self, node: str) -> int:
        return int(self.value(node)["target"]["memory"])

    def seen(self, node: str, daemonset: str = "shipper") -> dict:
        """What the agent on the node thinks now."""
        return next(r for r in agent.recommendations(self.cluster, node) if r["daemonset"] == daemonset)

    def test_01_each_node_tells_what_its_own_container_needs(self):
        def told():
            return all(self.value(n) for n in "abc") and self.cpu("b") >= 250 and self.memory("c") >= 40 << 20
        self.wait(told, "three nodes, three different values", FIRST_VALUE_SECONDS)
        self.assertLess(self.cpu("a"), self.cpu("b") / 2)
        self.assertLess(self.cpu("c"), self.cpu("b") / 2)
        self.assertLess(self.memory("a"), 24 << 20)
        self.assertLess(self.memory("b"), 24 << 20)
        who = agent.annotations(self.cluster, "a")["pernode.io/agent"]
        self.assertEqual(who["state"], "ok")
        self.assertEqual(who["nodeUID"], self.kube.get("node", "node-a")["metadata"]["uid"])

    def test_02_pods_of_others_are_ignored(self):
        self.kube.apply({"apiVersion": "apps/v1", "kind": "Deployment",
                         "metadata": {"name": "other", "namespace": self.namespace},
                         "spec": {"selector": {"matchLabels": {"app": "other"}},
                                  "template": workload.daemonset("other")["spec"]["template"]}})
        self.wait(lambda: self.kube.get("deployment", "other", namespace=self.namespace)["status"].get("readyReplicas"),
                  "the Deployment runs", 60)
        for node in "abc":
            self.assertEqual({r["daemonset"] for r in agent.recommendations(self.cluster, node)},
                             {"shipper", agent.DAEMONSET})
        self.kube.run("delete", "deployment", "other", "-n", self.namespace)

    def test_03_every_path_of_the_endpoint_answers(self):
        for path in ("/", "/metrics", "/healthz", "/readyz?verbose", "/v1/recommendations", "/v1/containers",
                     "/v1/histogram/default/shipper/main?resource=cpu", "/v1/explain/default/shipper/main",
                     "/v1/history/default/shipper/main?window=1h", "/v1/events", "/v1/config"):
            body = agent.ask(self.cluster, "b", path)
            self.assertTrue(body)
            if path.startswith("/v1/"):
                json.loads(body)
        with self.assertRaisesRegex(LabError, "404"):
            agent.ask(self.cluster, "b", "/v1/explain/default/none/main")

    def test_04_an_oom_kill_raises_its_own_node_only(self):
        before = {node: self.memory(node) for node in "abc"}
        workload.instruct(self.cluster, self.pod_on("a", "shipper"), "memory=140Mi")
        self.wait(lambda: self.memory("a") > 96 << 20, "node a asks for more than the limit that was too little", 90)
        # The kill, or the warning ahead of it where a reading came in between.
        self.assertIn(self.value("a")["reason"], ("oom", "ahead-of-oom"))
        self.assertGreaterEqual(int(self.value("a")["lowerBound"]["memory"]), 96 << 20)
        self.wait(lambda: self.seen("a")["oomKills"] >= 1, "the kill is counted", 60)
        for node in "bc":
            self.assertEqual(self.value(node)["oomKills"], 0)
            self.assertLess(self.memory(node), before[node] * 1.5)
        events = json.loads(agent.ask(self.cluster, "a", "/v1/events"))["events"]
        kill = next(e for e in events if e["kind"] == "oom")
        self.assertIn(kill["class"], ("limit", "pod"))  # the pod's limit is its only container's
        told = [e for e in events if e["kind"] == "published" and e["detail"] == "oom" and e["daemonset"] == "shipper"]
        killed = [e for e in events if e["kind"] == "oom"]
        if told:
            took = instant(told[-1]["time"]) - instant(killed[-1]["time"])
            print(f"note: {took * 1000:.0f} ms from the first OOM kill seen to its patch", flush=True)

    def test_05_a_killed_agent_goes_on_where_it_was(self):
        before = self.seen("c")["samples"]
        self.wait(lambda: self.seen("c")["samples"] > before, "another sample", 90)
        before = self.seen("c")["samples"]
        self.kube.run("delete", "pod", agent.pod_on(self.cluster, "c")["metadata"]["name"], "-n", agent.NAMESPACE)
        self.cluster.wait_daemonset(agent.DAEMONSET, agent.NAMESPACE)
        self.wait(lambda: self.seen("c")["samples"] >= before, "the new agent knows what the old one did", 60)

    def test_06_a_recreated_pod_and_a_new_revision_keep_the_history(self):
        before = self.seen("b")
        patch = {"spec": {"template": {"metadata": {"annotations": {"revision": "two"}}}}}
        self.kube.run("patch", "daemonset", "shipper", "-n", self.namespace, "--type=merge", "-p", json.dumps(patch))
        self.cluster.wait_daemonset("shipper", self.namespace)
        for node, instruction in (("b", BUSY), ("c", LARGE)):
            workload.instruct(self.cluster, self.pod_on(node, "shipper"), instruction)
        after = self.wait(lambda: (r := self.seen("b"))["pod"] != before["pod"] and r, "the new pod is measured", 60)
        self.assertGreaterEqual(after["samples"], before["samples"])

    def test_07_a_power_cut_keeps_the_history(self):
        def saved():  # a checkpoint is written every few seconds here; one sample later it has what is seen now
            return self.seen("b")["samples"] > before
        before = self.seen("b")["samples"]
        self.wait(saved, "another sample, and with it another save", 120)
        self.cluster.node("b").kill()
        self.cluster.node("b").start()
        self.wait(lambda: self.seen("b")["samples"] >= before, "node b is back and knows what it knew", 180)
        self.assertTrue(self.value("b"))

    def test_08_without_an_api_server_sampling_goes_on_and_one_patch_follows(self):
        def rounds():
            have = json.loads(agent.ask(self.cluster, "a", "/v1/containers"))["containers"]
            return max(c.get("rounds", 0) for c in have)
        before, patches = rounds(), self.patches("a")
        address = agent.pod_on(self.cluster, "a")["status"]["podIP"]
        self.cluster.part("apiserver", "kill")
        try:
            def went_on():
                have = json.loads(self.ask_at(address, "/v1/containers"))["containers"]
                return max(c.get("rounds", 0) for c in have) >= before + 5
            wait.until(went_on, "the agent samples without an API server", 60)
            self.assertIn("ready", self.ask_at(address, "/readyz?verbose"))
        finally:
            self.cluster.part("apiserver", "start")
        self.wait(lambda: self.cluster.ready("a"), "the API server is back", 60)
        self.wait(lambda: "[+]pods" in self.ask_at(address, "/readyz?verbose"), "the agent watches again", 90)
        self.assertLessEqual(self.patches("a"), patches + 3)

    def test_08b_a_kill_while_agent_and_api_server_are_away_counts_once(self):
        before = self.seen("b")
        pod, agent_pod = self.pod_on("b", "shipper"), agent.pod_on(self.cluster, "b")
        address = agent_pod["status"]["podIP"]

        def seen():
            have = json.loads(self.ask_at(address, "/v1/recommendations"))["recommendations"]
            return next(r for r in have if r["daemonset"] == "shipper")

        def started():
            return json.loads(self.ask_at(address, "/v1/config"))["startedAt"]

        def killed():
            events = self.cluster.node("b").capture(
                ["sh", "-c", f"cat $(find /sys/fs/cgroup -type d -name pod{pod['metadata']['uid']})/memory.events"])
            return "oom_kill 0" not in events

        first = started()
        self.cluster.part("apiserver", "kill")
        try:
            self.signal("STOP", agent_pod)      # it sees nothing any more
            workload.instruct(self.cluster, pod, "memory=140Mi")
            wait.until(killed, "the container was OOM-killed", 60)
            self.signal("KILL", agent_pod)
            wait.until(lambda: started() != first, "the agent was started again by its kubelet", 120)
            wait.until(lambda: seen()["oomKills"] == before["oomKills"] + 1, "it knows of the kill", 120)
            # Of what it knew, the seconds since its last save are lost.
            self.assertGreaterEqual(seen()["samples"], before["samples"] - 1)
        finally:
            self.cluster.part("apiserver", "start")
        self.wait(lambda: self.value("b")["oomKills"] == before["oomKills"] + 1 and self.memory("b") > 96 << 20,
                  "the kill is told of when the API server is back", 120)
        self.wait(lambda: self.kube.get("pod", pod["metadata"]["name"], namespace=self.namespace)
                  ["status"]["containerStatuses"][0]["restartCount"] > 0, "the pod's status tells of it, too", 60)
        self.assertEqual(self.seen("b")["oomKills"], before["oomKills"] + 1)

    def signal(self, name: str, pod: dict) -> None:
        """To all processes of a pod's container, on its node."""
        node = self.cluster.node(pod["spec"]["nodeName"])
        container = pod["status"]["containerStatuses"][0]["containerID"].rpartition("/")[2]
        node.capture(["sh", "-c", f"kill -{name} $(cat $(find /sys/fs/cgroup -type d -name {container})/cgroup.procs)"])

    def ask_at(self, address: str, path: str) -> str:
        return fetch(self.cluster.network, f"http://{address}:{agent.PORT}{path}")[1].decode()

    def patches(self, node: str) -> int:
        """Patches that the server took."""
        for line in agent.ask(self.cluster, node, "/metrics").splitlines():
            if line.startswith("pernode_agent_node_requests_total") and 'patch' in line:
                return int(float(line.split()[-1]))
        return 0

    def test_09_the_agents_token_can_do_nothing_else(self):
        pod = agent.pod_on(self.cluster, "c")["metadata"]
        token = self.kube.run("create", "token", "pernode-agent", "-n", agent.NAMESPACE, "--bound-object-kind=Pod",
                              f"--bound-object-name={pod['name']}", f"--bound-object-uid={pod['uid']}").stdout.strip()
        unbound = self.kube.run("create", "token", "pernode-agent", "-n", agent.NAMESPACE).stdout.strip()

        def patch(node, body, *more, token=token):
            return self.as_agent(token, node, body, *more)

        own = {"metadata": {"annotations": {"probe.default.pernode.io/main": "{}"}}}
        self.assertEqual(patch("node-c", own), "")
        self.kube.run("annotate", "node", "node-c", "probe.default.pernode.io/main-")
        refused = {
            "another node": ("node-a", own),
            "a foreign key": ("node-c", {"metadata": {"annotations": {"example.org/x": "1"}}}),
            "a key that looks like ours": ("node-c", {"metadata": {"annotations": {"evilpernode.io/x": "1"}}}),
            "taking a foreign key away": ("node-c", {"metadata": {"annotations": {"node.alpha.kubernetes.io/ttl": None}}}),
            "changing a foreign key": ("node-c", {"metadata": {"annotations": {"node.alpha.kubernetes.io/ttl": "9"}}}),
            "a label": ("node-c", {"metadata": {"labels": {"x": "y"}}}),
            "a taint": ("node-c", {"spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]}}),
            "cordon": ("node-c", {"spec": {"unschedulable": True}}),
            "a finalizer": ("node-c", {"metadata": {"finalizers": ["a.b/c"]}}),
        }
        for what, (node, body) in refused.items():
            with self.subTest(what):
                self.assertRegex(patch(node, body), "(?i)forbidden|denied")
        self.assertRegex(patch("node-c", {"status": {"allocatable": {"cpu": "99"}}}, "--subresource=status"), "(?i)forbidden")
        self.assertRegex(patch("node-c", own, token=unbound), "(?i)forbidden|denied")

    def as_agent(self, token: str, node: str, body: dict, *more: str) -> str:
        """What the API server complains of when the agent's token patches a node; "" when it does not."""
        config = json.loads(self.kube.run("config", "view", "--raw", "-o", "json").stdout)
        config["users"] = [{"name": "agent", "user": {"token": token}}]
        for context in config["contexts"]:
            context["context"]["user"] = "agent"
        path = self.cluster.directory / "as-agent.kubeconfig"
        path.write_text(json.dumps(config), encoding="utf-8")
        path.chmod(0o600)
        try:
            done = self.kube.run("patch", "node", node, "--type=merge", "-p", json.dumps(body), f"--kubeconfig={path}", *more)
        except LabError as error:
            return str(error)
        return "" if "patched" in done.stdout else done.stdout

    def test_09b_another_build_takes_over_with_what_was_known(self):
        before = {node: self.seen(node)["samples"] for node in "abc"}
        agent.install(self.cluster, agent.build_development_image(), tag=agent.DEVELOPMENT, stale_after="45s")
        for node in "abc":
            image = agent.pod_on(self.cluster, node)["spec"]["containers"][0]["image"]
            self.assertTrue(image.endswith(":" + agent.DEVELOPMENT), image)
            self.assertGreaterEqual(self.seen(node)["samples"], before[node])
        # What follows is done by the development build.

    def test_09c_a_machine_installed_anew_under_its_old_name_starts_afresh(self):
        before = agent.annotations(self.cluster, "a")["pernode.io/agent"]
        samples = self.seen("a")["samples"]
        self.assertGreater(samples, 5)
        self.cluster.node("a").reboot(wipe=True)
        after = self.wait(lambda: (who := agent.annotations(self.cluster, "a")["pernode.io/agent"])["machine"] !=
                          before["machine"] and who, "the agent on the new machine tells who it is", FIRST_VALUE_SECONDS)
        self.assertEqual(after["nodeUID"], before["nodeUID"])
        self.assertLess(self.seen("a")["samples"], samples)
        self.assertEqual(self.seen("a")["oomKills"], 0)

    def test_10_a_recreated_node_starts_afresh_and_is_told_of_again(self):
        node = self.cluster.node("c")
        before = self.kube.get("node", "node-c")["metadata"]["uid"]
        node.delete()
        node.start()
        uid = self.kube.get("node", "node-c")["metadata"]["uid"]
        self.assertNotEqual(uid, before)
        self.wait(lambda: agent.annotations(self.cluster, "c").get("pernode.io/agent", {}).get("nodeUID") == uid,
                  "the agent tells of the new Node", FIRST_VALUE_SECONDS)
        self.wait(lambda: self.value("c"), "and what its containers need", FIRST_VALUE_SECONDS)

    def test_11_a_deleted_daemonsets_keys_go(self):
        self.kube.run("delete", "daemonset", "shipper", "-n", self.namespace)
        self.wait(lambda: not any(self.value(node) for node in "abc"), "its annotations are gone", 240)
        for node in "abc":
            self.assertIn("pernode.io/agent", agent.annotations(self.cluster, node))

    def test_12_uninstalled_nothing_is_left_on_the_nodes(self):
        agent.uninstall(self.cluster)
        self.wait(lambda: not any(agent.annotations(self.cluster, node) for node in "abc"), "no annotation of ours is left", 60)


if __name__ == "__main__":
    unittest.main()
