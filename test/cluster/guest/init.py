# SPDX-License-Identifier: Apache-2.0
"""The first process of a node: mounts, network, containerd, images, kubelet; then keeps them.

    python3 init.py DIRECTORY      the node's directory on the host: node.json, log/, credentials

The root is the host's, read-only. /var is the node's own disk, so what a node keeps is where it
always is (/var/lib/kubelet, /var/lib/containerd, /var/lib/pernode); /run and /tmp are memory.
Directories of the host that the node needs are mounted under /run/lab.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
import sys
import threading
import time
import traceback
import uuid
from pathlib import Path

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import control  # noqa: E402  (its directory is only now in the path)
import files    # noqa: E402

# mount(2)
MS_RDONLY, MS_NOSUID, MS_REMOUNT, MS_BIND = 1, 2, 32, 4096

# What udev would make; crun reads a resize from /dev/stdin.
DEVICE_LINKS = {"fd": "/proc/self/fd", "stdin": "fd/0", "stdout": "fd/1", "stderr": "fd/2"}

LAB = Path("/run/lab")
SOCKET = Path("/run/containerd/containerd.sock")
CGROUP = Path("/sys/fs/cgroup")
MAX_LOG_BYTES = 32 << 20
RESTART_SECONDS = 1
TERM_SECONDS = 5
CONTAINERD_SECONDS = 10         # then it is said why it does not answer
CTR_SECONDS = 60
IMPORT_SECONDS = 240


def say(text: str) -> None:
    """To the console, which is the node's console.log on the host."""
    print(f"init: {text}", flush=True)


def run(*argv: str | Path, check: bool = True) -> subprocess.CompletedProcess:
    """A short command; its failure ends the boot unless check is off."""
    return subprocess.run([str(word) for word in argv], check=check)


def mount(kind: str, where: str | Path, source: str = "none", options: str = "") -> None:
    """Mounts; makes the mount point where it can."""
    Path(where).mkdir(parents=True, exist_ok=True)
    run("mount", "-t", kind, *(["-o", options] if options else []), source, where)


def ignore_suid() -> None:
    """Where the kernel runs without root, the host's mount(8) belongs to nobody in here, and its
    set-uid bit would take root's powers away. On a node everything runs as root anyway."""
    libc = ctypes.CDLL(None, use_errno=True)
    flags = MS_RDONLY | MS_NOSUID | MS_REMOUNT | MS_BIND
    if libc.mount(b"none", b"/", None, ctypes.c_ulong(flags), None) != 0:
        raise OSError(ctypes.get_errno(), "cannot remount / without set-uid")


def mount_basics() -> None:
    """What every init mounts. devtmpfs is there already when the kernel mounted it."""
    ignore_suid()
    mount("proc", "/proc")
    mount("sysfs", "/sys")
    if not Path("/dev/null").exists():
        mount("devtmpfs", "/dev")
    for name, target in DEVICE_LINKS.items():
        if not Path("/dev", name).is_symlink():
            Path("/dev", name).symlink_to(target)
    mount("devpts", "/dev/pts")
    mount("tmpfs", "/dev/shm")
    mount("tmpfs", "/run", options="mode=755")
    mount("tmpfs", "/tmp", options="mode=1777")
    mount("cgroup2", CGROUP)
    run("mount", "--make-rshared", "/")


def mount_host(config: dict) -> None:
    """The host's directories that a node reads, and the one that it writes its logs to."""
    for name, directory in config["host"].items():
        options = directory if name == "log" else f"{directory},ro"
        mount("hostfs", LAB / name, options=options)


def mount_disk() -> None:
    """/var: the node's disk. ext4 replays its journal after a power cut. What is written is there
    after one as far as it got, also by those who do not sync (containerd, CNI): with delayed
    allocation their newest files would be left empty."""
    run("mount", "-t", "ext4", "-o", "noatime,nodelalloc", "/dev/ubda", "/var")
    Path(files.STATIC_PODS).mkdir(parents=True, exist_ok=True)
    for path in ("lib/containerd", "lib/pernode", "lib/lab/imported", "log", "tmp"):
        Path("/var", path).mkdir(parents=True, exist_ok=True)
    run_link = Path("/var/run")
    if not run_link.is_symlink():
        run_link.symlink_to("/run")


def take_machine_id() -> None:
    """The node is a machine of its own: its ID was made when its disk was new and stays with it. The
    kubelet looks in /etc first, then where the disk has it."""
    own, usual = Path("/var/lib/dbus/machine-id"), Path("/etc/machine-id")
    if not own.exists():
        own.parent.mkdir(parents=True, exist_ok=True)
        part = own.with_suffix(".part")
        with open(part, "w", encoding="ascii") as file:
            file.write(uuid.uuid4().hex + "\n")
            file.flush()
            os.fsync(file.fileno())
        part.replace(own)
    if usual.exists():
        run("mount", "--bind", own, usual)


def load_modules(directory: str, modules: list[str]) -> None:
    """Kernel modules, in order; those the kernel has built in are not there as files."""
    for module in modules:
        path = Path(directory, module)
        if path.exists():
            run("insmod", path, check=False)


def complete_cpuinfo() -> None:
    """cAdvisor refuses a processor without clock speed and topology, which this kernel omits."""
    text = Path("/proc/cpuinfo").read_text(encoding="utf-8").rstrip("\n")
    path = Path("/run/cpuinfo")
    path.write_text(text + "\ncpu MHz\t\t: 2000.000\nphysical id\t: 0\ncore id\t\t: 0\n\n",
                    encoding="utf-8")
    run("mount", "--bind", path, "/proc/cpuinfo")


def up_network(config: dict) -> None:
    """Addresses of the node on the cluster's bridge (vec0) and on the private line (vec1)."""
    run("ip", "link", "set", "lo", "up")
    for device, address in (("vec0", f"{config['ip']}/24"), ("vec1", f"{config['management_ip']}/30")):
        run("ip", "addr", "add", address, "dev", device)
        run("ip", "link", "set", device, "up")
    run("ip", "route", "add", "default", "via", config["gateway"])
    Path("/proc/sys/net/ipv4/ip_forward").write_text("1", encoding="ascii")


def make_cgroup(path: str) -> Path:
    """A cgroup below the mount, with every controller handed down to it."""
    directory = CGROUP
    for name in filter(None, path.split("/")):
        controllers = (directory / "cgroup.controllers").read_text(encoding="ascii").split()
        (directory / "cgroup.subtree_control").write_text(
            " ".join(f"+{controller}" for controller in controllers), encoding="ascii")
        directory = directory / name
        directory.mkdir(exist_ok=True)
    return directory


class Service(threading.Thread):
    """A daemon that is started again when it ends, in a cgroup of its own as on any node."""

    def __init__(self, name: str, argv: list[str], log: Path) -> None:
        super().__init__(daemon=True)
        self.argv, self.log, self.stopping = argv, log, False
        self.label = name
        self.cgroup = make_cgroup(f"system.slice/{name}.service")
        self.process: subprocess.Popen | None = None

    def _enter_cgroup(self) -> None:
        (self.cgroup / "cgroup.procs").write_text("0", encoding="ascii")

    def run(self) -> None:
        while not self.stopping:
            with open(self.log, "ab") as log:
                self.process = subprocess.Popen(self.argv, stdin=subprocess.DEVNULL, stdout=log,
                                                stderr=log, preexec_fn=self._enter_cgroup)
            status = self.process.wait()
            if not self.stopping:
                say(f"{self.label} ended with status {status}, starting it again")
                time.sleep(RESTART_SECONDS)

    def stop(self) -> None:
        """Ends it for good, politely first."""
        self.stopping = True
        if self.process and self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(TERM_SECONDS)
            except subprocess.TimeoutExpired:
                self.process.kill()

    def trim_log(self) -> None:
        """A log on the host's disk has a bound: it starts again from empty."""
        if self.log.exists() and self.log.stat().st_size > MAX_LOG_BYTES:
            os.truncate(self.log, 0)


def images(*words: str, seconds: float) -> subprocess.CompletedProcess:
    """Asks containerd about its images; no answer in time counts as a failure."""
    command = ["ctr", "--connect-timeout", "5s", "-n", "k8s.io", "images", *words]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=seconds)
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(command, 1, "", f"not done within {seconds} s")


def import_image(archive: Path) -> subprocess.CompletedProcess:
    """Loads one archive into containerd, once in the life of the disk."""
    marker = Path("/var/lib/lab/imported", archive.name)
    if marker.exists():
        return subprocess.CompletedProcess([], 0, "", "")
    done = images("import", str(archive), seconds=IMPORT_SECONDS)
    if done.returncode == 0:
        marker.touch()
    return done


def wait_for_containerd(service: Service) -> None:
    """Until containerd answers for its images; it is started again meanwhile should it end. Why it
    does not answer is said once it takes long, and whenever that changes."""
    patient_until, told = time.monotonic() + CONTAINERD_SECONDS, ""
    while True:
        trouble = f"{SOCKET} is not there"
        if SOCKET.exists():
            done = images("ls", "-q", seconds=CTR_SECONDS)
            if done.returncode == 0:
                return
            trouble = done.stderr.strip()
        if time.monotonic() > patient_until and trouble != told:
            say(f"waiting for containerd: {trouble}")
            told = trouble
        time.sleep(0.1)
        service.trim_log()


class Node:
    """The node's life: boot, serve, shut down."""

    def __init__(self, directory: str) -> None:
        self.config = json.loads(Path(directory, "node.json").read_text(encoding="utf-8"))
        self.services: list[Service] = []
        self.end = threading.Event()

    def boot(self) -> None:
        """From bare kernel to a running kubelet."""
        config = self.config
        os.environ.update({"HOME": "/run", "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"})
        mount_basics()
        mount_host(config)
        mount_disk()
        take_machine_id()
        load_modules(config["modules"], config["module_files"])
        complete_cpuinfo()
        Path("/proc/sys/kernel/hostname").write_text(config["node_name"], encoding="ascii")
        up_network(config)
        control.serve(config["management_ip"], config["token"],
                      {"import": self.import_action, "poweroff": self.poweroff_action,
                       "clock": self.clock_action})
        files.write_all(config)
        make_cgroup("system.slice/init.scope")
        make_cgroup(config["cgroup_root"])
        containerd = self._start("containerd", ["containerd", "--config", files.CONTAINERD_CONFIG])
        wait_for_containerd(containerd)
        for archive in sorted((LAB / "images").glob("*.tar")):
            done = import_image(archive)
            if done.returncode != 0:
                say(f"image {archive.name} was not loaded: {done.stderr.strip()}")
        self._start("kubelet", [str(LAB / "bin" / "kubelet"), *files.kubelet_flags(config)])
        say("kubelet started")

    def _start(self, name: str, argv: list[str]) -> Service:
        service = Service(name, argv, LAB / "log" / f"{name}.log")
        self.services.append(service)
        service.start()
        return service

    def import_action(self, request: dict) -> tuple[int, str]:
        """Loads the named archive of the images directory."""
        done = import_image(LAB / "images" / os.path.basename(request["archive"]))
        return done.returncode, done.stderr

    def poweroff_action(self, _request: dict) -> tuple[int, str]:
        """An orderly end, begun here and finished by the first thread."""
        self.end.set()
        return 0, ""

    def clock_action(self, request: dict) -> tuple[int, str]:
        """Moves the wall clock by some seconds."""
        now = time.clock_gettime(time.CLOCK_REALTIME) + float(request["seconds"])
        time.clock_settime(time.CLOCK_REALTIME, now)
        return 0, f"{now:.3f}\n"

    def idle(self) -> None:
        """Until the end: takes in orphans and keeps logs within their bound."""
        zombies: set[int] = set()
        while not self.end.wait(5):
            zombies = reap_orphans(zombies)
            for service in self.services:
                service.trim_log()

    def shut_down(self) -> None:
        """Ends everything in order, so that the disk is clean."""
        say("shutting down")
        for service in reversed(self.services):
            service.stop()
        for number in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.kill(-1, number)
            except ProcessLookupError:
                break
            time.sleep(0.3)
        os.sync()
        run("mount", "-o", "remount,ro", "/var", check=False)


def _zombies() -> set[int]:
    """Ended children of the first process that nobody has waited for."""
    found = set()
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{entry}/stat", encoding="utf-8", errors="replace") as file:
                fields = file.read().rpartition(")")[2].split()
        except OSError:
            continue
        if fields[0] == "Z" and fields[1] == "1":
            found.add(int(entry))
    return found


def reap_orphans(seen: set[int]) -> set[int]:
    """Reaps zombies that were there the last time too: our own children are waited for at once,
    so those are orphans (containerd's shims). Returns the zombies that are there now."""
    now = _zombies() - control.waited_for
    for pid in now & seen:
        try:
            os.waitpid(pid, os.WNOHANG)
        except ChildProcessError:
            pass
    return now - seen


def main() -> None:
    """Whatever happens, the kernel is powered off at the end, and the console says why."""
    node = None
    try:
        node = Node(sys.argv[1])
        node.boot()
        node.idle()
    except BaseException:               # a first process must not just end
        say(f"failed:\n{traceback.format_exc()}")
    finally:
        if node:
            node.shut_down()
        Path("/proc/sysrq-trigger").write_text("o", encoding="ascii")
        time.sleep(60)


if __name__ == "__main__":
    main()
