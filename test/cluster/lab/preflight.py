# SPDX-License-Identifier: Apache-2.0
"""What a machine must have before a cluster is started: everything that is missing, at once."""

from __future__ import annotations

import shutil
from pathlib import Path

from lib import uml

from . import network
from .errors import LabError
from .nodespec import NodeSpec
from .versions import DEBIAN_PROGRAMS

# Seen: a node's disk with the built-in images and logs takes about 150 MiB.
NODE_DISK_BYTES = 300 << 20
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def find_program(name: str) -> str | None:
    """A program of the machine, also where the user's PATH leaves out /usr/sbin."""
    return shutil.which(name) or shutil.which(name, path=_PATH)


def check(fleet: list[NodeSpec], cache: Path) -> None:
    """Raises one error that lists all that is missing, with what to do."""
    missing = {package for program, package in DEBIAN_PROGRAMS.items() if not find_program(program)}
    if any(spec.runtime == "crun" for spec in fleet) and not find_program("crun"):
        missing.add("crun")
    problems = []
    try:
        uml.find_modules(uml.find_kernel())
    except uml.UmlError as error:
        problems.append(str(error))
    if missing:
        problems.append("missing Debian packages; install them: apt-get install "
                        + " ".join(sorted(missing)))
    try:
        network.check_tun()
    except LabError as error:
        problems.append(str(error))
    cache.mkdir(parents=True, exist_ok=True)
    need_bytes, free_bytes = NODE_DISK_BYTES * len(fleet), shutil.disk_usage(cache).free
    if free_bytes < need_bytes:
        problems.append(f"{cache}: {free_bytes >> 20} MiB free, {len(fleet)} nodes need "
                        f"{need_bytes >> 20} MiB; make room, or point XDG_CACHE_HOME elsewhere")
    if problems:
        raise LabError("the cluster cannot start here:\n  " + "\n  ".join(problems))
