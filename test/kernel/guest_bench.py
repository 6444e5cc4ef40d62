# SPDX-License-Identifier: Apache-2.0
"""Inside a guest: what sampling costs above bare reads, and what `observe` itself takes of memory.

30 containers with a little load each, in real cgroups; observe runs in a cgroup of its own, whose
working set is what the kubelet would count.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path("/sys/fs/cgroup")
AGENT, LOAD, BENCH = (os.environ[f"PERNODE_{n}"] for n in ("AGENT", "LOAD", "BENCH"))
CONTAINERS = 30


def make(name: str) -> Path:
    path = ROOT / name
    for parent in reversed(path.relative_to(ROOT).parents[:-1]):
        (ROOT / parent).mkdir(exist_ok=True)
        (ROOT / parent / "cgroup.subtree_control").write_text("+cpu +memory")
    path.mkdir()
    return path


def numbers(path: Path) -> dict[str, int]:
    return {k: int(v) for k, v in (line.split() for line in path.read_text().splitlines())}


def main() -> int:
    pods = [make(f"node/pod{i}/ctr") for i in range(CONTAINERS)]
    for path in pods:
        (path / "memory.max").write_text(str(64 << 20))
        subprocess.Popen([LOAD, f"--cgroup={path}", "--anon=1", "--busy=1/2000"])
    own = make("own/observe")
    process = subprocess.Popen(
        ["/bin/busybox", "sh", "-c", f"echo $$ >{own}/cgroup.procs; exec {AGENT} observe --output=json --duration=0 "
         "'/node/*'"], stdout=subprocess.PIPE, text=True)
    time.sleep(20)
    current, stat = int((own / "memory.current").read_text()), numbers(own / "memory.stat")
    status = dict(line.split(":", 1) for line in Path(f"/proc/{process.pid}/status").read_text().splitlines())
    print(f"note: observe of {CONTAINERS} containers: working set {(current - stat['inactive_file']) / (1 << 20):.2f} MiB "
          f"(anonymous {stat['anon'] >> 10} KiB, kernel {stat['kernel'] >> 10} KiB, "
          f"active file {stat['active_file'] >> 10} KiB), resident {status['VmRSS'].strip()}, "
          f"threads {status['Threads'].strip()}")
    process.terminate()
    process.communicate(timeout=20)
    out = subprocess.run([BENCH, *map(str, pods)], capture_output=True, text=True, check=True).stdout
    print(f"note: {out.strip()}")
    print("[       OK ] bench", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
