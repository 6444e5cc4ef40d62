# SPDX-License-Identifier: Apache-2.0
"""Builds the Kubernetes programs from Go modules into the cache folder, once per version."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

from . import report
from .errors import LabError, with_log
from .versions import CLUSTER_ROOT, GO_PROGRAMS, GO_ROOT, build_key, linker_flags

NEED_FREE_BYTES = 6 << 30              # module sources, Go's build cache, and the binaries
STAMP = "complete"
_PROGRESS_SECONDS = 15


def cache_root() -> Path:
    """$XDG_CACHE_HOME/pernode, else ~/.cache/pernode."""
    base = os.environ.get("XDG_CACHE_HOME")
    return Path(base if base else Path.home() / ".cache") / "pernode"


def build_dir() -> Path:
    """Where this version's binaries are, or will be."""
    return cache_root() / "cluster" / build_key()


def is_built() -> bool:
    """Whether the build finished: its stamp is written last."""
    return (build_dir() / STAMP).is_file()


def binary(name: str) -> Path:
    """The path of a built program; an error that says what to do when it is not built."""
    if not is_built():
        raise LabError("the Kubernetes programs are not built; run: test/cluster/cluster build")
    return build_dir() / "bin" / name


@contextlib.contextmanager
def _one_at_a_time(path: Path):
    """Two builds at once would only be slower."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w", encoding="ascii") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            report.say("waiting for another build to finish …")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _find_go() -> str:
    finder = CLUSTER_ROOT.parents[1] / "scripts" / "find-go"
    found = subprocess.run([finder], stdout=subprocess.PIPE, text=True, check=False)
    if found.returncode != 0:
        raise LabError("no Go toolchain to build with (above: why)")
    return found.stdout.strip()


def _check_space(path: Path) -> None:
    free_bytes = shutil.disk_usage(path).free
    if free_bytes < NEED_FREE_BYTES:
        raise LabError(f"{path}: {free_bytes >> 20} MiB free, the build needs "
                       f"{NEED_FREE_BYTES >> 20} MiB; make room, or point XDG_CACHE_HOME elsewhere")


def _package_count(go: str, module: str, packages: list[str], env: dict[str, str]) -> int:
    listed = subprocess.run([go, "list", "-deps", "-f", "{{.ImportPath}}", *packages],
                            cwd=GO_ROOT / module, env=env, capture_output=True, text=True,
                            check=False)
    return len(listed.stdout.splitlines())


def _run_build(command: list[str], module: str, env: dict[str, str], log: Path, total: int) -> int:
    """Runs go build -v, which names each package that it compiles; returns its exit status."""
    compiled, said = 0, time.monotonic()
    with open(log, "w", encoding="utf-8") as out:
        build = subprocess.Popen(command, cwd=GO_ROOT / module, env=env, text=True,
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        for line in build.stdout:
            out.write(line)
            compiled += 1
            if time.monotonic() - said > _PROGRESS_SECONDS:
                said = time.monotonic()
                report.say(f"  {module}: {compiled} of at most {total} packages")
        return build.wait()


def _build_module(go: str, module: str, into: Path) -> None:
    programs = [program for program in GO_PROGRAMS if program.module == module]
    env = {**os.environ, "CGO_ENABLED": "0", "GOFLAGS": "-buildvcs=false", "GOTOOLCHAIN": "auto",
           "GOWORK": "off"}
    total = _package_count(go, module, [program.package for program in programs], env)
    log = cache_root() / "cluster" / f"build-{module}.log"
    for program in programs:
        command = [go, "build", "-v", "-trimpath", "-ldflags", linker_flags(module), "-o",
                   str(into / program.name), program.package]
        with report.step(f"building {program.name}"):
            if _run_build(command, module, env, log, total) != 0:
                raise with_log(f"building {program.name} failed", log)
        for link in program.links:
            (into / link).symlink_to(program.name)


def build() -> Path:
    """Builds what is missing; returns the directory with the binaries. Instant when built."""
    target = build_dir()
    if is_built():
        return target / "bin"
    with _one_at_a_time(cache_root() / "cluster" / "build.lock"):
        if is_built():
            return target / "bin"
        _check_space(cache_root())
        go = _find_go()
        # An interrupted build has no stamp, or is still called part-….
        for leftover in (target, *target.parent.glob("part-*")):
            shutil.rmtree(leftover, ignore_errors=True)
        part = Path(tempfile.mkdtemp(prefix="part-", dir=target.parent))
        try:
            (part / "bin").mkdir()
            for module in dict.fromkeys(program.module for program in GO_PROGRAMS):
                _build_module(go, module, part / "bin")
            part.chmod(0o755)
            part.rename(target)
            (target / STAMP).write_text("", encoding="ascii")
        finally:
            shutil.rmtree(part, ignore_errors=True)
    report.say(f"built: {target / 'bin'}")
    return target / "bin"
