# SPDX-License-Identifier: Apache-2.0
"""pernode's agent on a crowded node: 60 pods and more, half of them of DaemonSets, and OOM kills one after the other."""

import json
import queue
import subprocess
import threading
import time
import unittest

from lab import NodeSpec, agent, workload
from support import OnCluster, new_cluster

DAEMONSETS, OTHERS = 30, 30
LIMIT_BYTES = 32 << 20
NAMES = [f"load-{n:02}" for n in range(DAEMONSETS)]
# Run on the node: the kernel's log, with how many seconds ago each line was written.
KERNEL_LOG = """
import os
with open("/dev/kmsg", "w") as log: log.write("pernode: mark\\n")
lines, fd = [], os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK)
try:
    while True:
        try: head, _, text = os.read(fd, 8192).decode(errors="replace").partition(";")
        except BrokenPipeError: continue    # a line was forgotten while it was to be read
        lines.append((int(head.split(",")[2]) / 1e6, text.split("\\n")[0]))
except BlockingIOError: pass
mark = [t for t, text in lines if text.endswith("pernode: mark")][-1]
for t, text in lines: print(f"{mark - t:.6f} {text}")
"""


class Watch:
    """The Node's annotations as the API server tells of them, each value with when it came."""

    def __init__(self, kube, node: str):
        self.changes: queue.Queue = queue.Queue()
        self.first: dict[tuple[str, str], float] = {}   # (key, value) -> when it was first seen
        self.process = subprocess.Popen(
            kube.command("kubectl", ["get", "node", node, "--watch", "--output=jsonpath={.metadata.annotations}{\"\\n\"}"]),
            env=kube.environment(), stdout=subprocess.PIPE, text=True)
        self.thread = threading.Thread(target=self._read, daemon=True)
        self.thread.start()

    def _read(self) -> None:
        for line in self.process.stdout:
            now = time.time()
            for key, value in json.loads(line).items():
                if (key, value) not in self.first:
                    self.first[key, value] = now
                    self.changes.put((now, key, value))

    def wait(self, key: str, condition, timeout_seconds: float) -> tuple[float, dict]:
        """The first value of this key for which the condition holds, and when it came."""
        deadline = time.monotonic() + timeout_seconds
        while True:
            now, have, value = self.changes.get(timeout=max(deadline - time.monotonic(), 0.01))
            if have == key and condition(json.loads(value)):
                return now, json.loads(value)

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()
        self.thread.join()


def manifest() -> list[dict]:
    """DaemonSets, and a Deployment of the same image."""
    limits = {"memory": str(LIMIT_BYTES)}
    items = [workload.daemonset(name, instruction="memory=2Mi", limits=limits, requests={"cpu": "2m", "memory": "4Mi"})
             for name in NAMES]
    template = workload.daemonset("other", instruction="memory=2Mi", limits=limits,
                                  requests={"cpu": "2m", "memory": "4Mi"})["spec"]["template"]
    items.append({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "other"},
                  "spec": {"replicas": OTHERS - 1, "selector": {"matchLabels": {"app": "other"}}, "template": template}})
    return items


def static_pod() -> dict:
    """A pod of the node's own: its manifest lies in a directory that the kubelet looks into."""
    spec = workload.daemonset("still", instruction="memory=2Mi")["spec"]["template"]["spec"]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "still", "namespace": "default"}, "spec": spec}


class Crowd(OnCluster):
    """One story in the order of the names."""

    @classmethod
    def setUpClass(cls):
        cls.cluster = new_cluster("crowd")
        cls.cluster.up([NodeSpec("big", memory_bytes=3 << 30)])
        cls.addClassCleanup(cls.cluster.down)
        cls.kube = cls.cluster.kube
        cls.namespace = "default"
        cls.node = cls.cluster.node("big")
        cls.node.capture(["sh", "-c", f"echo '{json.dumps(static_pod())}' > /var/lib/kubelet/manifests/still.json"])
        cls.kube.apply(manifest())
        # Kills follow each other faster than the budget of an ordinary node allows.
        agent.install(cls.cluster, publish_interval="1s")

    def running(self) -> int:
        pods = self.kube.get("pods", "-A")["items"]
        return sum(pod["status"].get("phase") == "Running" and all(
            c["ready"] for c in pod["status"].get("containerStatuses", [])) for pod in pods)

    def containers(self) -> list[dict]:
        return json.loads(agent.ask(self.cluster, "big", "/v1/containers"))["containers"]

    def test_1_every_container_of_a_daemonset_is_measured_and_no_other(self):
        everything = DAEMONSETS + OTHERS + 1
        self.wait(lambda: self.running() >= everything, f"{everything} pods run", 900)
        expected = {*((name, "main") for name in NAMES), (agent.DAEMONSET, "agent")}

        def measured():
            return {(c["daemonset"], c["container"]) for c in self.containers() if c["state"] == "sampled"} == expected

        self.wait(measured, "all of them are sampled", 120)
        self.assertEqual({(c["daemonset"], c["container"]) for c in self.containers()}, expected)
        self.wait(lambda: all(agent.recommendation(self.cluster, "big", name) for name in NAMES), "all are told of", 400)
        ours = {key for key in agent.annotations(self.cluster, "big") if not key.startswith("pernode.io/")}
        self.assertEqual(len(ours), len(expected))
        self.assertTrue(agent.ask(self.cluster, "big", "/readyz?verbose"))
        self.assertEqual({r["daemonset"] for r in agent.recommendations(self.cluster, "big")}, {d for d, _ in expected})

    def test_2_the_agent_itself_stays_small(self):
        pod = agent.pod_on(self.cluster, "big")
        container = pod["status"]["containerStatuses"][0]["containerID"].rpartition("/")[2]
        found = self.node.capture(["find", "/sys/fs/cgroup/kubepods", "-type", "d", "-name", container]).strip()

        def numbers(directory: str) -> dict[str, int]:
            text = self.node.capture(["sh", "-c", f"cd {directory} && echo current $(cat memory.current) && cat memory.stat"])
            return {key: int(value) for key, value in (line.split() for line in text.splitlines())}

        for what, directory in (("container", found), ("pod, with its sandbox,", found.rpartition("/")[0])):
            have = numbers(directory)
            parts = {k: have.get(k, 0) >> 10 for k in ("anon", "file", "kernel_stack", "pagetables", "sock", "slab", "percpu")}
            print(f"note: {len(self.containers())} containers, a live watch: working set of the agent's {what} "
                  f"{(have['current'] - have['inactive_file']) / 2**20:.2f} MiB; KiB of it: {parts}", flush=True)
            self.assertLessEqual(have["current"] - have["inactive_file"], 4 << 20)

    def test_3_an_oom_kill_is_told_at_once(self):
        pods = {pod["metadata"]["labels"]["app"]: pod for pod in self.kube.get("pods", namespace="default")["items"]
                if pod["metadata"].get("labels", {}).get("app") in NAMES}
        watch = Watch(self.kube, self.cluster.node("big").kube_name)
        self.addCleanup(watch.stop)
        took, warned = [], 0
        for name in NAMES:
            key = f"{name}.default.pernode.io/main"
            workload.instruct(self.cluster, pods[name], "memory=64Mi")
            came, value = watch.wait(key, lambda v: int(v["target"]["memory"]) > LIMIT_BYTES, 60)
            # Asked each time, since the kernel's log forgets what is old.
            killed = self.wait(lambda pod=pods[name]: self.killed(pod["metadata"]["uid"]), f"{name} was killed", 30)
            if value["reason"] == "ahead-of-oom":
                warned += 1
            else:
                took.append(came - killed)
        print(f"note: {len(NAMES)} OOM kills, {warned} of them announced", flush=True)
        if took:
            took.sort()
            print(f"note: the others, from the kernel's line to the raised annotation at a watcher: median "
                  f"{took[len(took) // 2] * 1000:.0f} ms, longest {took[-1] * 1000:.0f} ms", flush=True)
        counted = {r["daemonset"]: r["oomKills"] for r in agent.recommendations(self.cluster, "big")}
        self.assertEqual({name: counted[name] for name in NAMES}, {name: 1 for name in NAMES})

    def killed(self, uid: str) -> float | None:
        """When the first process of a pod was killed, as the kernel logged it. On this machine's clock, since nodes have
        their own: between asking for the log and having it the node made its mark, most likely at the end of that."""
        lines = self.node.capture(["/usr/bin/python3", "-c", KERNEL_LOG]).splitlines()
        now = time.time()
        for line in lines:
            ago, _, text = line.partition(" ")
            if "oom-kill:" in text and uid in text:
                return now - float(ago)
        return None


if __name__ == "__main__":
    unittest.main()
