# SPDX-License-Identifier: Apache-2.0
"""Boots User Mode Linux kernels: a real kernel with cgroup v2 as an ordinary process.

The guest's root is this machine's own files, read-only (hostfs), so programs just built run in it
at once. Its memory is a file that the kernel makes and unlinks in TMPDIR; choose_ram_dir() finds a
directory where that works.

    machine = Machine(memory_bytes=256 << 20, init=["/bin/sh", "/path/script"], log=Path("boot.log"))
    machine.boot()
    status = machine.wait(60)      # or .power_cut()
"""

from __future__ import annotations

import hashlib
import mmap
import os
import shutil
import signal
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

CACHE_ROOT = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "pernode"
MODULES_ROOT = Path("/usr/lib/uml/modules")
RAM_DIR_VARIABLE = "PERNODE_RAM_DIR"
KERNEL_VARIABLE = "PERNODE_UML"
# The kernel refuses longer command lines (COMMAND_LINE_SIZE of User Mode Linux).
MAX_COMMAND_LINE_BYTES = 4095
_PROBE_BYTES = 1 << 16


class UmlError(Exception):
    """What was wrong and what to do about it, for the person who called."""


def find_kernel() -> Path:
    """The User Mode Linux kernel: $PERNODE_UML, else linux.uml in PATH."""
    named = os.environ.get(KERNEL_VARIABLE)
    found = shutil.which(named or "linux.uml")
    if not found:
        where = f"${KERNEL_VARIABLE}={named}" if named else "linux.uml"
        raise UmlError(f"{where}: no such program; install the Debian package user-mode-linux")
    return Path(found)


def kernel_version(kernel: Path) -> str:
    """The release that the kernel names itself, such as 6.1.176."""
    answer = subprocess.run([kernel, "--version"], capture_output=True, text=True, timeout=30,
                            stdin=subprocess.DEVNULL, check=False)
    lines = answer.stdout.split()
    if answer.returncode != 0 or not lines:
        why = answer.stderr.strip() or f"exit {answer.returncode}"
        raise UmlError(f"{kernel} --version failed: {why}")
    return lines[-1]


def find_modules(kernel: Path) -> Path:
    """The directory with the kernel's modules (…/kernel, insmod-able .ko files below it)."""
    path = MODULES_ROOT / kernel_version(kernel) / "kernel"
    if not path.is_dir():
        raise UmlError(f"{path}: the modules of {kernel} are not there; "
                       "reinstall the Debian package user-mode-linux")
    return path


def _ram_dir_problem(path: Path, need_bytes: int) -> str | None:
    """Why guest memory cannot live in path, by trying it; None when it can."""
    try:
        space = os.statvfs(path)
    except OSError as error:
        return error.strerror or str(error)
    free_bytes = space.f_bavail * space.f_frsize
    if free_bytes < need_bytes:
        return f"{free_bytes >> 20} MiB free"
    try:
        with tempfile.TemporaryFile(dir=path) as probe:
            probe.truncate(_PROBE_BYTES)
            with mmap.mmap(probe.fileno(), _PROBE_BYTES,
                           prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC):
                return None
    except PermissionError:
        return "mounted noexec, or not writable"
    except OSError as error:
        return error.strerror or str(error)


def choose_ram_dir(need_bytes: int) -> Path:
    """A directory that can hold need_bytes of guest memory: enough space and not noexec.

    Memory-backed places come first: guest memory in a disk file would be written back to disk.
    """
    named = os.environ.get(RAM_DIR_VARIABLE)
    candidates = [named] if named else ["/dev/shm", os.environ.get("TMPDIR"), "/tmp", "/var/tmp"]
    problems = []
    for candidate in dict.fromkeys(filter(None, candidates)):
        problem = _ram_dir_problem(Path(candidate), need_bytes)
        if problem is None:
            return Path(candidate)
        problems.append(f"{candidate}: {problem}")
    raise UmlError(f"no directory can hold {need_bytes >> 20} MiB of guest memory "
                   f"({'; '.join(problems)}); set {RAM_DIR_VARIABLE} to one that has the space and "
                   "is not mounted noexec, or enlarge /dev/shm: mount -o remount,exec,size=… /dev/shm")


def xstate_library() -> Path | None:
    """A library to preload into the kernel on processors with AMX (uml_xstate.c says why).

    Built once into the cache folder; None where it is not needed.
    """
    cpuinfo = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    if " amx_tile" not in cpuinfo:
        return None
    source = Path(__file__).with_name("uml_xstate.c")
    digest = hashlib.sha256(source.read_bytes()).hexdigest()[:16]
    library = CACHE_ROOT / f"uml-xstate-{digest}.so"
    if library.exists():
        return library
    compiler = shutil.which("cc")
    if not compiler:
        raise UmlError("cc: no such program, and this processor (AMX) needs a small library built "
                       "for User Mode Linux; install the Debian package gcc")
    CACHE_ROOT.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=CACHE_ROOT, suffix=".so", delete=False) as part:
        pass
    built = subprocess.run([compiler, "-O2", "-shared", "-fPIC", "-o", part.name, source],
                           capture_output=True, text=True, check=False)
    if built.returncode != 0:
        os.unlink(part.name)
        raise UmlError(f"cannot compile {source}: {built.stderr.strip()}")
    os.replace(part.name, library)
    return library


@dataclass
class Machine:
    """One guest. Fields are settings, read by boot(); the process is the machine's own."""

    memory_bytes: int
    init: list[str]                     # program and arguments; no spaces in them
    log: Path                           # console output, appended
    parameters: dict[str, str] = field(default_factory=dict)   # name=value, seen in /proc/cmdline
    disks: list[Path] = field(default_factory=list)            # image files: ubda, ubdb, …
    taps: list[str] = field(default_factory=list)              # tap devices: vec0, vec1, …
    root: Path = Path("/")              # the host directory that is the guest's root, read-only
    directory: Path | None = None       # for the kernel's pid file and console socket
    name: str = "uml"
    prefix: list[str] = field(default_factory=list)            # such as nsenter …, put before it
    process: subprocess.Popen | None = field(default=None, repr=False)
    _scratch: tempfile.TemporaryDirectory | None = field(default=None, repr=False)

    def command(self, kernel: Path | None = None) -> list[str]:
        """The whole command that boots this machine."""
        # Without a root= and a console= of ours the kernel adds its own, behind init's arguments.
        words = [f"mem={self.memory_bytes >> 10}k", "root=/dev/root", "console=tty0", "rootfstype=hostfs",
                 f"rootflags={self.root}", "ro", "panic=-1", "noreboot", "con=null",
                 "con0=fd:0,fd:1", f"umid={self.name}", f"init={self.init[0]}"]
        if self.directory or self._scratch:
            words.append(f"uml_dir={self.directory or self._scratch.name}/")
        words += [f"ubd{chr(ord('a') + i)}={disk}" for i, disk in enumerate(self.disks)]
        words += [f"vec{i}:transport=tap,ifname={tap},depth=128,gro=1"
                  for i, tap in enumerate(self.taps)]
        words += [f"{name}={value}" for name, value in self.parameters.items()]
        if len(self.init) > 1:
            words += ["--", *self.init[1:]]
        for word in words:
            if any(c.isspace() or c == '"' for c in word):
                raise UmlError(f"{word!r}: a kernel command line cannot carry spaces or quotes; "
                               "use a path without them")
        if sum(len(word.encode()) + 1 for word in words) > MAX_COMMAND_LINE_BYTES:
            raise UmlError("the kernel command line is longer than "
                           f"{MAX_COMMAND_LINE_BYTES} bytes; pass a file instead")
        return [*self.prefix, str(kernel or find_kernel()), *words]

    def environment(self) -> dict[str, str]:
        """The environment the kernel needs: where its memory goes, and what to preload."""
        env = dict(os.environ)
        env["TMPDIR"] = str(choose_ram_dir(self.memory_bytes))
        library = xstate_library()
        if library:
            env["LD_PRELOAD"] = str(library)
        return env

    def boot(self) -> None:
        """Starts the kernel in a session of its own; what it prints goes to the log."""
        if not self.directory:
            self._scratch = tempfile.TemporaryDirectory(prefix="pernode-uml-")
        command, env = self.command(), self.environment()
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL, stdout=log,
                                            stderr=subprocess.STDOUT, start_new_session=True)

    def wait(self, timeout_seconds: float) -> int | None:
        """The kernel's exit status once the guest has powered off; None if it still runs."""
        assert self.process, "not booted"
        try:
            self.process.wait(timeout_seconds)
        except subprocess.TimeoutExpired:
            return None
        return self._finish()

    def power_cut(self) -> None:
        """Ends the guest at once, as if its plug were pulled; its disks stay as they are."""
        if self.process:
            power_cut(self.process.pid)
            self.process.wait()
            self._finish()

    def _finish(self) -> int:
        if self._scratch:
            self._scratch.cleanup()
            self._scratch = None
        return self.process.returncode


def _group_members(group: int) -> list[int]:
    members = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/stat", encoding="utf-8", errors="replace") as file:
                    fields = file.read().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[2]) == group and fields[0] != "Z":
                members.append(int(entry))
    return members


def power_cut(pid: int, timeout_seconds: float = 10) -> None:
    """Ends the guest whose kernel leads the process group pid, and all its helper processes."""
    deadline = time.monotonic() + timeout_seconds
    while True:
        try:
            os.killpg(pid, signal.SIGKILL)
        except ProcessLookupError:
            return
        if not _group_members(pid):
            return
        if time.monotonic() > deadline:
            raise UmlError(f"the processes of guest {pid} do not end")
        time.sleep(0.02)

