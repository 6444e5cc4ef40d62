# SPDX-License-Identifier: Apache-2.0
"""The small demonstration: a User Mode Linux kernel with cgroup v2, four loads of different shape in it, and
`pernode-agent observe` watching them.

    kernel_demo.py BUILD_DIR [--check]
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from lib.uml import Machine, UmlError  # noqa: E402

SECONDS = 45
STORY = """A Linux kernel of its own (User Mode Linux) with cgroup v2, and in it:
  /demo/quiet      an idle daemon of 12 MiB
  /demo/bursty     20 ms of work in every 100 ms, 16 MiB
  /demo/throttled  wants a whole CPU, has a quota of 10 %: demand is more than usage
  /demo/leaky      grows by 2 MiB a second into a limit of 64 MiB: announced before it is killed
"""


def run(build: Path, output: str) -> str | None:
    """Boots, runs and powers off. With output text the guest's console is ours; else what it printed."""
    with tempfile.TemporaryDirectory(prefix="pernode-demo-") as scratch:
        commands = Path(scratch) / "commands"
        pipe = "" if output == "text" and sys.stdout.isatty() else " | /bin/busybox cat"
        commands.write_text(f"demo /bin/busybox sh {HERE}/kernel_loads.sh {build} {SECONDS} {output}{pipe}\n",
                            encoding="utf-8")
        machine = Machine(memory_bytes=192 << 20, init=[str(HERE.parent / "kernel" / "guest")],
                          log=Path(scratch) / "log", parameters={"commands": str(commands)}, name="pernode-demo",
                          directory=Path(scratch))
        if output != "text":
            machine.boot()
            ended = machine.wait(SECONDS + 90) is not None
            machine.power_cut()
            text = machine.log.read_text(encoding="utf-8", errors="replace")
            return text if ended else None
        kernel = subprocess.Popen(machine.command(), env=machine.environment(), stdin=subprocess.DEVNULL,
                                  start_new_session=True)
        machine.process = kernel
        try:
            kernel.wait(SECONDS + 90)
        finally:
            machine.power_cut()
        return ""


def check(text: str) -> bool:
    """What the demonstration claims, from the JSON that observe ended with."""
    document = next((line for line in text.replace("\r", "").split("\n") if line.startswith('{"')), None)
    if not document:
        print(text[-3000:])
        return False
    have = {Path(c["cgroup"]).name: c for c in json.loads(document)["containers"]}
    passed = failed = 0
    for what, holds in (
            ("quiet needs little", lambda: have["quiet"]["target"]["memory_bytes"] < 32 << 20),
            ("bursty needs a fifth of a CPU", lambda: 150 <= have["bursty"]["target"]["cpu_millicores"] <= 320),
            ("throttled needs more than its quota", lambda: have["throttled"]["target"]["cpu_millicores"] > 150),
            ("leaky is announced before it is killed",
             lambda: have["leaky"]["events"][0]["kind"] == "ahead-of-oom")):
        try:
            good = bool(holds())
        except (KeyError, IndexError):
            good = False
        passed, failed = passed + good, failed + (not good)
        print(f"{'ok' if good else 'FAILED'}  {what}")
    print(f"{passed} passed, {failed} failed")
    return failed == 0


def main(arguments: list[str]) -> int:
    build = Path(arguments[0]).resolve()
    try:
        if "--check" in arguments:
            text = run(build, "json")
            return 0 if text and check(text) else 1
        print(STORY, flush=True)
        run(build, "text")
    except UmlError as error:
        print(f"demo: {error}", file=sys.stderr)
        return 1
    print("\nWith your own recordings: pernode-agent replay FILE. In a real Kubernetes: ./demo")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
