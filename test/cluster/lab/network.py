# SPDX-License-Identifier: Apache-2.0
"""One network namespace per cluster, with a bridge and taps in it and no way out.

A process of ours holds the namespace. When the cluster's last process ends, namespace, bridge and
taps are gone with it: nothing of the network can be left behind. As another user than root the
namespace lies in a user namespace in which that user is root.

    10.77.0.1/24  br0     control plane; nodes are 10.77.0.11, .12, …
    10.88.N.0/24          pods of node N
    10.79.N.1/30  mgmt-N  private line to node N, unaffected by a partition
    10.96.0.1     lo      the Service "kubernetes"
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

from . import process
from .errors import LabError, with_log

CONTROL_PLANE_IP = "10.77.0.1"
SERVICE_CIDR = "10.96.0.0/16"
SERVICE_IP = "10.96.0.1"
TUN_DEVICE = Path("/dev/net/tun")

# Connects inside the namespace and hands the connected socket out through standard input.
_CONNECT = """
import socket, sys
try:
    made = socket.create_connection((sys.argv[1], int(sys.argv[2])), float(sys.argv[3]))
except OSError as error:
    sys.exit(str(error))
socket.send_fds(socket.socket(fileno=0), [b"x"], [made.fileno()])
"""


def node_ip(index: int) -> str:
    """Address of node number index (from 1) on the cluster's bridge."""
    return f"10.77.0.{10 + index}"


def pod_subnet(index: int) -> str:
    """The pods of node number index."""
    return f"10.88.{index}.0/24"


def management_ips(index: int) -> tuple[str, str]:
    """Both ends of the private line to node number index: ours, the node's."""
    return f"10.79.{index}.1", f"10.79.{index}.2"


def cluster_tap(index: int) -> str:
    """The tap that is node number index's port on the bridge."""
    return f"tap-{index}"


def management_tap(index: int) -> str:
    """The tap that is our end of the private line to node number index."""
    return f"mgmt-{index}"


def check_tun() -> None:
    """An error that says what to do when taps cannot be made here."""
    if not TUN_DEVICE.exists():
        raise LabError(f"{TUN_DEVICE}: not there, and nodes need it for their network; load the "
                       "module (modprobe tun), or start the container with --device /dev/net/tun")
    try:
        os.close(os.open(TUN_DEVICE, os.O_RDWR))
    except OSError as error:
        raise LabError(f"{TUN_DEVICE}: {error.strerror}; let this user open it (chmod 666, or the "
                       "container's device permissions)") from error


class Network:
    """The namespace of one cluster. directory keeps who holds it."""

    def __init__(self, directory: Path, log: Path) -> None:
        self._holder_file = directory / "network.json"
        self._log = log
        self.rootless = os.geteuid() != 0

    def holder(self) -> process.Process | None:
        """The living process that holds the namespace."""
        holder = process.recall(self._holder_file)
        return holder if holder and holder.alive() else None

    def prefix(self) -> list[str]:
        """What to put before a command to run it in the namespace."""
        holder = self.holder()
        if not holder:
            raise LabError("the cluster is not up; run: test/cluster/cluster up")
        if self.rootless:
            return ["nsenter", "--target", str(holder.pid), "--user", "--net",
                    "--preserve-credentials", "--"]
        return ["nsenter", f"--net=/proc/{holder.pid}/ns/net", "--"]

    def connect(self, address: str, port: int, timeout_seconds: float) -> socket.socket:
        """A TCP connection to something in the cluster (a node, a pod), usable from here."""
        ours, theirs = socket.socketpair()
        with ours, theirs:
            done = subprocess.run([*self.prefix(), sys.executable, "-I", "-S", "-c", _CONNECT,
                                   address, str(port), str(timeout_seconds)], stdin=theirs,
                                  stderr=subprocess.PIPE, text=True, check=False)
            if done.returncode != 0:
                raise ConnectionError(f"{address}:{port}: {done.stderr.strip()}")
            descriptor = socket.recv_fds(ours, 1, 1)[1][0]
        return socket.socket(fileno=descriptor)

    def _shell(self, script: str) -> None:
        done = subprocess.run([*self.prefix(), "/bin/sh", "-euc", script], capture_output=True,
                              text=True, check=False)
        if done.returncode != 0:
            raise LabError(f"network: {done.stderr.strip() or done.stdout.strip()}\n"
                           f"(while running: {script.strip()})")

    def up(self, env: dict[str, str]) -> None:
        """Makes namespace and bridge if they are not there."""
        if self.holder():
            return
        kind = ["--user", "--map-root-user", "--net"] if self.rootless else ["--net"]
        holder = process.launch(["unshare", *kind, "--", "sleep", "infinity"], self._log, env)
        self._wait_namespace(holder)
        process.remember(holder, self._holder_file)
        self._shell(f"""
            ip link set lo up
            ip addr add {SERVICE_IP}/32 dev lo
            ip link add br0 type bridge stp_state 0 forward_delay 0
            ip addr add {CONTROL_PLANE_IP}/24 dev br0
            ip link set br0 up
            echo 1 > /proc/sys/net/ipv4/ip_forward""")

    def _wait_namespace(self, holder: process.Process) -> None:
        """Until the holder has its own namespace and has become sleep."""
        ours = os.readlink("/proc/self/ns/net")
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            try:
                if os.readlink(f"/proc/{holder.pid}/ns/net") != ours and \
                        Path(f"/proc/{holder.pid}/comm").read_text(encoding="ascii") == "sleep\n":
                    return
            except OSError:
                break
            time.sleep(0.01)
        holder.end(0)
        raise with_log("cannot make a network namespace; as root this needs CAP_SYS_ADMIN, as "
                       "another user unprivileged user namespaces "
                       "(sysctl kernel.unprivileged_userns_clone=1, user.max_user_namespaces>0)",
                       self._log)

    def add_node(self, index: int) -> None:
        """Makes the taps and routes of a node, if they are not there."""
        tap, management = cluster_tap(index), management_tap(index)
        ours, _ = management_ips(index)
        self._shell(f"""
            if ! ip link show {tap} >/dev/null 2>&1; then
                ip tuntap add dev {tap} mode tap
                ip link set {tap} master br0 up
                ip route add {pod_subnet(index)} via {node_ip(index)}
            fi
            if ! ip link show {management} >/dev/null 2>&1; then
                ip tuntap add dev {management} mode tap
                ip addr add {ours}/30 dev {management}
                ip link set {management} up
            fi""")

    def remove_node(self, index: int) -> None:
        """Removes the taps and routes of a node."""
        self._shell(f"""
            ip route del {pod_subnet(index)} 2>/dev/null || :
            ip link del {cluster_tap(index)} 2>/dev/null || :
            ip link del {management_tap(index)} 2>/dev/null || :""")

    def partition(self, index: int) -> None:
        """Takes a node off the bridge: it reaches nobody, and nobody reaches it or its pods."""
        self._shell(f"ip link set {cluster_tap(index)} nomaster")

    def heal(self, index: int) -> None:
        """Puts a node back on the bridge."""
        self._shell(f"ip link set {cluster_tap(index)} master br0 up")

    def partitioned(self, index: int) -> bool:
        """Whether the node is off the bridge."""
        shown = subprocess.run([*self.prefix(), "ip", "-o", "link", "show", cluster_tap(index)],
                               capture_output=True, text=True, check=False)
        return shown.returncode == 0 and " master br0 " not in shown.stdout

    def down(self) -> None:
        """Ends the holder; the namespace goes with its last process."""
        holder = process.recall(self._holder_file)
        if holder:
            holder.end(0)
        self._holder_file.unlink(missing_ok=True)
