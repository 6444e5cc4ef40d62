# SPDX-License-Identifier: Apache-2.0
"""Every fault that a test can cause, and that the cluster is well again afterwards."""

import re
import subprocess
import sys
import unittest
from pathlib import Path

from lab import LabError, wait, workload
from lab.faults import NodeHandle
from support import OnCluster, container_status

MARKER = "/var/lib/pernode/marker"


def run_command(cluster, *arguments):
    """The command as a person types it."""
    command = [sys.executable, Path(__file__).with_name("cluster"), f"--name={cluster.name}"]
    return subprocess.run([*command, *arguments], capture_output=True, text=True, timeout=180,
                          check=False)


class Faulty(OnCluster):
    """Each test starts on a cluster that is well."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.start_load()

    def boot_id(self, node: NodeHandle) -> str:
        return node.capture(["cat", "/proc/sys/kernel/random/boot_id"]).strip()

    def machine_ids(self) -> dict[str, str]:
        return {node["metadata"]["name"]: node["status"]["nodeInfo"]["machineID"]
                for node in self.kube.get("nodes")["items"]}

    def api_says(self, name: str, ready: bool):
        self.wait(lambda: self.cluster.ready(name) == ready,
                  f"the API shows node {name} {'Ready' if ready else 'not Ready'}", 120)


class NodeFaults(Faulty):
    def test_after_a_power_cut_a_node_has_its_disk_and_its_pod_restarts(self):
        node, pod = self.cluster.node("b"), self.pod_on("b")
        boot, restarts = self.boot_id(node), container_status(pod)["restartCount"]
        machines = self.machine_ids()
        node.capture(["sh", "-c", f"echo kept > {MARKER} && sync"])
        node.kill()
        self.assertEqual(node.state(), "gone")
        node.start()
        self.assertNotEqual(self.boot_id(node), boot)
        self.assertEqual(node.capture(["cat", MARKER]).strip(), "kept")
        self.assertEqual(self.machine_ids(), machines)

        def restarted():
            now = self.pod_on("b")
            return now["metadata"]["uid"] == pod["metadata"]["uid"] and wait.is_ready(now) and \
                container_status(now)["restartCount"] > restarts

        self.wait(restarted, "the same pod runs again, restarted")

    def test_a_wiped_node_comes_back_without_its_disk(self):
        node = self.cluster.node("c")
        node.capture(["sh", "-c", f"echo lost > {MARKER} && sync"])
        before = self.machine_ids()
        node.reboot(wipe=True)
        self.assertEqual(node.capture(["ls", "/var/lib/pernode"]).split(), [])
        after = self.machine_ids()
        self.assertEqual(len({*before.values(), after["node-c"]}), 4)
        self.assertEqual({**after, "node-c": ""}, {**before, "node-c": ""})
        self.cluster.wait_daemonset("load", self.namespace)

    def test_a_deleted_node_comes_back_as_a_new_object_with_its_labels(self):
        node = self.cluster.node("a")
        before = self.kube.get("node", "node-a")["metadata"]
        node.delete()
        gone = self.kube.run("get", "node", "node-a", check=False)
        self.assertIn("NotFound", gone.stderr)
        node.start()
        after = self.kube.get("node", "node-a")["metadata"]
        self.assertNotEqual(before["uid"], after["uid"])
        self.assertEqual(after["labels"]["pool"], before["labels"]["pool"])
        self.cluster.wait_daemonset("load", self.namespace)

    def test_a_hung_node_is_noticed_and_goes_on_where_it_was(self):
        node, pod = self.cluster.node("c"), self.pod_on("c")
        boot, restarts = self.boot_id(node), container_status(pod)["restartCount"]
        self.addCleanup(node.start)              # wakes it, if the test ends before
        node.hang()
        self.assertEqual(node.state(), "stopped")
        self.api_says("c", False)
        node.resume()
        self.api_says("c", True)
        self.assertEqual(self.boot_id(node), boot)
        self.assertEqual(container_status(self.pod_on("c"))["restartCount"], restarts)

    def test_a_partitioned_node_is_reached_by_nobody_but_takes_commands(self):
        node, pod = self.cluster.node("a"), self.pod_on("a")
        node.partition()
        self.addCleanup(node.heal)
        with self.assertRaises(OSError):
            workload.look(self.cluster, pod)
        self.assertEqual(node.capture(["hostname"]).strip(), "node-a")
        self.assertTrue(self.cluster.status()["nodes"][0]["partitioned"])
        self.api_says("a", False)
        node.heal()
        self.api_says("a", True)
        self.assertTrue(workload.look(self.cluster, pod))

    def test_a_nodes_clock_moves_both_ways_and_alone(self):
        node, other = self.cluster.node("b"), self.cluster.node("c")

        def difference():
            return int(node.capture(["date", "+%s"])) - int(other.capture(["date", "+%s"]))

        before = difference()
        self.assertLess(abs(before), 60)
        node.shift_clock(3600)
        self.assertAlmostEqual(difference(), 3600 + before, delta=60)
        node.shift_clock(-3600)
        self.assertAlmostEqual(difference(), before, delta=60)

    def test_what_cannot_be_done_says_what_can(self):
        with self.assertRaisesRegex(LabError, "no such node .*a, b, c"):
            self.cluster.node("z")
        done = run_command(self.cluster, "node", "explode", "a")
        self.assertEqual(done.returncode, 2)
        self.assertRegex(done.stderr, "explode.*kill")


class ControlPlaneFaults(Faulty):
    def _objects(self):
        return self.kube.get("daemonset", "load", namespace=self.namespace)["metadata"]["uid"]

    def test_the_api_server_is_killed_and_comes_back_with_all_it_knew(self):
        before = self._objects()
        self.cluster.part("apiserver", "kill")
        self.assertEqual(self.cluster.status()["parts"]["apiserver"], "gone")
        with self.assertRaises(LabError):
            self._objects()
        with self.assertRaisesRegex(LabError, "apiserver start"):
            self.cluster.part("apiserver", "hang")
        self.cluster.part("apiserver", "start")
        self.assertEqual(self._objects(), before)
        for name in "abc":
            self.api_says(name, True)

    def test_a_hung_api_server_answers_again_when_resumed(self):
        self.cluster.part("apiserver", "hang")
        self.assertEqual(self.cluster.status()["parts"]["apiserver"], "stopped")
        self.assertFalse(self.cluster.control_plane.healthy("apiserver"))
        self.cluster.part("apiserver", "resume")
        self.wait(lambda: self.cluster.control_plane.healthy("apiserver"), "the API server is well")

    def test_without_etcd_the_api_server_is_unwell_until_it_is_back(self):
        before = self._objects()
        self.cluster.part("etcd", "kill")
        self.wait(lambda: not self.cluster.control_plane.healthy("apiserver"), "the loss is noticed")
        self.cluster.part("etcd", "start")
        self.wait(lambda: self.cluster.control_plane.healthy("apiserver"), "the API server is well")
        self.assertEqual(self._objects(), before)

    def test_up_repairs_what_was_killed(self):
        from support import FLEET
        self.cluster.part("scheduler", "kill")
        self.cluster.node("b").kill()
        self.cluster.up(FLEET)
        status = self.cluster.status()
        self.assertEqual(set(status["parts"].values()), {"running"})
        self.assertTrue(all(node["ready"] for node in status["nodes"]))

    def test_a_busy_port_is_named(self):
        self.cluster.part("scheduler", "kill")
        self.addCleanup(self.cluster.part, "scheduler", "start")
        script = "import socket,time; s=socket.create_server(('127.0.0.1',10259)); print('on',flush=True); time.sleep(60)"
        blocker = subprocess.Popen([*self.cluster.network.prefix(), sys.executable, "-c", script],
                                   stdout=subprocess.PIPE)
        self.addCleanup(blocker.stdout.close)
        self.addCleanup(blocker.wait)
        self.addCleanup(blocker.kill)
        blocker.stdout.readline()
        with self.assertRaisesRegex(LabError, "(?s)busy .port 10259.*end of"):
            self.cluster.part("scheduler", "start")


class Verbs(Faulty):
    """The same things as a person does them."""

    def test_status_logs_shell_and_wait(self):
        self.assertEqual(run_command(self.cluster, "status", "--output=json").returncode, 0)
        self.assertIn("kubelet", run_command(self.cluster, "logs", "a/kubelet", "--tail=2000").stdout)
        self.assertTrue(run_command(self.cluster, "logs", "apiserver").stdout)
        shell = run_command(self.cluster, "shell", "b", "--", "sh", "-c", "hostname; exit 4")
        self.assertEqual((shell.stdout, shell.returncode), ("node-b\n", 4))
        done = run_command(self.cluster, "wait", "-n", self.namespace, "daemonset/load",
                           "{.status.numberReady}==3")
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_a_wait_that_fails_shows_object_pods_nodes_and_events(self):
        done = run_command(self.cluster, "wait", "--timeout=1", "-n", self.namespace,
                           "daemonset/load", "{.status.numberReady}==9")
        self.assertEqual(done.returncode, 1)
        for part in ("not within 1 s", "kind: DaemonSet", "--- pods ---", "node-a", "--- events ---"):
            self.assertIn(part, done.stderr)

    def test_exec_reaches_a_pod_and_instruct_tells_it(self):
        pod = self.pod_on("a")
        address = pod["status"]["podIP"]
        self.assertEqual(run_command(self.cluster, "exec", "--", "ip", "route", "get", address).returncode, 0)
        told = run_command(self.cluster, "instruct", "-n", self.namespace, pod["metadata"]["name"],
                           "memory=3Mi")
        self.assertTrue(re.search("memory=3Mi", told.stdout), told.stderr)


if __name__ == "__main__":
    unittest.main()
