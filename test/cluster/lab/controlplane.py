# SPDX-License-Identifier: Apache-2.0
"""etcd, the API server, the controller manager and the scheduler, as processes of this machine."""

from __future__ import annotations

import signal
import time
from dataclasses import dataclass
from pathlib import Path

from . import process, report
from .build import binary
from .errors import LabError, log_tail, with_log
from .http import fetch
from .network import CONTROL_PLANE_IP, SERVICE_CIDR, SERVICE_IP, Network
from .pki import Pki, kubeconfig

SERVER = f"https://{CONTROL_PLANE_IP}:443"
ETCD_CLIENT = "http://127.0.0.1:2379"
ETCD_PEER = "http://127.0.0.1:2380"
READY_SECONDS = 180
POLL_SECONDS = 0.1


@dataclass(frozen=True)
class Part:
    """One program: its binary, where it says that it is well, how long it may take to end."""

    name: str
    binary: str
    health: str
    grace_seconds: float
    ports: str                  # for the message that one of them is busy


# In the order of starting. The API server ends before etcd: without etcd its orderly end hangs.
PARTS = (
    Part("etcd", "etcd", f"{ETCD_CLIENT}/health", 10, "ports 2379 and 2380"),
    Part("apiserver", "kube-apiserver", f"{SERVER}/readyz", 15, "port 443"),
    Part("controller-manager", "kube-controller-manager", "https://127.0.0.1:10257/healthz", 10,
         "port 10257"),
    Part("scheduler", "kube-scheduler", "https://127.0.0.1:10259/healthz", 10, "port 10259"),
)
PART_NAMES = tuple(part.name for part in PARTS)


class ControlPlane:
    """The four parts of one cluster. directory holds their state, logs and certificates."""

    def __init__(self, directory: Path, network: Network) -> None:
        self.directory = directory
        self.network = network
        self.pki = Pki(directory / "pki")
        self.admin_kubeconfig = directory / "admin.kubeconfig"

    def log(self, name: str) -> Path:
        """Where a part's output goes."""
        return self.directory / "log" / f"{name}.log"

    def _pid_file(self, name: str) -> Path:
        return self.directory / "run" / f"{name}.json"

    def recall(self, name: str) -> process.Process | None:
        """The part's process, living or not; None when it was never started."""
        return process.recall(self._pid_file(name))

    def state(self, name: str) -> str:
        """running, stopped (hung) or gone."""
        known = self.recall(name)
        return known.state() if known else "gone"

    def prepare(self) -> None:
        """Certificates and the administrator's kubeconfig."""
        self.pki.create()
        names = f"DNS:localhost,DNS:kubernetes,DNS:kubernetes.default,DNS:kubernetes.default.svc," \
                f"IP:127.0.0.1,IP:{SERVICE_IP},IP:{CONTROL_PLANE_IP}"
        self.pki.leaf("apiserver", "/CN=kube-apiserver", names)
        certificate, key = self.pki.leaf("admin", "/O=system:masters/CN=admin")
        self.admin_kubeconfig.write_text(
            kubeconfig(SERVER, str(self.pki.ca), str(certificate), str(key)), encoding="utf-8")

    def _arguments(self, name: str) -> list[str]:
        pki, admin = self.pki.directory, str(self.admin_kubeconfig)
        if name == "etcd":
            # A test cluster may lose its data in a crash of the machine, but not its time to fsync.
            return [f"--data-dir={self.directory / 'etcd'}", f"--listen-client-urls={ETCD_CLIENT}",
                    f"--advertise-client-urls={ETCD_CLIENT}", f"--listen-peer-urls={ETCD_PEER}",
                    f"--initial-advertise-peer-urls={ETCD_PEER}",
                    f"--initial-cluster=default={ETCD_PEER}", "--unsafe-no-fsync",
                    "--log-level=warn"]
        if name == "apiserver":
            return [f"--etcd-servers={ETCD_CLIENT}", "--secure-port=443", "--bind-address=0.0.0.0",
                    f"--advertise-address={CONTROL_PLANE_IP}", "--allow-privileged=true",
                    f"--client-ca-file={self.pki.ca}", f"--tls-cert-file={pki / 'apiserver.crt'}",
                    f"--tls-private-key-file={pki / 'apiserver.key'}",
                    f"--service-account-key-file={self.pki.service_account_key}",
                    f"--service-account-signing-key-file={self.pki.service_account_key}",
                    "--service-account-issuer=https://kubernetes.default.svc",
                    f"--service-cluster-ip-range={SERVICE_CIDR}",
                    "--authorization-mode=Node,RBAC",
                    "--enable-admission-plugins=NodeRestriction",
                    # No kube-proxy: webhooks are called at the pods' own addresses.
                    "--enable-aggregator-routing=true",
                    "--kubelet-preferred-address-types=InternalIP",
                    f"--kubelet-client-certificate={pki / 'admin.crt'}",
                    f"--kubelet-client-key={pki / 'admin.key'}"]
        common = [f"--kubeconfig={admin}", "--leader-elect=false", "--bind-address=127.0.0.1"]
        if name == "scheduler":
            return [*common, "--secure-port=10259"]
        return [*common, "--secure-port=10257", "--use-service-account-credentials=true",
                f"--service-account-private-key-file={self.pki.service_account_key}",
                f"--root-ca-file={self.pki.ca}",
                # A node that is gone is noticed sooner than by default (50 s).
                "--node-monitor-grace-period=20s"]

    def start(self, name: str, env: dict[str, str]) -> None:
        """Starts a part unless it runs, and waits until it says that it is well."""
        part = _part(name)
        if self.state(name) == "stopped":
            self.resume(name)
        if self.state(name) == "gone":
            argv = [*self.network.prefix(), str(binary(part.binary)), *self._arguments(name)]
            started = process.launch(argv, self.log(name), env)
            process.remember(started, self._pid_file(name))
        self._wait_ready(part)

    def healthy(self, name: str) -> bool:
        """Whether the part answers that it is well."""
        try:
            return fetch(self.network, _part(name).health)[0] == 200
        except OSError:
            return False

    def _wait_ready(self, part: Part) -> None:
        deadline = time.monotonic() + READY_SECONDS
        log = self.log(part.name)
        while not self.healthy(part.name):
            if self.state(part.name) == "gone":
                raise with_log(f"{part.name} ended while starting{_busy_hint(part, log)}", log)
            if time.monotonic() > deadline:
                raise with_log(f"{part.name} is not ready after {READY_SECONDS} s", log)
            time.sleep(POLL_SECONDS)

    def kill(self, name: str) -> None:
        """Ends a part at once, as a crash would."""
        self._running(name).end(0)

    def hang(self, name: str) -> None:
        """Stops a part: its connections stay open and nothing answers."""
        self._running(name).freeze()

    def resume(self, name: str) -> None:
        """Lets a hung part go on."""
        self._running(name).signal(signal.SIGCONT)

    def restart(self, name: str, env: dict[str, str]) -> None:
        """Ends a part in an orderly way if it runs, and starts it."""
        known = self.recall(name)
        if known:
            known.end(_part(name).grace_seconds)
        self.start(name, env)

    def _running(self, name: str) -> process.Process:
        known = self.recall(name)
        if not known or not known.alive():
            raise LabError(f"{name} is not running; start it: test/cluster/cluster {name} start")
        return known

    def up(self, env: dict[str, str]) -> None:
        """Starts what does not run, in order."""
        self.prepare()
        with report.step("control plane"):
            for part in PARTS:
                self.start(part.name, env)

    def down(self) -> None:
        """Ends the parts in reverse order."""
        for part in reversed(PARTS):
            known = self.recall(part.name)
            if known:
                known.end(part.grace_seconds)
            self._pid_file(part.name).unlink(missing_ok=True)


def _part(name: str) -> Part:
    for part in PARTS:
        if part.name == name:
            return part
    raise LabError(f"{name}: no such part; one of {', '.join(PART_NAMES)}")


def _busy_hint(part: Part, log: Path) -> str:
    """Names the busy port where that was the reason."""
    if "address already in use" not in log_tail(log, 3):
        return ""
    return f": one of its ports is busy ({part.ports} in the cluster's network namespace)"
