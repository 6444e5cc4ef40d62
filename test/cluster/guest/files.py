# SPDX-License-Identifier: Apache-2.0
"""Inside a node: the configuration files of containerd, its network plugin and the kubelet."""

from __future__ import annotations

import json
from pathlib import Path

CONTAINERD_CONFIG = "/run/lab/etc/containerd.toml"
KUBELET_CONFIG = "/run/lab/etc/kubelet.json"
STATIC_PODS = "/var/lib/kubelet/manifests"     # on the disk of the node
CNI_DIRECTORY = "/run/lab/etc/cni"
CREDENTIALS = "/run/lab/credentials"


def containerd_toml(runtime: str) -> str:
    """containerd with one runtime. AppArmor is not in the kernel."""
    return f"""version = 2
[grpc]
  address = "/run/containerd/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "localhost/pause:1"
  disable_apparmor = true
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
    default_runtime_name = "{runtime}"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.{runtime}]
    runtime_type = "io.containerd.runc.v2"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.{runtime}.options]
    BinaryName = "{runtime}"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "{CNI_DIRECTORY}"
"""


def cni_conflist(subnet: str) -> str:
    """Each pod gets a line of its own to the node and an address of the node's subnet."""
    return json.dumps({"cniVersion": "0.4.0", "name": "lab", "plugins": [{
        "type": "ptp", "ipMasq": False,
        "ipam": {"type": "host-local", "dataDir": "/run/cni", "ranges": [[{"subnet": subnet}]],
                 "routes": [{"dst": "0.0.0.0/0"}]}}]})


def kubelet_configuration(config: dict) -> str:
    """The kubelet's settings that have no other place. Status is sent often: a test waits for it."""
    settings = {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "authentication": {"anonymous": {"enabled": False}, "webhook": {"enabled": True},
                           "x509": {"clientCAFile": f"{CREDENTIALS}/ca.crt"}},
        "authorization": {"mode": "Webhook"},
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": config["cgroup_root"],
        "enforceNodeAllocatable": ["pods"],
        "containerRuntimeEndpoint": "unix:///run/containerd/containerd.sock",
        "failSwapOn": False,
        "imageGCHighThresholdPercent": 100,
        "evictionHard": {"memory.available": "20Mi"},
        "resolvConf": "",
        "maxPods": config["max_pods"],
        "registerWithTaints": config["taints"],
        "systemReserved": config["reserved"],
        "nodeStatusUpdateFrequency": "5s",
        "nodeLeaseDurationSeconds": 20,
        "syncFrequency": "10s",
        "staticPodPath": STATIC_PODS,
        "volumePluginDir": "/var/lib/kubelet/plugins",
    }
    return json.dumps(settings, indent=1)


def kubelet_flags(config: dict) -> list[str]:
    """What the kubelet only takes as flags."""
    flags = [f"--config={KUBELET_CONFIG}", f"--kubeconfig={CREDENTIALS}/kubeconfig",
             f"--hostname-override={config['node_name']}", f"--node-ip={config['ip']}", "--v=2"]
    if config["labels"]:
        labels = ",".join(f"{key}={value}" for key, value in sorted(config["labels"].items()))
        flags.append(f"--node-labels={labels}")
    return flags


def write_all(config: dict) -> None:
    """Writes every file that the node's daemons read."""
    for path, text in (
            (CONTAINERD_CONFIG, containerd_toml(config["runtime"])),
            (f"{CNI_DIRECTORY}/10-lab.conflist", cni_conflist(config["pod_subnet"])),
            (KUBELET_CONFIG, kubelet_configuration(config))):
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_text(text, encoding="utf-8")
