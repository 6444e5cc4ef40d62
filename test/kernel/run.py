# SPDX-License-Identifier: Apache-2.0
"""Runs the kernel tests inside User Mode Linux guests, several at a time, and adds up what they report.

    run.py BUILD_DIR [NAME...]      NAME: only guests whose name contains it. `bench` only runs when
                                    named: it measures and prints, and has nothing to fail.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from lib.uml import Machine, UmlError  # noqa: E402


@dataclass
class Guest:
    """A machine and what runs in it: name -> command."""
    name: str
    memory_mib: int
    seconds: int
    commands: dict[str, str]


def guests(build: Path) -> list[Guest]:
    environment = f"PERNODE_LOAD={build}/test/load PERNODE_AGENT={build}/pernode-agent"
    measured = os.environ.get("PERNODE_BENCH_AGENT")
    tests = f"{environment} {build}/test"
    observe = f"{environment} /usr/bin/python3 -B {HERE}/guest_observe.py"
    return [
        Guest("oom", 128, 240, {"oom": f"{tests}/kernel_oom"}),
        Guest("sampler", 128, 240, {"sampler": f"{tests}/kernel_sampler"}),
        Guest("observe", 448, 300, {"observe": observe}),
        Guest("bench", 256, 240, {"bench": f"{environment} PERNODE_BENCH={build}/test/bench_sampling "
                                           + (f"PERNODE_AGENT={Path(measured).resolve()} " if measured else "")
                                           + f"/usr/bin/python3 -B {HERE}/guest_bench.py"}),
    ]


class Result:
    """What one guest printed."""

    def __init__(self, guest: Guest, text: str, trouble: str | None):
        self.guest, self.text, self.trouble = guest, text, trouble
        self.passed = len(re.findall(r"^\[       OK \]", text, re.M))
        self.failed = len(set(re.findall(r"^\[  FAILED  \] (\w+)$", text, re.M)))
        ends = dict(re.findall(r"^=== end (\S+) (\d+)", text, re.M))
        for name in guest.commands:
            status = ends.get(name)
            if status is None:
                self.trouble = self.trouble or f"{name} did not come to an end"
            elif status != "0" and not self.failed:
                self.trouble = self.trouble or f"{name} ended with {status}"
        if self.trouble:
            self.failed += 1


def run_guest(guest: Guest, directory: Path) -> Result:
    log = directory / f"{guest.name}.log"
    log.write_bytes(b"")
    commands = directory / f"{guest.name}.commands"
    commands.write_text("".join(f"{n} {c}\n" for n, c in guest.commands.items()), encoding="utf-8")
    machine = Machine(memory_bytes=guest.memory_mib << 20, init=[str(HERE / "guest")], log=log,
                      parameters={"commands": str(commands)}, name=f"pernode-{guest.name}")
    trouble = None
    machine.boot()
    try:
        if machine.wait(guest.seconds) is None:
            trouble = f"not done after {guest.seconds} s"
    finally:
        machine.power_cut()
    return Result(guest, log.read_text(encoding="utf-8", errors="replace").replace("\r", ""), trouble)


def main(arguments: list[str]) -> int:
    build, wanted = Path(arguments[0]).resolve(), arguments[1:]
    chosen = [g for g in guests(build)
              if any(w in g.name for w in wanted) or not wanted and g.name != "bench"]
    logs = build / "kernel"
    logs.mkdir(exist_ok=True)
    started = time.monotonic()
    try:
        with ThreadPoolExecutor(max_workers=2) as pool:
            results = list(pool.map(lambda g: run_guest(g, logs), chosen))
    except UmlError as error:
        print(f"test/kernel: {error}", file=sys.stderr)
        return 1
    for result in results:
        body = result.text[result.text.find("=== begin"):]
        if result.failed:
            print(f"---- {result.guest.name}\n{body[-8000:]}")
        for line in re.findall(r"^(?:\[  FAILED  \] \w+|note: .*)$", body, re.M):
            print(f"{result.guest.name}: {line}")
        if result.trouble:
            print(f"{result.guest.name}: {result.trouble}; its console: {logs}/{result.guest.name}.log")
    passed, failed = (sum(getattr(r, k) for r in results) for k in ("passed", "failed"))
    print(f"{time.monotonic() - started:.0f} s in {len(results)} guests")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
