# SPDX-License-Identifier: Apache-2.0
"""One node: a User Mode Linux kernel with a disk, seen and handled from the host."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

from lib import uml

from . import process
from .build import binary
from .controlplane import SERVER
from .errors import LabError, with_log
from .network import (CONTROL_PLANE_IP, Network, cluster_tap, management_ips, management_tap,
                      node_ip, pod_subnet)
from .nodespec import NodeSpec
from .pki import Pki, kubeconfig
from .remote import Remote
from .wait import is_ready

DISK_BYTES = 4 << 30                    # sparse: takes what the node writes
GUEST_INIT = Path(__file__).resolve().parents[1] / "guest" / "init.py"
MODULE_FILES = ["fs/overlayfs/overlay.ko", "drivers/net/veth.ko"]
POWEROFF_SECONDS = 30
# In the guest these are covered by its own mounts, so its interpreter cannot live there.
COVERED = ("/var/", "/run/", "/tmp/", "/dev/", "/proc/", "/sys/")


class Node:
    """A node of one cluster. directory is its own; images is what the cluster has loaded."""

    def __init__(self, spec: NodeSpec, index: int, directory: Path, images: Path,
                 network: Network, pki: Pki) -> None:
        self.spec, self.index, self.directory = spec, index, directory
        self.kube_name = f"node-{spec.name}"
        self.ip = node_ip(index)
        self.disk = directory / "disk.img"
        self._images, self._network, self._pki = images, network, pki
        self._pid_file = directory / "run.json"
        self._boot: tuple[process.Process | None, str] | None = None

    def log(self, name: str) -> Path:
        """console, containerd or kubelet."""
        return self.directory / "log" / f"{name}.log"

    def recall(self) -> process.Process | None:
        """The kernel's process, living or not."""
        return process.recall(self._pid_file)

    def state(self) -> str:
        """running, stopped (hung) or gone."""
        known = self.recall()
        return known.state() if known else "gone"

    def remote(self) -> Remote:
        """The line to the node's control server."""
        return Remote(self._network, management_ips(self.index)[1], self._token())

    def _token(self) -> str:
        return json.loads((self.directory / "node.json").read_text(encoding="utf-8"))["token"]

    def _make_disk(self) -> None:
        if self.disk.exists():
            return
        part = self.disk.with_suffix(".part")
        with open(part, "wb") as image:
            image.truncate(DISK_BYTES)
        # With a journal: a torn containerd database after a power cut would not start again.
        made = subprocess.run(["mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=1,lazy_journal_init=1",
                               "-L", self.kube_name, part], capture_output=True, text=True,
                              check=False)
        if made.returncode != 0:
            part.unlink(missing_ok=True)
            raise LabError(f"node {self.spec.name}: cannot make its disk: {made.stderr.strip()}")
        os.replace(part, self.disk)

    def _write_credentials(self) -> Path:
        """What the kubelet may know: the CA, and its own certificate. Nothing else is mounted."""
        into = self.directory / "credentials"
        into.mkdir(parents=True, exist_ok=True)
        into.chmod(0o700)
        certificate, key = self._pki.leaf(
            self.kube_name, f"/O=system:nodes/CN=system:node:{self.kube_name}")
        for source, name in ((self._pki.ca, "ca.crt"), (certificate, "kubelet.crt"),
                             (key, "kubelet.key")):
            shutil.copyfile(source, into / name)
        (into / "kubeconfig").write_text(
            kubeconfig(SERVER, *(f"/run/lab/credentials/{name}"
                                 for name in ("ca.crt", "kubelet.crt", "kubelet.key"))),
            encoding="ascii")
        return into

    def _write_config(self, modules: Path) -> None:
        spec = self.spec
        config = {
            "node_name": self.kube_name, "ip": self.ip, "gateway": CONTROL_PLANE_IP,
            "management_ip": management_ips(self.index)[1], "pod_subnet": pod_subnet(self.index),
            "token": os.urandom(16).hex(), "modules": str(modules), "module_files": MODULE_FILES,
            "cgroup_root": spec.cgroup_root, "labels": spec.labels, "taints": spec.taints,
            "reserved": spec.reserved, "max_pods": spec.max_pods, "runtime": spec.runtime,
            "host": {"log": str(self.directory / "log"), "images": str(self._images),
                     "credentials": str(self._write_credentials()),
                     "bin": str(binary("kubelet").parent)},
        }
        part = self.directory / "node.part"
        part.touch(mode=0o600)
        part.write_text(json.dumps(config, indent=1), encoding="utf-8")
        os.replace(part, self.directory / "node.json")

    def boot(self, env: dict[str, str]) -> None:
        """Starts the kernel if it does not run; returns at once. is_ready() tells when it is up."""
        if self.state() == "stopped":
            self.resume()
        if self.state() != "gone":
            return
        kernel = uml.find_kernel()
        self.log("console").parent.mkdir(parents=True, exist_ok=True)
        self._write_config(uml.find_modules(kernel))
        self._make_disk()
        self._network.add_node(self.index)
        machine = uml.Machine(
            memory_bytes=self.spec.memory_bytes, log=self.log("console"), name="kernel",
            init=[guest_python(), "-I", str(GUEST_INIT), str(self.directory)],
            disks=[self.disk], taps=[cluster_tap(self.index), management_tap(self.index)],
            directory=self.directory / "uml", prefix=self._network.prefix())
        shutil.rmtree(self.directory / "uml", ignore_errors=True)
        (self.directory / "uml").mkdir()
        environment = {**machine.environment(), **env}
        process.remember(process.launch(machine.command(kernel), self.log("console"), environment),
                         self._pid_file)

    def is_ready(self, item: dict) -> bool:
        """Whether this Node object is Ready and tells of this boot, not of an earlier one."""
        if not is_ready(item):
            return False
        kernel = self.recall()
        if self._boot is None or self._boot[0] != kernel:
            if not self.remote().reachable():
                return False
            boot_id = self.capture(["cat", "/proc/sys/kernel/random/boot_id"], 10)
            self._boot = (kernel, boot_id.strip())
        return item["status"]["nodeInfo"]["bootID"] == self._boot[1]

    def check_running(self) -> None:
        """An error with the console's end when the kernel has ended."""
        if self.state() == "gone":
            raise with_log(f"node {self.spec.name}: its kernel has ended", self.log("console"))

    def kill(self) -> None:
        """A power cut: the kernel is gone at once, the disk stays as it was."""
        known = self.recall()
        if known and known.alive():
            uml.power_cut(known.pid)
            known.wait_gone(10)

    def hang(self) -> None:
        """Everything on the node stands still; its connections stay open."""
        self._running().freeze()

    def resume(self) -> None:
        """Lets a hung node go on."""
        self._running().signal(signal.SIGCONT)

    def power_off(self) -> None:
        """An orderly end, with a clean disk; a power cut if that takes too long."""
        known = self.recall()
        if not known or not known.alive():
            return
        known.signal(signal.SIGCONT)
        try:
            self.remote().action("poweroff")
            if known.wait_gone(POWEROFF_SECONDS):
                return
        except (LabError, OSError):
            pass                        # it does not listen (yet, or any more)
        self.kill()

    def wipe(self) -> None:
        """Removes the disk of a node that is off: next time it is a new machine."""
        self.disk.unlink(missing_ok=True)

    def _running(self) -> process.Process:
        known = self.recall()
        if not known or not known.alive():
            raise LabError(f"node {self.spec.name} is off; "
                           f"boot it: test/cluster/cluster node start {self.spec.name}")
        return known

    def call(self, argv: list[str], **options) -> int:
        """Runs a command in the node; see Remote.run."""
        self._running()
        return self.remote().run(argv, **options)

    def capture(self, argv: list[str], timeout_seconds: float = 60) -> str:
        """What a command in the node prints; an error when it fails."""
        self._running()
        return self.remote().capture(argv, timeout_seconds)

    def import_image(self, archive: Path) -> None:
        """Loads an archive of the cluster's images directory into the node's containerd."""
        self._running()
        self.remote().action("import", timeout_seconds=300, archive=archive.name)

    def shift_clock(self, seconds: float) -> None:
        """Moves the node's wall clock."""
        self._running()
        self.remote().action("clock", seconds=seconds)


def guest_python() -> str:
    """A Python that the guest can run: one outside the directories that the guest covers."""
    for candidate in (sys.executable, "/usr/bin/python3"):
        path = os.path.realpath(candidate) if candidate else ""
        if os.access(path, os.X_OK) and not path.startswith(COVERED):
            return path
    raise LabError("no Python that a node can run; install the Debian package python3")
