# SPDX-License-Identifier: Apache-2.0
"""pernode's agent in a cluster: its image built and loaded, its chart installed, its answers read."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any, Iterator

from . import report
from .errors import LabError
from .http import fetch
from .images import build_image as build_archive

if TYPE_CHECKING:
    from .cluster import Cluster

PROJECT = Path(__file__).resolve().parents[3]
NAMESPACE = "pernode"
DAEMONSET = "pernode-agent"
PORT = 9870
DEVELOPMENT = "development"
DOMAIN = ".pernode.io"
# Soon enough for someone who watches: still two samples, a minute each, before a first value.
QUICK = {"interval": "2s", "first-publish-spread": "1s", "start-spread": "100ms", "publish-interval": "20s",
         "checkpoint-interval": "5s"}


def build_image() -> Path:
    """The image of the release binary, as a docker-archive."""
    with report.step("agent: release binary and image (the first time also its libraries, some minutes)"):
        built = subprocess.run([PROJECT / "scripts" / "build-image"], capture_output=True, text=True, check=False)
    if built.returncode != 0:
        raise LabError(f"scripts/build-image failed:\n{built.stderr[-4000:]}")
    return PROJECT / built.stdout.strip().splitlines()[-1]


def build_development_image() -> Path:
    """The image of the development build, with the shared libraries it wants; of tag DEVELOPMENT."""
    binary, archive = PROJECT / "build/debug/pernode-agent", PROJECT / "build/debug/pernode-agent.tar"
    with report.step("agent: development build and image"):
        for command in (["cmake", "--preset", "debug"],
                        ["cmake", "--build", "--preset", "debug", "--target", "pernode-agent"]):
            built = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False)
            if built.returncode != 0:
                raise LabError(f"{' '.join(command)} failed:\n{(built.stdout + built.stderr)[-4000:]}")
        wanted = subprocess.run(["ldd", binary], capture_output=True, text=True, check=True).stdout
        libraries = [word for word in wanted.split() if word.startswith("/")]
        build_archive(archive, f"localhost/pernode-agent:{DEVELOPMENT}",
                      {"/pernode-agent": binary, **{path: Path(path).resolve() for path in libraries}},
                      entrypoint=["/pernode-agent"], user="65532:65532")
    return archive


def install(cluster: "Cluster", archive: Path | None = None, tag: str = "", **config: str) -> None:
    """Loads the image and installs (or upgrades) the chart; returns when an agent is Ready on every node."""
    cluster.load_image(archive or build_image())
    values = ["--set", "agent.image.pullPolicy=Never", "--set-string", f"agent.image.tag={tag}"]
    for flag, value in {**QUICK, **{k.replace("_", "-"): v for k, v in config.items()}}.items():
        values += ["--set-string", f"agent.config.{flag}={value}"]
    with report.step("agent: helm install"):
        cluster.helm("upgrade", "--install", "pernode", str(PROJECT / "helm" / "pernode"), "--namespace", NAMESPACE,
                     "--create-namespace", *values)
        cluster.wait_daemonset(DAEMONSET, NAMESPACE)


def uninstall(cluster: "Cluster") -> None:
    """Takes the chart out again."""
    cluster.helm("uninstall", "pernode", "--namespace", NAMESPACE, "--wait")


def annotations(cluster: "Cluster", node: str) -> dict[str, Any]:
    """What the node's annotations say, by key; ours only, parsed."""
    have = cluster.kube.get("node", cluster.node(node).kube_name)["metadata"].get("annotations", {})
    return {key: json.loads(value) for key, value in have.items()
            if key.split("/")[0].endswith(DOMAIN) or key.startswith("pernode.io/")}


def recommendation(cluster: "Cluster", node: str, daemonset: str, container: str = "main",
                   namespace: str = "default") -> dict[str, Any] | None:
    """The published value of one container on one node, or None."""
    return annotations(cluster, node).get(f"{daemonset}.{namespace}{DOMAIN}/{container}")


def ask(cluster: "Cluster", node: str, path: str, ok: bool = True) -> str:
    """What the agent on a node answers to GET path."""
    pod = pod_on(cluster, node)
    status, body = fetch(cluster.network, f"http://{pod['status']['podIP']}:{PORT}{path}")
    if ok and status != 200:
        raise LabError(f"agent on {node}: GET {path}: {status} {body[:300]!r}")
    return body.decode()


def pod_on(cluster: "Cluster", node: str) -> dict[str, Any]:
    """The agent's pod on a node."""
    kube_name = cluster.node(node).kube_name
    pods = cluster.kube.get("pods", "--field-selector", f"spec.nodeName={kube_name}", namespace=NAMESPACE)["items"]
    for pod in pods:
        owners = pod["metadata"].get("ownerReferences", [])
        if "deletionTimestamp" not in pod["metadata"] and any(o["name"] == DAEMONSET for o in owners):
            return pod
    raise LabError(f"no agent on {kube_name}")


def recommendations(cluster: "Cluster", node: str) -> Iterator[dict[str, Any]]:
    """What the agent on a node thinks of each of its workloads."""
    yield from json.loads(ask(cluster, node, "/v1/recommendations"))["recommendations"]


def millicores(quantity: str) -> int:
    """A CPU quantity as the annotations write it: 63m, 1, 1500m."""
    return int(quantity[:-1]) if quantity.endswith("m") else int(quantity) * 1000
