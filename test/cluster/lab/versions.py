# SPDX-License-Identifier: Apache-2.0
"""What a cluster is made of, pinned. go/*/go.mod pin the Go modules; the rest is here."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

CLUSTER_ROOT = Path(__file__).resolve().parents[1]
GO_ROOT = CLUSTER_ROOT / "go"

# Programs of the machine and the Debian package that brings each.
DEBIAN_PROGRAMS = {
    "containerd": "containerd",
    "ctr": "containerd",
    "runc": "runc",
    "/usr/lib/cni/ptp": "containernetworking-plugins",
    "/usr/lib/cni/host-local": "containernetworking-plugins",
    "ip": "iproute2",
    "nsenter": "util-linux",
    "unshare": "util-linux",
    "mkfs.ext4": "e2fsprogs",
    "insmod": "kmod",
    "openssl": "openssl",
    "cc": "gcc",
}


@dataclass(frozen=True)
class GoProgram:
    """One binary: the package in the Go module of folder go/<module> that it is built from."""

    name: str
    module: str
    package: str
    links: tuple[str, ...] = ()         # other names for the same binary


GO_PROGRAMS = (
    GoProgram("etcd", "etcd", "go.etcd.io/etcd/server/v3"),
    GoProgram("controlplane", "kube", "./controlplane",
              ("kube-apiserver", "kube-controller-manager", "kube-scheduler")),
    GoProgram("kubelet", "kube", "k8s.io/kubernetes/cmd/kubelet"),
    GoProgram("kubectl", "kube", "k8s.io/kubernetes/cmd/kubectl"),
    GoProgram("helm", "helm", "helm.sh/helm/v4/cmd/helm"),
    GoProgram("testpod", "testpod", "."),
)


def required_version(module: str, path: str) -> str:
    """The version of Go module `path` that go/<module>/go.mod requires, such as v1.35.4."""
    text = (GO_ROOT / module / "go.mod").read_text(encoding="utf-8")
    found = re.search(rf"^(?:require)?\s*{re.escape(path)} (v\S+)", text, re.MULTILINE)
    if not found:
        raise KeyError(f"go/{module}/go.mod does not require {path}")
    return found.group(1)


def linker_flags(module: str) -> str:
    """What the linker writes into the binaries so that they tell their true version."""
    flags = ["-s", "-w"]
    if module == "kube":
        version = required_version("kube", "k8s.io/kubernetes")
        major, minor = version.lstrip("v").split(".")[:2]
        for name, value in (("gitVersion", version), ("gitMajor", major), ("gitMinor", minor)):
            flags.append(f"-X k8s.io/component-base/version.{name}={value}")
    elif module == "helm":
        version = required_version("helm", "helm.sh/helm/v4")
        flags.append(f"-X helm.sh/helm/v4/internal/version.version={version}")
    return " ".join(flags)


def build_key() -> str:
    """Names one build: the Kubernetes version, and a digest of all that the build is made from."""
    digest = hashlib.sha256()
    for path in sorted(GO_ROOT.rglob("*")):
        if path.is_file():
            digest.update(f"{path.relative_to(GO_ROOT)}\0".encode() + path.read_bytes() + b"\0")
    for program in GO_PROGRAMS:
        digest.update(f"{program}{linker_flags(program.module)}\0".encode())
    return f"{required_version('kube', 'k8s.io/kubernetes')}-{digest.hexdigest()[:12]}"
