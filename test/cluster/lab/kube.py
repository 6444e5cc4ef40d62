# SPDX-License-Identifier: Apache-2.0
"""The real kubectl and helm, run inside the cluster's namespace as its administrator."""

from __future__ import annotations

import json
import os
import subprocess
from typing import Any

from .build import binary
from .controlplane import ControlPlane
from .errors import LabError

TIMEOUT_SECONDS = 60


class Kube:
    """What tests ask the API. Every call is one run of kubectl."""

    def __init__(self, control_plane: ControlPlane, mark_environment) -> None:
        self._control_plane = control_plane
        self._environment = mark_environment

    def command(self, program: str, arguments: list[str]) -> list[str]:
        """The whole command line of kubectl or helm."""
        return [*self._control_plane.network.prefix(), str(binary(program)), *arguments]

    def environment(self) -> dict[str, str]:
        """Credentials, and no traces of the user's own clusters."""
        return {**os.environ, **self._environment(),
                "KUBECONFIG": str(self._control_plane.admin_kubeconfig)}

    def run(self, *arguments: str, program: str = "kubectl", stdin: str | None = None,
            timeout_seconds: float = TIMEOUT_SECONDS, check: bool = True
            ) -> subprocess.CompletedProcess:
        """Runs it with output captured; an error that holds its message unless check is off."""
        command = self.command(program, list(arguments))
        what = f"{program} {' '.join(arguments)}"
        try:
            done = subprocess.run(command, env=self.environment(), input=stdin, text=True,
                                  capture_output=True, timeout=timeout_seconds, check=False)
        except subprocess.TimeoutExpired as error:
            raise LabError(f"{what}: no answer in {timeout_seconds:.0f} s") from error
        if check and done.returncode != 0:
            raise LabError(f"{what}: {done.stderr.strip() or f'exit {done.returncode}'}")
        return done

    def get(self, *what: str, namespace: str | None = None, **options) -> Any:
        """An object or a list, as parsed JSON: get("pods", "-l", "app=x", namespace="kube-system")."""
        where = ["-n", namespace] if namespace else []
        return json.loads(self.run("get", *where, *what, "-o", "json", **options).stdout)

    def apply(self, manifest: str | dict | list) -> str:
        """Applies YAML text, or objects as Python data."""
        if isinstance(manifest, list):
            manifest = {"apiVersion": "v1", "kind": "List", "items": manifest}
        text = manifest if isinstance(manifest, str) else json.dumps(manifest)
        return self.run("apply", "-f", "-", stdin=text).stdout
