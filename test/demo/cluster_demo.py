# SPDX-License-Identifier: Apache-2.0
"""The demonstration on a real Kubernetes: three nodes, one DaemonSet, load on one node only.

One node's annotation rises, the others stay; then its container is OOM-killed, and the answer is there within a second.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "test" / "cluster"), str(ROOT / "test")]

from lab import agent, build, workload  # noqa: E402
from lab.cluster import Cluster  # noqa: E402
from lab.errors import LabError  # noqa: E402

NODES = ("a", "b", "c")
BUSY = "b"
NAME = "shipper"
QUIET_LOAD = "cpu=10m memory=12Mi"
BUSY_LOAD = "cpu=150m memory=24Mi"
LEAK = "cpu=10m memory=24Mi leak=16Mi"
LIMIT = "64Mi"
BOLD, DIM, RED, PLAIN = ("\033[1m", "\033[2m", "\033[31m", "\033[0m") if sys.stdout.isatty() else ("",) * 4


def tell(text: str) -> None:
    print(f"\n{BOLD}{text}{PLAIN}", flush=True)


class View:
    """The three nodes' annotations beside what their containers use now."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.lines = 0
        self.last: list[str] = []

    def _row(self, node: str) -> str:
        usage = "-"
        try:
            for c in json.loads(agent.ask(self.cluster, node, "/v1/containers"))["containers"]:
                if c["daemonset"] == NAME and "sample" in c:
                    cpu, memory = c["sample"].get("cpu_millicores"), c["sample"].get("memory_bytes")
                    usage = f"{'-' if cpu is None else cpu}m {'-' if memory is None else memory >> 20} MiB"
        except (LabError, OSError, KeyError, ValueError):
            pass
        value = agent.recommendation(self.cluster, node, NAME)
        if not value:
            return f"node-{node}  uses {usage:<14} needs {DIM}(learning){PLAIN}"
        target = value["target"]
        memory = int(target["memory"]) >> 20 if "memory" in target else "-"
        mark = RED if value["reason"] in ("oom", "ahead-of-oom") else ""
        return (f"node-{node}  uses {usage:<14} needs cpu {target.get('cpu', '-'):>6}  memory {memory:>3} MiB   "
                f"{mark}{value['reason']}{PLAIN}, {value['oomKills']} OOM kills, {value['samples']} samples")

    def show(self) -> None:
        rows = [self._row(node) for node in NODES]
        if sys.stdout.isatty():
            if self.lines:
                print(f"\033[{self.lines}A", end="")
            for row in rows:
                print(f"\033[2K{row}")
            self.lines = len(rows)
        elif rows != self.last:
            for row in rows:
                print(row)
        self.last = rows
        sys.stdout.flush()

    def until(self, condition, what: str, timeout_seconds: float):
        """Shows the view again and again until the condition holds."""
        deadline = time.monotonic() + timeout_seconds
        self.lines = 0
        while True:
            self.show()
            answer = condition()
            if answer:
                return answer
            if time.monotonic() > deadline:
                raise LabError(f"not within {timeout_seconds:.0f} s: {what}")
            time.sleep(1)


class Demo:
    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.view = View(cluster)

    def value(self, node: str):
        return agent.recommendation(self.cluster, node, NAME)

    def cpu(self, node: str) -> int:
        value = self.value(node)
        return agent.millicores(value["target"]["cpu"]) if value and "cpu" in value["target"] else 0

    def memory(self, node: str) -> int:
        value = self.value(node)
        return int(value["target"].get("memory", 0)) if value else 0

    def set_up(self) -> None:
        tell("A real Kubernetes: control plane and three nodes (kubelet, containerd, runc) on this machine")
        build.build()
        self.cluster.up()
        tell("pernode's agent, installed by Helm")
        agent.install(self.cluster)

    def learn(self) -> dict[str, int]:
        tell(f"A DaemonSet, {NAME}: the same template everywhere (cpu 100m, memory 32Mi, limit {LIMIT}), idle for now")
        self.cluster.kube.apply(workload.daemonset(
            NAME, instruction=QUIET_LOAD, requests={"cpu": "100m", "memory": "32Mi"}, limits={"memory": LIMIT}))
        self.cluster.wait_daemonset(NAME)
        print("Each agent needs two samples, a minute each, before it says anything:")
        self.view.until(lambda: all(self.cpu(n) and self.memory(n) for n in NODES), "a value for each node", 300)
        return {node: self.cpu(node) for node in NODES}

    def load(self, quiet: dict[str, int]) -> None:
        tell(f"Work on node-{BUSY} only: 150 millicores, 24 MiB. Its own need rises; the others stay")
        workload.instruct(self.cluster, workload.pod_on(self.cluster, BUSY, NAME), BUSY_LOAD)
        self.view.until(lambda: self.cpu(BUSY) >= 120, f"node-{BUSY} asks for at least 120m", 420)
        for node in NODES:
            if node != BUSY and self.cpu(node) >= 120:
                raise LabError(f"node-{node} has no load, and its target rose from {quiet[node]}m to {self.cpu(node)}m")

    def kill(self) -> None:
        tell(f"A leak on node-{BUSY}: its container runs into the limit of {LIMIT}")
        before = self.memory(BUSY)
        others = {node: self.memory(node) for node in NODES if node != BUSY}
        workload.instruct(self.cluster, workload.pod_on(self.cluster, BUSY, NAME), LEAK)
        self.view.until(lambda: self.value(BUSY)["reason"] in ("oom", "ahead-of-oom") and self.memory(BUSY) > before,
                        f"node-{BUSY} asks for more memory", 120)
        for node, memory in others.items():
            if self.memory(node) > memory * 1.3:
                raise LabError(f"node-{node} was not touched, and its memory target rose to {self.memory(node)}")
        print(f"node-{BUSY}: from {before >> 20} MiB to {self.memory(BUSY) >> 20} MiB, by reason of "
              f"{self.value(BUSY)['reason']}; the others were not touched.")


def look_around(name: str) -> None:
    cluster = f"test/cluster/cluster --name={name}"
    tell("It still runs. Look around:")
    print(f"""  {cluster} kubectl get nodes,pods -A
  {cluster} kubectl get node node-{BUSY} -o jsonpath='{{.metadata.annotations}}'
  {cluster} kubectl -n pernode get pods -o wide      # the agents and their addresses
  {cluster} exec -- curl -s http://ADDRESS:9870/v1/explain/default/{NAME}/main
End it:
  ./demo --down""")


def main() -> int:
    parser = argparse.ArgumentParser(prog="demo", description=__doc__)
    parser.add_argument("--check", action="store_true", help="for ./check: end the cluster afterwards")
    parser.add_argument("--down", action="store_true", help="only end the demonstration's cluster")
    options = parser.parse_args()
    cluster = Cluster("demo-check" if options.check else "demo")
    if options.down:
        cluster.down()
        return 0
    demo = Demo(cluster)
    try:
        demo.set_up()
        quiet = demo.learn()
        demo.load(quiet)
        demo.kill()
    except (LabError, OSError) as error:
        print(f"demo: {error}", file=sys.stderr)
        if options.check:
            cluster.down()
        return 1
    if options.check:
        cluster.down()
        print("3 passed, 0 failed")  # learned, followed the load, answered the OOM: each raises when it did not
    else:
        look_around(cluster.name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
