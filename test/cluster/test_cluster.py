# SPDX-License-Identifier: Apache-2.0
"""The cluster does what a real one does: pods on every node, OOM kills, resizes, webhooks."""

import base64
import json
import tempfile
import unittest
from pathlib import Path

from lab import LabError, build, images, workload
from lab.controlplane import PART_NAMES
from lab.pki import Pki
from support import FLEET, OnCluster, container_status


class Up(OnCluster):
    def test_all_parts_run_and_all_nodes_are_ready(self):
        status = self.cluster.status()
        self.assertEqual(status["parts"], dict.fromkeys(PART_NAMES, "running"))
        self.assertEqual([(node["name"], node["ready"], node["state"]) for node in status["nodes"]],
                         [(spec.name, True, "running") for spec in FLEET])

    def test_up_again_changes_nothing(self):
        before = [node._node.recall() for node in map(self.cluster.node, "abc")]
        parts = [self.cluster.control_plane.recall(name) for name in PART_NAMES]
        self.cluster.up(FLEET)
        self.assertEqual([node._node.recall() for node in map(self.cluster.node, "abc")], before)
        self.assertEqual([self.cluster.control_plane.recall(name) for name in PART_NAMES], parts)

    def test_programs_tell_their_real_versions(self):
        version = json.loads(self.cluster.kubectl("version", "-o", "json"))
        self.assertEqual(version["serverVersion"]["gitVersion"], version["clientVersion"]["gitVersion"])
        self.assertRegex(version["serverVersion"]["gitVersion"], r"^v1\.\d+\.\d+$")
        self.assertRegex(self.cluster.helm("version", "--short"), r"^v4\.\d+\.\d+")

    def test_nodes_differ_as_they_were_specified(self):
        nodes = {node["metadata"]["name"]: node for node in self.kube.get("nodes")["items"]}
        labels = nodes["node-a"]["metadata"]["labels"]
        self.assertEqual((labels["topology.kubernetes.io/zone"], labels["pool"]), ("one", "big"))
        self.assertEqual(nodes["node-b"]["status"]["allocatable"]["cpu"], "900m")
        self.assertEqual(nodes["node-c"]["status"]["allocatable"]["pods"], "40")
        self.assertEqual(nodes["node-c"]["spec"]["taints"][0]["key"], "spare")
        self.assertLess(int(nodes["node-b"]["status"]["capacity"]["memory"].removesuffix("Ki")),
                        int(nodes["node-a"]["status"]["capacity"]["memory"].removesuffix("Ki")))
        self.assertIn("kubepods", self.cluster.node("b").capture(["ls", "/sys/fs/cgroup/lab"]))
        config = self.cluster.node("c").capture(["cat", "/run/lab/etc/containerd.toml"])
        self.assertIn('default_runtime_name = "crun"', config)
        machines = {node["status"]["nodeInfo"]["machineID"] for node in nodes.values()}
        self.assertEqual(len(machines), 3, machines)

    def test_commands_in_a_node_carry_output_and_failure(self):
        node = self.cluster.node("a")
        self.assertEqual(node.capture(["hostname"]).strip(), "node-a")
        with self.assertRaisesRegex(LabError, "exit 3: gone wrong"):
            node.capture(["sh", "-c", "echo gone wrong >&2; exit 3"])
        with self.assertRaisesRegex(LabError, "no-such-program: No such file"):
            node.capture(["no-such-program"])

    def test_a_node_cannot_write_the_host(self):
        node = self.cluster.node("a")
        with self.assertRaisesRegex(LabError, "Read-only file system"):
            node.capture(["touch", "/usr/written-by-a-node"])
        # Wherever this checkout lies: what a node writes there, if it can, is its own and not the host's.
        written = Path(__file__).with_name("written-by-a-node")
        try:
            node.capture(["touch", str(written)])
        except LabError:
            pass
        self.assertFalse(written.exists())

    def test_the_network_has_no_way_out(self):
        routes = self.cluster.exec("ip", "route").stdout
        self.assertNotIn("default", routes)


class Pods(OnCluster):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.start_load()

    def test_one_runs_on_each_node_and_is_reached_from_outside_the_nodes(self):
        for name in "abc":
            self.assertEqual(workload.look(self.cluster, self.pod_on(name))["instruction"], "memory=2Mi")

    def test_kubectl_exec_and_logs_reach_containers(self):
        name = self.pod_on("a")["metadata"]["name"]
        # A second one in the same container finds the port taken, and says so.
        done = self.kube.run("exec", "-n", self.namespace, name, "--", "/workload", check=False)
        self.assertIn("port 8080: Address already in use", done.stderr)
        self.assertNotEqual(done.returncode, 0)
        self.assertEqual(self.kube.run("logs", "-n", self.namespace, name).stdout, "")

    def test_a_wrong_instruction_is_refused_and_the_old_one_stands(self):
        pod = self.pod_on("a")
        before = workload.look(self.cluster, pod)["instruction"]
        with self.assertRaisesRegex(LabError, "cpu=fast: expected CPU"):
            workload.instruct(self.cluster, pod, "cpu=fast")
        self.assertEqual(workload.look(self.cluster, pod)["instruction"], before)

    def test_an_instructed_one_is_oom_killed_and_only_that_one(self):
        def killed():
            last = container_status(self.pod_on(victim))["lastState"].get("terminated")
            return last and last["reason"] == "OOMKilled"

        for victim in "bc":                  # runc, crun
            before = {name: container_status(self.pod_on(name))["restartCount"] for name in "abc"}
            workload.instruct(self.cluster, self.pod_on(victim), "memory=64Mi")
            self.wait(killed, f"the pod on {victim} was OOM-killed")
            for name in set("abc") - {victim}:
                self.assertEqual(container_status(self.pod_on(name))["restartCount"], before[name])
            self.cluster.wait_daemonset("load", self.namespace)

    def test_a_resize_in_place_reaches_the_cgroup_without_a_restart(self):
        pod = self.pod_on("c")
        name, uid = pod["metadata"]["name"], pod["metadata"]["uid"]
        restarts = container_status(pod)["restartCount"]
        patch = {"spec": {"containers": [{"name": "main", "resources": {
            "requests": {"cpu": "70m", "memory": "24Mi"}, "limits": {"cpu": "250m", "memory": "48Mi"}}}]}}
        self.kube.run("patch", "pod", name, "-n", self.namespace, "--subresource=resize",
                      "--type=strategic", "-p", json.dumps(patch))
        container = container_status(pod)["containerID"].rpartition("/")[2]
        directory = f"/sys/fs/cgroup/kubepods/burstable/pod{uid}/{container}"

        def resized():
            seen = self.cluster.node("c").capture(
                ["cat", f"{directory}/memory.max", f"{directory}/cpu.max"]).split()
            return seen[:2] == [str(48 << 20), "25000"]

        self.wait(resized, "the cgroup has the new limits")
        self.assertEqual(container_status(self.pod_on("c"))["restartCount"], restarts)

    def test_children_and_cpu_follow_instructions(self):
        pod = self.pod_on("a")
        workload.instruct(self.cluster, pod, "cpu=300m children=2 child-cpu=20m")
        self.wait(lambda: workload.look(self.cluster, pod)["children"] == 2, "two children run")
        path = f"/sys/fs/cgroup/kubepods/burstable/pod{pod['metadata']['uid']}/cpu.stat"

        def used_usec():
            return int(self.cluster.node("a").capture(["cat", path]).split()[1])

        before = used_usec()
        self.wait(lambda: used_usec() - before > 300_000, "the node counts its CPU")
        workload.instruct(self.cluster, pod, "memory=2Mi")


class Images(OnCluster):
    def test_a_loaded_image_runs_on_every_node(self):
        with tempfile.TemporaryDirectory() as scratch:
            archive = Path(scratch, "extra.tar")
            images.build_image(archive, "localhost/extra:7",
                               {"/testpod": build.binary("testpod")}, entrypoint=["/testpod"],
                               user="65532:65532")
            self.assertEqual(self.cluster.load_image(archive), ["localhost/extra:7"])
        for name in "abc":
            self.assertIn("localhost/extra:7", self.cluster.node(name).capture(
                ["ctr", "-n", "k8s.io", "images", "ls", "-q"]))


def testpod_image(cluster) -> str:
    """Loads the image of the tests' own pods; its name."""
    with tempfile.TemporaryDirectory() as scratch:
        archive = Path(scratch, "testpod.tar")
        images.build_image(archive, "localhost/testpod:1", {"/testpod": build.binary("testpod")},
                           entrypoint=["/testpod"], user="65532:65532")
        return cluster.load_image(archive)[0]


class ApiFromPods(OnCluster):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.image = testpod_image(cls.cluster)

    def _pod(self, name, verb, **spec):
        return {"apiVersion": "v1", "kind": "Pod",
                "metadata": {"name": name, "namespace": self.namespace, "labels": {"app": name}},
                "spec": {"terminationGracePeriodSeconds": 1, "containers": [{
                    "name": "main", "image": self.image, "imagePullPolicy": "Never", "args": [verb],
                    **spec.pop("container", {})}], **spec}}

    def test_a_pod_talks_to_the_api_server_with_its_own_token(self):
        self.kube.apply(self._pod("whoami", "whoami"))

        def answer():
            return self.kube.run("logs", "-n", self.namespace, "whoami").stdout.partition("{")

        status, _, text = self.wait(lambda: answer() if answer()[2] else None, "whoami has answered")
        self.assertIn("201", status)
        user = json.loads("{" + text)["status"]["userInfo"]
        self.assertEqual(user["username"], f"system:serviceaccount:{self.namespace}:default")
        node = self.kube.get("pod", "whoami", namespace=self.namespace)["spec"]["nodeName"]
        self.assertEqual(user["extra"]["authentication.kubernetes.io/node-name"], [node])

    def test_the_api_server_calls_a_webhook_that_a_pod_serves(self):
        service = f"webhook.{self.namespace}.svc"
        with tempfile.TemporaryDirectory() as scratch:
            pki = Pki(Path(scratch))
            pki.create()
            certificate, key = pki.leaf("tls", f"/CN={service}", f"DNS:{service}")
            tls = {name: base64.b64encode(path.read_bytes()).decode()
                   for name, path in (("tls.crt", certificate), ("tls.key", key))}
            bundle = base64.b64encode(pki.ca.read_bytes()).decode()
        self.kube.apply([
            {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "tls", "namespace": self.namespace},
             "data": tls},
            {"apiVersion": "v1", "kind": "Service",
             "metadata": {"name": "webhook", "namespace": self.namespace},
             "spec": {"selector": {"app": "webhook"}, "ports": [{"port": 443, "targetPort": 8443}]}},
            self._pod("webhook", "webhook",
                      container={"volumeMounts": [{"name": "tls", "mountPath": "/tls"}],
                                 "readinessProbe": {"tcpSocket": {"port": 8443}, "periodSeconds": 1}},
                      volumes=[{"name": "tls", "secret": {"secretName": "tls"}}])])
        self.wait(lambda: self.kube.get("endpoints", "webhook", namespace=self.namespace)["subsets"],
                  "the webhook's pod is Ready")
        self.kube.apply({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
            "metadata": {"name": "stamp"},
            "webhooks": [{"name": "stamp.example.com", "sideEffects": "None", "timeoutSeconds": 10,
                          "admissionReviewVersions": ["v1"], "failurePolicy": "Fail",
                          "namespaceSelector": {"matchLabels": {
                              "kubernetes.io/metadata.name": self.namespace}},
                          "clientConfig": {"caBundle": bundle, "service": {
                              "name": "webhook", "namespace": self.namespace, "path": "/mutate"}},
                          "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"],
                                     "operations": ["CREATE"]}]}]})
        self.addCleanup(self.kube.run, "delete", "mutatingwebhookconfiguration", "stamp")

        def stamped():
            self.kube.run("delete", "configmap", "x", "-n", self.namespace, "--ignore-not-found")
            self.kube.run("create", "configmap", "x", "-n", self.namespace)
            made = self.kube.get("configmap", "x", namespace=self.namespace)
            return made["metadata"].get("labels", {}).get("stamped") == "yes"

        self.wait(stamped, "a created object is stamped by the webhook")

    def test_an_unprivileged_pod_reads_the_nodes_cgroups_and_writes_its_state(self):
        script = ("cat /sys/fs/cgroup/cgroup.controllers; cat /sys/fs/cgroup/kubepods/memory.current; "
                  "id -u; touch /var/lib/pernode/ok && echo wrote; touch /sys/fs/cgroup/no || echo refused; "
                  "exec sleep 1000")
        busybox = {"image": "localhost/busybox:1", "imagePullPolicy": "Never"}
        mounts = [{"name": "state", "mountPath": "/var/lib/pernode"}]
        self.kube.apply({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "reader", "namespace": self.namespace},
            "spec": {
                "nodeName": "node-a", "terminationGracePeriodSeconds": 1,
                "securityContext": {"runAsUser": 65532, "runAsGroup": 65532,
                                    "seccompProfile": {"type": "RuntimeDefault"}},
                "initContainers": [{**busybox, "name": "own", "volumeMounts": mounts,
                                    "securityContext": {"runAsUser": 0},
                                    "command": ["/busybox", "sh", "-c", "/busybox chgrp 65532 /var/lib/pernode && "
                                                "/busybox chmod 2770 /var/lib/pernode"]}],
                "containers": [{**busybox, "name": "main", "command": ["/busybox", "sh", "-c", script],
                                "env": [{"name": "PATH", "value": "/bin"}],
                                "volumeMounts": [*mounts, {"name": "cgroup", "mountPath": "/sys/fs/cgroup",
                                                           "readOnly": True}],
                                "securityContext": {"allowPrivilegeEscalation": False,
                                                    "readOnlyRootFilesystem": True,
                                                    "capabilities": {"drop": ["ALL"]}}}],
                "volumes": [{"name": "cgroup", "hostPath": {"path": "/sys/fs/cgroup", "type": "Directory"}},
                            {"name": "state", "hostPath": {"path": "/var/lib/pernode",
                                                           "type": "DirectoryOrCreate"}}]}})

        def said():
            lines = self.kube.run("logs", "-n", self.namespace, "reader").stdout.split("\n")
            return lines if "refused" in lines else None

        lines = self.wait(said, "the reader has said what it saw")
        self.assertIn("memory", lines[0].split())
        self.assertTrue(lines[1].isdigit())
        self.assertEqual(lines[2], "65532")
        self.assertIn("wrote", lines)
        self.assertIn("ok", self.cluster.node("a").capture(["ls", "/var/lib/pernode"]))


if __name__ == "__main__":
    unittest.main()
