# SPDX-License-Identifier: Apache-2.0
"""One cluster by its name: the whole of what a test or the command can do with it.

    cluster = Cluster("my-test")
    cluster.up()
    cluster.kubectl("get", "nodes")
    cluster.node("a").kill()
    cluster.wait(lambda: not cluster.ready("a"), "node a is not Ready")
    cluster.down()
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any, Callable

from lib import uml

from . import builtin, images, nodespec, preflight, process, report, wait
from .build import binary, cache_root
from .controlplane import PART_NAMES, ControlPlane
from .errors import Hopeless, LabError, with_log
from .kube import Kube
from .network import Network
from .node import Node
from .nodespec import NodeSpec

READY_SECONDS = 300
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,30}[a-z0-9])?")
NODE_LOGS = ("console", "containerd", "kubelet")


class Cluster:
    """A cluster. Making this object does nothing yet; everything lies in its directory."""

    def __init__(self, name: str = "default") -> None:
        if not _NAME.fullmatch(name):
            raise LabError(f"--name={name}: lower-case letters, digits and '-', at most 32")
        self.name = name
        self.directory = cache_root() / "clusters" / name
        self._images = self.directory / "images"
        self.network = Network(self.directory / "run", self.directory / "log" / "network.log")
        self.control_plane = ControlPlane(self.directory, self.network)
        self.kube = Kube(self.control_plane, self.mark_environment)

    # --- state -----------------------------------------------------------------------------

    @property
    def _state_file(self) -> Path:
        return self.directory / "cluster.json"

    def _load(self) -> dict:
        try:
            return json.loads(self._state_file.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            raise LabError(f"{self._state_file}: {error}; remove the cluster: "
                           f"test/cluster/cluster --name={self.name} down") from error

    def _save(self, state: dict) -> None:
        self.directory.mkdir(parents=True, exist_ok=True)
        part = self._state_file.with_suffix(".part")
        part.write_text(json.dumps(state, indent=1), encoding="utf-8")
        os.replace(part, self._state_file)

    def exists(self) -> bool:
        """Whether there is such a cluster, up or crashed."""
        return self._state_file.exists()

    def mark_environment(self) -> dict[str, str]:
        """The mark by which processes of this cluster are known."""
        return {process.MARK_VARIABLE: self._load().get("id", "none")}

    @contextlib.contextmanager
    def _lock(self):
        """One change at a time, also from several programs."""
        self.directory.mkdir(parents=True, exist_ok=True)
        with open(self.directory / "lock", "w", encoding="ascii") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                report.say(f"cluster {self.name}: another command is changing it, waiting …")
                fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def nodes(self) -> list[Node]:
        """The cluster's nodes, in order."""
        return [self._node(entry) for entry in self._load().get("nodes", [])]

    def _node(self, entry: dict) -> Node:
        spec = NodeSpec(**entry["spec"])
        return Node(spec, entry["index"], self.directory / "nodes" / spec.name, self._images,
                    self.network, self.control_plane.pki)

    def node(self, name: str) -> "NodeHandle":
        """A node by its name, a or node-a."""
        for node in self.nodes():
            if name in (node.spec.name, node.kube_name):
                return NodeHandle(self, node)
        known = ", ".join(node.spec.name for node in self.nodes()) or "none"
        raise LabError(f"node {name}: no such node in cluster {self.name} (there are: {known})")

    # --- up and down -----------------------------------------------------------------------

    def up(self, nodes: int | list[NodeSpec] = 3, **defaults) -> None:
        """Brings the cluster up, or what is missing of it; returns when all nodes are Ready.

        nodes is a number of equal ones (defaults: memory_bytes=…, runtime=…) or their specs.
        Nodes that the cluster already has stay as they are; new names are added.
        """
        fleet = nodespec.default_fleet(nodes, **defaults) if isinstance(nodes, int) else nodes
        binary("kubelet")
        preflight.check(fleet, cache_root())
        with self._lock():
            self._clean_after_crash()
            env = self._merge_nodes(fleet)
            self.network.up(env)
            builtin.prepare(self._images)
            wanted = self.nodes()
            uml.choose_ram_dir(sum(node.spec.memory_bytes for node in wanted
                                   if node.state() == "gone"))
            self.control_plane.up(env)
            for node in wanted:
                node.boot(env)
            self._wait_nodes_ready(wanted)

    def _merge_nodes(self, fleet: list[NodeSpec]) -> dict[str, str]:
        state = self._load() or {"id": os.urandom(16).hex(), "nodes": []}
        known = {entry["spec"]["name"] for entry in state["nodes"]}
        for spec in fleet:
            if spec.name not in known:
                used = {entry["index"] for entry in state["nodes"]}
                index = next(i for i in range(1, 250) if i not in used)
                state["nodes"].append({"index": index, "spec": spec.to_dict()})
                known.add(spec.name)
        self._save(state)
        return {**os.environ, **self.mark_environment()}

    def _clean_after_crash(self) -> None:
        """A cluster whose namespace is gone is only leftovers: they are ended, disks stay."""
        if self.exists() and not self.network.holder():
            if self._leftovers():
                report.say(f"cluster {self.name}: cleaning up after a crash")
            self._end_processes()

    def _leftovers(self) -> list[process.Process]:
        mark = self._load().get("id")
        return process.marked(mark) if mark else []

    def _end_processes(self) -> None:
        for node in self.nodes():
            node.kill()
        self.control_plane.down()
        self.network.down()
        for leftover in self._leftovers():
            leftover.end(0)

    def _wait_nodes_ready(self, nodes: list[Node]) -> None:
        said = ""

        def all_ready() -> bool:
            nonlocal said
            for node in nodes:
                node.check_running()
            seen = {item["metadata"]["name"]: item for item in self.kube.get("nodes")["items"]}
            missing = [node.spec.name for node in nodes
                       if node.kube_name not in seen or not node.is_ready(seen[node.kube_name])]
            line = f"nodes: {len(nodes) - len(missing)} of {len(nodes)} Ready" + \
                   (f", waiting for {', '.join(missing)}" if missing else "")
            if line != said:
                report.say(line)
                said = line
            return not missing

        began = time.monotonic()
        try:
            wait.until(all_ready, "all nodes are Ready", READY_SECONDS, poll_seconds=0.5)
        except LabError as error:
            raise self._node_failure(nodes, error) from error
        report.say(f"cluster {self.name}: up ({time.monotonic() - began:.1f} s for the nodes)")

    def _node_failure(self, nodes: list[Node], error: LabError) -> LabError:
        if isinstance(error, Hopeless):
            return error
        for node in nodes:
            if not self.ready(node.spec.name):
                name = "kubelet" if node.log("kubelet").exists() else "console"
                return with_log(f"{error}\nnode {node.spec.name}: the log of its {name} may say why",
                                node.log(name))
        return error

    def down(self) -> None:
        """Ends everything and removes the cluster's directory. Fine when there is none."""
        if not self.directory.exists():
            return
        with self._lock():
            self._end_processes()
            shutil.rmtree(self.directory)

    # --- looking ---------------------------------------------------------------------------

    def ready(self, name: str) -> bool:
        """Whether the API shows the node Ready."""
        return wait.is_ready(self.kube.get("node", self.node(name).kube_name))

    def status(self) -> dict[str, Any]:
        """What runs and what does not, as data."""
        up = bool(self.network.holder())
        healthy = up and self.control_plane.healthy("apiserver")
        seen = {}
        if healthy:
            with contextlib.suppress(LabError):
                seen = {item["metadata"]["name"]: item for item in self.kube.get("nodes")["items"]}
        nodes = []
        for node in self.nodes():
            item = seen.get(node.kube_name)
            nodes.append({"name": node.spec.name, "kubeName": node.kube_name, "ip": node.ip,
                          "state": node.state(), "ready": bool(item and wait.is_ready(item)),
                          "memory_bytes": node.spec.memory_bytes,
                          "partitioned": up and self.network.partitioned(node.index)})
        return {"name": self.name, "up": up, "healthy": healthy,
                "directory": str(self.directory),
                "kubeconfig": str(self.control_plane.admin_kubeconfig),
                "parts": {name: self.control_plane.state(name) for name in PART_NAMES},
                "nodes": nodes}

    def log_path(self, part: str) -> Path:
        """The log of a part: etcd, apiserver, …, or NODE, NODE/kubelet, NODE/containerd."""
        if part in PART_NAMES or part == "network":
            return self.control_plane.log(part)
        name, _, which = part.partition("/")
        which = which or "console"
        if which not in NODE_LOGS:
            raise LabError(f"logs {part}: a node has {', '.join(NODE_LOGS)}")
        return self.node(name).log(which)

    # --- using -----------------------------------------------------------------------------

    def kubectl(self, *arguments: str, **options) -> str:
        """Runs kubectl; what it printed."""
        return self.kube.run(*arguments, **options).stdout

    def helm(self, *arguments: str, **options) -> str:
        """Runs helm; what it printed."""
        options.setdefault("timeout_seconds", 300)
        return self.kube.run(*arguments, program="helm", **options).stdout

    def exec(self, *argv: str, timeout_seconds: float = 60, check: bool = True,
             **options) -> subprocess.CompletedProcess:
        """Runs a command of this machine in the cluster's namespace, such as curl to a pod."""
        command = [*self.network.prefix(), *argv]
        done = subprocess.run(command, env=self.kube.environment(), text=True, check=False,
                              capture_output=True, timeout=timeout_seconds, **options)
        if check and done.returncode != 0:
            raise LabError(f"{' '.join(argv)}: exit {done.returncode}: {done.stderr.strip()}")
        return done

    def load_image(self, archive: Path | str) -> list[str]:
        """Loads an image archive into every node, now and at their next boot; returns its tags."""
        archive = Path(archive)
        tags = images.archive_tags(archive)
        with self._lock():
            stored = builtin.store(archive, tags, self._images)
            for node in self.nodes():
                if node.state() == "running":
                    node.import_image(stored)
        return tags

    def wait(self, condition: Callable[[], Any], what: str, timeout_seconds: float = 60,
             namespace: str | None = None, target: tuple[str, ...] = ("nodes",)) -> Any:
        """Waits for a condition; when it does not come, the error shows pods, events and logs."""
        return wait.until(condition, what, timeout_seconds,
                          lambda: wait.diagnosis(self.kube, namespace, list(target)))

    def wait_daemonset(self, name: str, namespace: str = "default",
                       timeout_seconds: float = 120) -> dict:
        """Waits until a DaemonSet is rolled out: one Ready pod of the newest template per node."""
        def rolled_out() -> dict | None:
            daemonset = self.kube.get("daemonset", name, namespace=namespace)
            status = daemonset["status"]
            wanted = status["desiredNumberScheduled"]
            done = status.get("observedGeneration") == daemonset["metadata"]["generation"] and \
                wanted > 0 and status.get("updatedNumberScheduled", 0) == wanted and \
                status.get("numberReady", 0) == wanted
            return daemonset if done else None

        return self.wait(rolled_out, f"DaemonSet {namespace}/{name} runs on every node",
                         timeout_seconds, namespace, ("daemonset", name, "-n", namespace))

    # --- faults of the control plane ----------------------------------------------------------

    def part(self, name: str, verb: str) -> None:
        """kill, hang, resume, start or restart a part of the control plane."""
        with self._lock():
            if verb in ("start", "restart"):
                getattr(self.control_plane, verb)(name, {**os.environ, **self.mark_environment()})
            elif verb in ("kill", "hang", "resume"):
                getattr(self.control_plane, verb)(name)
            else:
                raise LabError(f"{name} {verb}: one of kill, hang, resume, start, restart")


from .faults import NodeHandle  # noqa: E402  (a handle belongs to a cluster and the other way)
