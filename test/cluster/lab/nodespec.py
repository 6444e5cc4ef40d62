# SPDX-License-Identifier: Apache-2.0
"""What one node is like: the options that make a fleet heterogeneous. Pure."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass, field

from .errors import LabError

DEFAULT_MEMORY_BYTES = 800 << 20
MINIMUM_MEMORY_BYTES = 384 << 20
RUNTIMES = ("runc", "crun")
MAX_NODES = 20
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,40}[a-z0-9])?")
_SIZE = re.compile(r"(\d+)(Mi|M|Gi|G)")
_TAINT = re.compile(r"([^=:]+)(?:=([^:]*))?:(NoSchedule|PreferNoSchedule|NoExecute)")
_UNITS = {"Mi": 1 << 20, "M": 1 << 20, "Gi": 1 << 30, "G": 1 << 30}

SYNTAX = ("NAME[,memory=900M][,label=KEY=VALUE]…[,taint=KEY[=VALUE]:EFFECT]…[,cgroup-root=/PATH]"
          "[,reserve-cpu=100m][,reserve-memory=100Mi][,max-pods=110][,runtime=runc|crun]")


def parse_size(text: str, what: str) -> int:
    """Bytes of a size such as 900M or 1Gi (M means Mi here, as for kernels)."""
    found = _SIZE.fullmatch(text)
    if not found:
        raise LabError(f"{what}={text}: not a size; write it as 900M or 2G")
    return int(found.group(1)) * _UNITS[found.group(2)]


@dataclass
class NodeSpec:
    """One node. Sizes in bytes; reserved resources as Kubernetes quantities."""

    name: str
    memory_bytes: int = DEFAULT_MEMORY_BYTES
    labels: dict[str, str] = field(default_factory=dict)
    taints: list[dict[str, str]] = field(default_factory=list)
    cgroup_root: str = "/"
    reserved: dict[str, str] = field(default_factory=dict)
    max_pods: int = 110
    runtime: str = "runc"

    def check(self) -> "NodeSpec":
        """Refuses what cannot work, with what would."""
        if not _NAME.fullmatch(self.name):
            raise LabError(f"node name {self.name!r}: must be lower-case letters, digits and '-'")
        if self.memory_bytes < MINIMUM_MEMORY_BYTES:
            raise LabError(f"node {self.name}: memory {self.memory_bytes >> 20}M is too small for "
                           f"a kubelet; at least {MINIMUM_MEMORY_BYTES >> 20}M")
        if not self.cgroup_root.startswith("/") or ".." in self.cgroup_root.split("/"):
            raise LabError(f"node {self.name}: cgroup-root={self.cgroup_root}: must be an absolute "
                           "path below the cgroup mount, such as /lab")
        if self.runtime not in RUNTIMES:
            raise LabError(f"node {self.name}: runtime={self.runtime}: one of {', '.join(RUNTIMES)}")
        if not 1 <= self.max_pods <= 250:
            raise LabError(f"node {self.name}: max-pods={self.max_pods}: 1 to 250")
        return self

    def to_dict(self) -> dict:
        """As plain data, for the cluster's state file."""
        return asdict(self)


def _parse_taint(text: str) -> dict[str, str]:
    found = _TAINT.fullmatch(text)
    if not found:
        raise LabError(f"taint={text}: write it as KEY=VALUE:NoSchedule (or PreferNoSchedule, "
                       "NoExecute)")
    return {"key": found.group(1), "value": found.group(2) or "", "effect": found.group(3)}


def _apply_option(spec: NodeSpec, option: str, value: str) -> None:
    if option == "memory":
        spec.memory_bytes = parse_size(value, "memory")
    elif option == "label":
        key, equals, text = value.partition("=")
        if not key or not equals:
            raise LabError(f"label={value}: write it as label=KEY=VALUE")
        spec.labels[key] = text
    elif option == "taint":
        spec.taints.append(_parse_taint(value))
    elif option == "cgroup-root":
        spec.cgroup_root = value
    elif option in ("reserve-cpu", "reserve-memory"):
        spec.reserved[option.partition("-")[2]] = value
    elif option == "max-pods":
        if not value.isdigit():
            raise LabError(f"max-pods={value}: not a number")
        spec.max_pods = int(value)
    elif option == "runtime":
        spec.runtime = value
    else:
        raise LabError(f"{option}: no such node option; {SYNTAX}")


def parse(text: str, **defaults) -> NodeSpec:
    """A node from its command-line form (SYNTAX)."""
    name, *options = text.split(",")
    spec = NodeSpec(name.removeprefix("node-"), **defaults)
    for item in options:
        option, equals, value = item.partition("=")
        if not equals:
            raise LabError(f"--node={text}: {item!r} has no value; {SYNTAX}")
        _apply_option(spec, option, value)
    return spec.check()


def default_fleet(count: int, **defaults) -> list[NodeSpec]:
    """Nodes a, b, c, … all alike."""
    if not 1 <= count <= MAX_NODES:
        raise LabError(f"--nodes={count}: 1 to {MAX_NODES}")
    return [NodeSpec(chr(ord("a") + i), **defaults).check() for i in range(count)]
