# SPDX-License-Identifier: Apache-2.0
"""What can be done to a node of a running cluster."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from .errors import LabError
from .node import Node

if TYPE_CHECKING:
    from .cluster import Cluster


class NodeHandle:
    """One node, with every fault as a method. Each returns when the fault is in force."""

    def __init__(self, cluster: "Cluster", node: Node) -> None:
        self._cluster, self._node = cluster, node
        self.name, self.kube_name, self.ip = node.spec.name, node.kube_name, node.ip
        self.log = node.log
        self.state = node.state
        self.capture = node.capture
        self.call = node.call

    def kill(self, wipe: bool = False) -> None:
        """Power cut. The disk stays as it was at that moment, unless wiped."""
        with self._cluster._lock():
            self._node.kill()
            if wipe:
                self._node.wipe()

    def hang(self) -> None:
        """The node stands still until resume()."""
        self._node.hang()

    def resume(self) -> None:
        """Lets a hung node go on."""
        self._node.resume()

    def start(self, wait_ready: bool = True) -> None:
        """Boots the node if it is off."""
        with self._cluster._lock():
            self._node.boot({**os.environ, **self._cluster.mark_environment()})
        if wait_ready:
            self.wait_ready()

    def reboot(self, wipe: bool = False, wait_ready: bool = True) -> None:
        """An orderly reboot; with wipe it comes back as a machine newly installed."""
        with self._cluster._lock():
            self._node.power_off()
            if wipe:
                self._node.wipe()
        self.start(wait_ready)

    def delete(self, wipe: bool = False) -> None:
        """Powers the node off and deletes its Node object; start() brings it back anew."""
        with self._cluster._lock():
            self._node.power_off()
            if wipe:
                self._node.wipe()
        self._cluster.kubectl("delete", "node", self.kube_name, "--ignore-not-found")

    def partition(self) -> None:
        """Cuts the node off from everyone; commands in it still work."""
        self._cluster.network.partition(self._node.index)

    def heal(self) -> None:
        """Ends a partition."""
        self._cluster.network.heal(self._node.index)

    def shift_clock(self, seconds: float) -> None:
        """Moves the node's wall clock forwards or backwards."""
        if abs(seconds) > 10 * 365 * 86400:
            raise LabError(f"clock {seconds}: at most ten years")
        self._node.shift_clock(seconds)

    def wait_ready(self, timeout_seconds: float = 120) -> None:
        """Waits until this boot's kubelet has reported the node Ready."""
        def is_back() -> bool:
            self._node.check_running()
            return self._node.is_ready(self._cluster.kube.get("node", self.kube_name))

        self._cluster.wait(is_back, f"node {self.name} is Ready", timeout_seconds)
