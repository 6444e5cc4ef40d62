# SPDX-License-Identifier: Apache-2.0
"""The workload image from a test's side: its manifest, and instructions to single pods."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from .builtin import WORKLOAD_IMAGE
from .errors import LabError
from .http import fetch

if TYPE_CHECKING:
    from .cluster import Cluster

PORT = 8080


def daemonset(name: str, namespace: str = "default", instruction: str = "", *,
              requests: dict[str, str] | None = None, limits: dict[str, str] | None = None,
              container: str = "main", **pod_spec: Any) -> dict:
    """A DaemonSet of the workload, one container; pod_spec adds to the pod's spec."""
    labels = {"app": name}
    main = {"name": container, "image": WORKLOAD_IMAGE, "imagePullPolicy": "Never",
            "env": [{"name": "WORKLOAD", "value": instruction}],
            "resources": {"requests": requests or {"cpu": "10m", "memory": "16Mi"},
                          "limits": limits or {}}}
    return {"apiVersion": "apps/v1", "kind": "DaemonSet",
            "metadata": {"name": name, "namespace": namespace},
            "spec": {"selector": {"matchLabels": labels},
                     "template": {"metadata": {"labels": labels},
                                  "spec": {"terminationGracePeriodSeconds": 1,
                                           "containers": [main], **pod_spec}}}}


def pod_on(cluster: "Cluster", node: str, app: str, namespace: str = "default") -> dict:
    """The pod with label app=… on a node (a or node-a)."""
    kube_name = cluster.node(node).kube_name
    pods = cluster.kube.get("pods", "-l", f"app={app}", "--field-selector",
                            f"spec.nodeName={kube_name}", namespace=namespace)["items"]
    living = [pod for pod in pods if "deletionTimestamp" not in pod["metadata"]]
    if len(living) != 1:
        raise LabError(f"{len(living)} pods with app={app} on {kube_name}, expected one")
    return living[0]


def instruct(cluster: "Cluster", pod: dict, instruction: str) -> dict:
    """Tells a pod's workload what to do from now on; what it answers."""
    return _ask(cluster, pod, "POST", instruction)


def look(cluster: "Cluster", pod: dict) -> dict:
    """What a pod's workload is doing."""
    return _ask(cluster, pod, "GET", None)


def _ask(cluster: "Cluster", pod: dict, method: str, body: str | None) -> dict:
    name = pod["metadata"]["name"]
    address = pod["status"].get("podIP")
    if not address:
        raise LabError(f"pod {name} has no address yet")
    status, text = fetch(cluster.network, f"http://{address}:{PORT}/", method, body)
    if status != 200:
        raise LabError(f"the workload in {name} refused: {text.decode('utf-8', 'replace').strip()}")
    return json.loads(text)
