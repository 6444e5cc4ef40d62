# SPDX-License-Identifier: Apache-2.0
"""Clusters side by side, interrupted ones, and what is left afterwards: nothing."""

import os
import signal
import subprocess
import sys
import unittest
from pathlib import Path

from lab import LabError, NodeSpec, process, wait
from support import new_cluster, shared_cluster

SMALL = [NodeSpec("solo", memory_bytes=512 << 20)]


def namespaces() -> set[str]:
    """The network namespaces that have a process now."""
    found = set()
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            found.add(os.readlink(f"/proc/{entry}/ns/net"))
        except OSError:
            continue
    return found


def traces_on_host(directory: Path) -> list[str]:
    """What a cluster in this directory could have left: mounts, loop devices, taps, files."""
    text = Path("/proc/mounts").read_text(encoding="utf-8")
    for command in (["losetup", "-a"], ["ip", "-o", "link"], ["ip", "netns"]):
        text += subprocess.run(command, capture_output=True, text=True, check=False).stdout
    found = [line for line in text.splitlines()
             if str(directory) in line or " tap-" in line or " mgmt-" in line]
    return found + ([str(directory)] if directory.exists() else [])


class Lifecycle(unittest.TestCase):
    def test_a_second_cluster_lives_beside_the_first_and_leaves_nothing(self):
        first = shared_cluster()
        second = new_cluster("second")
        before = namespaces()
        second.up(SMALL)
        mark = second.mark_environment()[process.MARK_VARIABLE]
        self.assertEqual([node["metadata"]["name"] for node in second.kube.get("nodes")["items"]],
                         ["node-solo"])
        self.assertEqual(len(first.kube.get("nodes")["items"]), 3)
        made = os.readlink(f"/proc/{second.network.holder().pid}/ns/net")
        self.assertNotIn(made, before)
        self.assertGreater(len(process.marked(mark)), 5)
        second.down()
        self.assertEqual(process.marked(mark), [])
        self.assertNotIn(made, namespaces())
        self.assertEqual(traces_on_host(second.directory), [])
        self.assertEqual(len(first.kube.get("nodes")["items"]), 3)
        self.assertTrue(all(node["ready"] for node in first.status()["nodes"]))

    def test_down_twice_and_down_of_nothing_are_fine(self):
        cluster = new_cluster("nothing")
        cluster.down()
        cluster.down()
        self.assertFalse(cluster.directory.exists())

    def test_an_up_killed_half_way_is_finished_or_removed_by_the_next_command(self):
        cluster = new_cluster("killed")
        command = [sys.executable, Path(__file__).with_name("cluster"), f"--name={cluster.name}", "up",
                   "--node=solo,memory=512M"]
        half = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        wait.until(lambda: cluster.control_plane.state("apiserver") == "running",
                   "the API server was started", 60, poll_seconds=0.01)
        half.send_signal(signal.SIGKILL)
        half.wait()
        mark = cluster.mark_environment()[process.MARK_VARIABLE]
        self.assertGreater(len(process.marked(mark)), 0)
        cluster.up(SMALL)
        self.assertTrue(cluster.ready("solo"))
        cluster.down()
        self.assertEqual(process.marked(mark), [])

    def test_leftovers_of_a_crash_are_cleaned_by_the_next_up(self):
        cluster = new_cluster("crashed")
        cluster.up(SMALL)
        mark = cluster.mark_environment()[process.MARK_VARIABLE]
        old = cluster.network.holder()
        # As after a crash: the namespace's holder is gone, its other processes go on without it,
        # and the records of two of them are lost.
        old.end(0)
        (cluster.directory / "run" / "etcd.json").unlink()
        (cluster.directory / "nodes" / "solo" / "run.json").unlink()
        survivors = process.marked(mark)
        self.assertTrue(survivors)
        cluster.up(SMALL)
        self.assertTrue(cluster.ready("solo"))
        self.assertFalse([survivor for survivor in survivors if survivor.alive()])
        cluster.down()
        self.assertEqual(process.marked(mark), [])
        self.assertEqual(traces_on_host(cluster.directory), [])

    def test_a_node_whose_kernel_ends_fails_the_up_with_its_console(self):
        cluster = new_cluster("broken")
        cluster.up(SMALL)
        cluster.node("solo").kill()
        disk = cluster.directory / "nodes" / "solo" / "disk.img"
        with open(disk, "r+b") as image:
            image.write(bytes(1 << 20))         # no file system any more
        with self.assertRaisesRegex(LabError, "(?s)node solo: its kernel has ended.*end of.*ubda"):
            cluster.up(SMALL)
        cluster.down()


if __name__ == "__main__":
    unittest.main()
