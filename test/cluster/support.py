# SPDX-License-Identifier: Apache-2.0
"""What the tests on a running cluster share: one cluster for all of them, namespaces that go."""

from __future__ import annotations

import atexit
import hashlib
import os
import unittest
from pathlib import Path

from lab import Cluster, NodeSpec, build, report, workload

# Different nodes, so that the options are tested by everything else that runs on them.
FLEET = [
    NodeSpec("a", labels={"topology.kubernetes.io/zone": "one", "pool": "big"}),
    NodeSpec("b", memory_bytes=640 << 20, cgroup_root="/lab",
             reserved={"cpu": "100m", "memory": "64Mi"}),
    NodeSpec("c", taints=[{"key": "spare", "value": "yes", "effect": "PreferNoSchedule"}],
             max_pods=40, runtime="crun"),
]
LIMITS = {"cpu": "500m", "memory": "32Mi"}

_shared: Cluster | None = None


def cluster_name(purpose: str) -> str:
    """A name of this checkout's own, the same each time: a run that died is cleaned by the next."""
    digest = hashlib.sha256(str(Path(__file__).resolve()).encode()).hexdigest()[:6]
    return f"{purpose}-{digest}"


def new_cluster(purpose: str) -> Cluster:
    """A cluster that is not up, and ends with the test program at the latest."""
    report.quiet = "PERNODE_TEST_VERBOSE" not in os.environ
    build.build()
    cluster = Cluster(cluster_name(purpose))
    cluster.down()
    atexit.register(cluster.down)
    return cluster


def shared_cluster() -> Cluster:
    """The cluster that all test files use; brought up when first asked for."""
    global _shared
    if _shared is None:
        cluster = new_cluster("tests")
        cluster.up(FLEET)
        _shared = cluster
    return _shared


class OnCluster(unittest.TestCase):
    """Tests in a namespace of the class's own, on the shared cluster."""

    @classmethod
    def setUpClass(cls):
        cls.cluster = shared_cluster()
        cls.kube = cls.cluster.kube
        cls.namespace = cls.__name__.lower()
        cls.kube.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": cls.namespace}})
        cls.addClassCleanup(cls.kube.run, "delete", "namespace", cls.namespace, "--wait=false")
        cls.cluster.wait(lambda: cls.kube.get("serviceaccount", "default", namespace=cls.namespace),
                         "the namespace has its service account", 30)

    @classmethod
    def start_load(cls, name: str = "load", instruction: str = "memory=2Mi", **options) -> None:
        """A DaemonSet of the workload on every node."""
        options.setdefault("limits", LIMITS)
        cls.kube.apply(workload.daemonset(name, cls.namespace, instruction, **options))
        cls.cluster.wait_daemonset(name, cls.namespace)

    def pod_on(self, node: str, name: str = "load") -> dict:
        """The load's pod on a node."""
        return workload.pod_on(self.cluster, node, name, self.namespace)

    def wait(self, condition, what: str, timeout_seconds: float = 60):
        """Waits; on failure shows this namespace."""
        return self.cluster.wait(condition, what, timeout_seconds, self.namespace)


def container_status(pod: dict) -> dict:
    """The status of a pod's only container."""
    return pod["status"]["containerStatuses"][0]
