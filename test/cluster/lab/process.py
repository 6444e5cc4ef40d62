# SPDX-License-Identifier: Apache-2.0
"""Processes that outlive the command which started them, known by more than their number.

A process is remembered as (pid, start time, boot), so that a number used again by someone else is
never taken for ours. Each carries a mark in its environment, by which the leftovers of a crash are
found even when nothing was written down.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from dataclasses import asdict, dataclass
from pathlib import Path

FREEZE_SECONDS = 30
MARK_VARIABLE = "PERNODE_CLUSTER_ID"

# The intermediate shell ends at once, so that init, not we, inherits and reaps the process.
_LAUNCH = 'log=$1; shift; setsid "$@" </dev/null >>"$log" 2>&1 & echo $!'


def _boot_id() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()


def _stat(pid: int) -> list[str] | None:
    """The fields of /proc/PID/stat from the state on; None when there is no such process."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            return file.read().rpartition(")")[2].split()
    except OSError:
        return None


@dataclass(frozen=True)
class Process:
    """A process of ours, as remembered on disk."""

    pid: int
    start_ticks: int
    boot_id: str

    @classmethod
    def of(cls, pid: int) -> "Process | None":
        """The process that has this number now; None when there is none."""
        fields = _stat(pid)
        return cls(pid, int(fields[19]), _boot_id()) if fields else None

    def state(self) -> str:
        """running, stopped or gone."""
        fields = _stat(self.pid)
        if not fields or int(fields[19]) != self.start_ticks or self.boot_id != _boot_id():
            return "gone"
        if fields[0] in "ZXx":
            return "gone"
        return "stopped" if fields[0] == "T" else "running"

    def alive(self) -> bool:
        """Whether it is there, stopped or not."""
        return self.state() != "gone"

    def signal(self, number: int) -> None:
        """Sends a signal if the process is still the one we mean."""
        if self.alive():
            try:
                os.kill(self.pid, number)
            except ProcessLookupError:
                pass

    def freeze(self) -> None:
        """Stops it where it is. The kernel takes a moment to, on a busy machine a long one."""
        self.signal(signal.SIGSTOP)
        deadline = time.monotonic() + FREEZE_SECONDS
        while self.state() == "running" and time.monotonic() < deadline:
            time.sleep(0.01)

    def wait_gone(self, timeout_seconds: float) -> bool:
        """Waits for its end; False when it still lives then."""
        deadline = time.monotonic() + timeout_seconds
        while self.alive():
            if time.monotonic() > deadline:
                return False
            time.sleep(0.02)
        return True

    def end(self, grace_seconds: float) -> None:
        """Asks it to end, and after the grace ends it and its whole process group."""
        if not self.alive():
            return
        if grace_seconds > 0:
            self.signal(signal.SIGTERM)
            self.signal(signal.SIGCONT)
            if self.wait_gone(grace_seconds):
                return
        while self.alive():
            try:
                os.killpg(self.pid, signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                self.signal(signal.SIGKILL)
            self.wait_gone(1)


def launch(argv: list[str], log: Path, env: dict[str, str] | None = None,
           cwd: Path | None = None) -> Process:
    """Starts a detached process in a session of its own; its output is appended to log."""
    log.parent.mkdir(parents=True, exist_ok=True)
    started = subprocess.run(["/bin/sh", "-c", _LAUNCH, "launch", str(log), *argv], env=env, cwd=cwd,
                             stdout=subprocess.PIPE, check=True, timeout=30)
    process = Process.of(int(started.stdout))
    # It may have ended already; it is remembered all the same, so that its log is shown.
    return process or Process(int(started.stdout), 0, _boot_id())


def remember(process: Process, path: Path) -> None:
    """Writes down a process, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    part.write_text(json.dumps(asdict(process)), encoding="utf-8")
    os.replace(part, path)


def recall(path: Path) -> Process | None:
    """The process written down in path; None when there is none or the file is no use."""
    try:
        return Process(**json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None


def marked(mark: str) -> list[Process]:
    """All living processes that carry this mark in their environment."""
    wanted = f"{MARK_VARIABLE}={mark}".encode()
    found = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit() or int(entry) == os.getpid():
            continue
        try:
            environment = Path(f"/proc/{entry}/environ").read_bytes()
        except OSError:
            continue
        process = Process.of(int(entry)) if wanted in environment.split(b"\0") else None
        if process and process.alive():
            found.append(process)
    return found
