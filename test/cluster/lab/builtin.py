# SPDX-License-Identifier: Apache-2.0
"""The images that every cluster has: pause, the workload, busybox. Built from their sources here."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import tempfile
from pathlib import Path

from . import images
from .errors import LabError
from .versions import CLUSTER_ROOT

WORKLOAD_IMAGE = "localhost/workload:1"
BUSYBOX_IMAGE = "localhost/busybox:1"
_PAUSE_IMAGE = "localhost/pause:1"
_BUSYBOX = Path("/bin/busybox")
_CFLAGS = ["-std=gnu17", "-O2", "-static", "-s", "-pthread", "-Wall", "-Wextra", "-Werror"]


def compile_static(directory: Path, into: Path) -> None:
    """The C files of a directory to one static binary."""
    sources = sorted(directory.glob("*.c"))
    built = subprocess.run(["cc", *_CFLAGS, "-o", into, *sources], capture_output=True, text=True,
                           check=False)
    if built.returncode != 0:
        raise LabError(f"cannot compile {directory}:\n{built.stderr.strip()}")


def store(archive: Path, tags: list[str], directory: Path) -> Path:
    """Keeps an archive for the nodes under a name that changes with its bytes.

    An older archive with one of the same tags goes: at the next boot it would win.
    """
    directory.mkdir(parents=True, exist_ok=True)
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()[:16]
    stored = directory / f"{archive.stem}-{digest}.tar"
    for other in directory.glob("*.tar"):
        if other != stored and set(images.archive_tags(other)) & set(tags):
            other.unlink()
    if not stored.exists():
        part = stored.with_suffix(".part")
        shutil.copyfile(archive, part)
        part.rename(stored)
    return stored


def prepare(directory: Path) -> None:
    """Makes the built-in images anew (fractions of a second; the same bytes each time)."""
    with tempfile.TemporaryDirectory(prefix="pernode-images-") as scratch:
        work = Path(scratch)
        for name, tag in (("pause", _PAUSE_IMAGE), ("workload", WORKLOAD_IMAGE)):
            compile_static(CLUSTER_ROOT / name, work / name)
            images.build_image(work / f"{name}.tar", tag, {f"/{name}": work / name},
                               entrypoint=[f"/{name}"])
            store(work / f"{name}.tar", [tag], directory)
        if _BUSYBOX.exists():
            images.build_image(work / "busybox.tar", BUSYBOX_IMAGE, {"/busybox": _BUSYBOX},
                               entrypoint=["/busybox", "sh"])
            store(work / "busybox.tar", [BUSYBOX_IMAGE], directory)
