# SPDX-License-Identifier: Apache-2.0
"""Inside a guest: the program `observe` watched from outside, with real loads in real cgroups.

Prints each case like the C tests do, so that one runner counts them all.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
import traceback
from pathlib import Path

ROOT = Path("/sys/fs/cgroup")
AGENT, LOAD = os.environ["PERNODE_AGENT"], os.environ["PERNODE_LOAD"]
MIB = 1 << 20


class Cgroup:
    """A cgroup of a test, with what runs in it."""

    def __init__(self, name: str, **files: str):
        self.name, self.path = "/" + name, ROOT / name
        for parent in reversed(self.path.relative_to(ROOT).parents[:-1]):
            (ROOT / parent).mkdir(exist_ok=True)
            (ROOT / parent / "cgroup.subtree_control").write_text("+cpu +memory")
        self.path.mkdir(exist_ok=True)
        self.loads: list[subprocess.Popen] = []
        for file, value in files.items():
            self.set(file.replace("__", "."), value)

    def set(self, file: str, value: object) -> None:
        (self.path / file).write_text(str(value))

    def number(self, file: str, key: str = "") -> int:
        text = (self.path / file).read_text()
        return int(re.search(rf"^{key} ?(\d+)$", text, re.M)[1])

    def load(self, *arguments: str) -> subprocess.Popen:
        process = subprocess.Popen([LOAD, f"--cgroup={self.path}", *arguments])
        self.loads.append(process)
        return process

    def remove(self) -> None:
        for process in self.loads:
            process.kill()
            process.wait()
        deadline = time.monotonic() + 20
        while True:
            try:
                self.path.rmdir()
                return
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.02)


class Observe:
    """`observe --output=jsonl` in the background: the newest document, and waiting for one."""

    def __init__(self, *arguments: str):
        self.process = subprocess.Popen(
            [AGENT, "observe", "--output=jsonl", "--duration=0", *arguments], stdout=subprocess.PIPE, text=True)
        self.changed = threading.Condition()
        self.containers: dict[str, dict] = {}
        self.documents = 0
        self.thread = threading.Thread(target=self._read, daemon=True)
        self.thread.start()

    def _read(self) -> None:
        for line in self.process.stdout:
            document = json.loads(line)
            with self.changed:
                self.containers = {c["cgroup"]: c for c in document["containers"]}
                self.documents += 1
                self.changed.notify_all()

    def wait(self, what: str, condition, seconds: float = 60):
        """The first true value of condition(containers)."""
        deadline = time.monotonic() + seconds
        with self.changed:
            while True:
                try:
                    value = condition(self.containers)
                except KeyError:
                    value = None
                if value:
                    return value
                left = deadline - time.monotonic()
                if left <= 0:
                    raise AssertionError(f"not within {seconds} s: {what}; last: {self.containers}")
                self.changed.wait(left)

    def stop(self, how: int = signal.SIGTERM) -> int:
        self.process.send_signal(how)
        status = self.process.wait(20)
        self.thread.join(20)
        return status


def target(container: dict, resource: str) -> int:
    return container["target"].get(resource, 0)


def kinds(container: dict) -> list[str]:
    return [e["kind"] for e in container["events"]]


def an_oom_kill_raises_the_memory_target_within_a_second() -> None:
    leaf = Cgroup("oom/ctr", memory__max="20971520", memory__oom__group="1")
    observe = Observe("/oom/*")
    observe.wait("the cgroup is seen", lambda c: c["/oom/ctr"])
    before = target(observe.containers["/oom/ctr"], "memory_bytes")
    kill = leaf.load("--leak=65536")
    kill.wait()
    killed, documents = time.monotonic(), observe.documents
    after = observe.wait("the target is raised", lambda c: c["/oom/ctr"]["oomKills"] == 1 and c["/oom/ctr"], 20)
    print(f"note: raised target shown {time.monotonic() - killed:.2f} s after the kill")
    # There is a document each second: the next one has it, or the one after when that was just being written.
    assert observe.documents <= documents + 2, observe.documents - documents
    assert target(after, "memory_bytes") >= 20 * MIB + 16 * MIB > before
    assert after["events"][-1]["kind"] == "oom" and after["events"][-1]["class"] == "limit"
    assert after["lowerBound"]["memory_bytes"] > 20 * MIB
    assert observe.stop() == 0
    leaf.remove()


def a_busy_loop_under_a_quota_climbs_to_its_need() -> None:
    leaf = Cgroup("climb/ctr")
    leaf.load("--busy=100/100")
    # What it takes when nothing holds it back: one CPU, less what this guest has to do besides.
    before, begin = leaf.number("cpu.stat", "usage_usec"), time.monotonic()
    time.sleep(3)
    free = (leaf.number("cpu.stat", "usage_usec") - before) / (time.monotonic() - begin) / 1000
    leaf.set("cpu.max", "10000 100000")
    observe = Observe("--cpu-window=3s", "/climb/*")
    first = observe.wait("a throttled sample", lambda c: target(c["/climb/ctr"], "cpu_millicores") >= 170 and c["/climb/ctr"])
    assert target(first, "cpu_millicores") <= 270, first     # about twice its quota
    # Its limit follows its target until that is enough. A window in which the host gave this guest little CPU throttles
    # nothing and teaches nothing; then a later one does.
    steps, now = [100], first
    deadline = time.monotonic() + 120
    while target(now, "cpu_millicores") < 0.8 * free:
        assert time.monotonic() < deadline, (steps, free, now)
        if target(now, "cpu_millicores") > steps[-1]:
            steps.append(target(now, "cpu_millicores"))
            leaf.set("cpu.max", f"{steps[-1] * 100} 100000")
        seen = now["samples"]
        # One window has both quotas in it; the second one tells.
        now = observe.wait("two windows", lambda c, n=seen: c["/climb/ctr"]["samples"] >= n + 2 and c["/climb/ctr"])
    steps.append(target(now, "cpu_millicores"))
    print(f"note: quota {' -> '.join(map(str, steps))}m; without one it takes {free:.0f}m")
    # Not at once, and it does not run away: above its need it asks for no more.
    assert 4 <= len(steps) and steps[-1] <= 1.6 * max(free, 900), steps
    leaf.set("cpu.max", f"{steps[-1] * 100} 100000")
    seen = now["samples"]
    last = observe.wait("three windows with enough", lambda c: c["/climb/ctr"]["samples"] >= seen + 3 and c["/climb/ctr"])
    assert target(last, "cpu_millicores") <= 1.6 * max(free, 900), (steps, last)
    assert observe.stop() == 0
    leaf.remove()


def bursts_under_a_quota_are_not_overstated() -> None:
    shapes = {"fast": ("20/100", 200, (100, 150)), "slow": ("60/1000", 60, (50, 100))}
    free, held = {}, {}
    for name, (busy, _, quotas) in shapes.items():
        free[name] = Cgroup(f"burst/free-{name}")
        free[name].load(f"--busy={busy}")
        for quota in quotas:
            held[name, quota] = Cgroup(f"burst/{name}-{quota}", cpu__max=f"{quota * 100} 100000")
            held[name, quota].load(f"--busy={busy}")
    # This kernel counts CPU time in ticks of 10 ms: shorter windows would measure that.
    observe = Observe("/burst/*")
    last = observe.wait("three windows each", lambda c: len(c) == 6 and all(x["samples"] >= 3 for x in c.values()) and c)
    assert observe.stop() == 0
    for (name, quota), leaf in held.items():
        unthrottled = target(last[free[name].name], "cpu_millicores")
        throttled = target(last[leaf.name], "cpu_millicores")
        print(f"note: {shapes[name][0]} ms: unthrottled {unthrottled}m, under {quota}m {throttled}m")
        assert throttled <= 1.5 * unthrottled, (name, quota, throttled, unthrottled)
    for leaf in [*free.values(), *held.values()]:
        leaf.remove()


def leaks_are_announced_before_their_kill() -> None:
    big = Cgroup("leak/big", memory__max=str(128 * MIB), memory__oom__group="1")
    small = Cgroup("leak/small", memory__max=str(32 * MIB), memory__oom__group="1")
    cache = Cgroup("leak/cache", memory__max=str(24 * MIB))
    cache.load("--read=/usr/lib/gcc")
    loads = {"/leak/big": big.load("--anon=60", "--leak=2048"), "/leak/small": small.load("--leak=2048")}
    observe = Observe("/leak/*")
    announced, killed = {}, {}
    deadline = time.monotonic() + 120
    while len(killed) < len(loads) and time.monotonic() < deadline:
        for name, process in loads.items():
            if name not in announced and "ahead-of-oom" in kinds(observe.containers.get(name, {"events": []})):
                announced[name] = time.monotonic()
                limit = big if name == "/leak/big" else small
                assert target(observe.containers[name], "memory_bytes") > limit.number("memory.max")
            if name not in killed and process.poll() is not None:
                killed[name] = time.monotonic()
        time.sleep(0.05)
    for name in loads:
        assert name in killed, f"{name} lives"
        assert name in announced and announced[name] < killed[name], f"{name} was not announced"
        print(f"note: {name} announced {killed[name] - announced[name]:.1f} s before its kill")
    assert killed["/leak/big"] - announced["/leak/big"] >= 10
    last = observe.wait("the kills", lambda c: all(c[n]["oomKills"] == 1 for n in loads) and c, 10)
    assert cache.number("memory.events", "max") > 0
    assert not kinds(last["/leak/cache"]), last["/leak/cache"]
    assert observe.stop() == 0
    for leaf in (big, small, cache):
        leaf.remove()


def cgroups_come_and_go_and_stay_marked() -> None:
    steady = Cgroup("come/steady")
    observe = Observe("/come/*")
    observe.wait("the steady one", lambda c: c["/come/steady"])
    passing = Cgroup("come/passing")
    passing.load("--anon=8")
    observe.wait("the new one", lambda c: c["/come/passing"]["memory"]["last_bytes"] > 8 * MIB)
    passing.remove()
    gone = observe.wait("its end", lambda c: c["/come/passing"]["gone"] and c["/come/passing"])
    assert kinds(gone) == ["gone"] and gone["memory"]["last_bytes"] is None
    back = Cgroup("come/passing")
    observe.wait("its return", lambda c: not c["/come/passing"]["gone"])
    assert observe.stop(signal.SIGINT) == 0
    back.remove()
    steady.remove()


def json_is_one_document_at_the_end_also_after_a_signal() -> None:
    leaf = Cgroup("json/ctr")
    leaf.load("--anon=2", "--busy=10/100")
    for how in (None, signal.SIGINT, signal.SIGTERM):
        duration = "3s" if how is None else "0"
        process = subprocess.Popen([AGENT, "observe", "--output=json", f"--duration={duration}", "--interval=500ms",
                                    "json/*"], stdout=subprocess.PIPE, text=True)
        if how is not None:
            time.sleep(2)       # lets it see something
            process.send_signal(how)
        out, _ = process.communicate(timeout=30)
        assert process.returncode == 0
        (container,) = json.loads(out)["containers"]
        assert container["cgroup"] == "/json/ctr"
        assert container["samples"] >= 1    # the unfinished window was closed
        assert container["memory"]["last_bytes"] > 0 and container["oomKills"] == 0
        assert target(container, "cpu_millicores") > 0
    leaf.remove()


def the_table_reads_well() -> None:
    leaf = Cgroup("table/ctr", cpu__max="5000 100000")
    leaf.load("--busy=20/100")
    out = subprocess.run([AGENT, "observe", "--duration=3s", "--cpu-window=1s", "/table/*"], capture_output=True,
                         text=True, timeout=30, check=True).stdout
    header, row = out.splitlines()[:2]
    assert header.split() == ["CGROUP", "CPU", "MEMORY", "THROTTLED", "OOM", "->CPU", "->MEMORY"], out
    assert row.startswith("/table/ctr") and "%" in row, out
    assert "\x1b" not in out
    leaf.remove()


def the_live_table_redraws_on_a_terminal() -> None:
    leaf = Cgroup("live/ctr")
    main, side = os.openpty()
    process = subprocess.Popen([AGENT, "observe", "--duration=2s", "--interval=500ms", "/live/*"], stdout=side)
    os.close(side)
    out = b""
    try:
        while chunk := os.read(main, 4096):
            out += chunk
    except OSError:
        pass
    assert process.wait(20) == 0
    assert out.count(b"\x1b[H") >= 4 and b"/live/ctr" in out, out
    os.close(main)
    leaf.remove()


def preflight_passes_on_this_kernel() -> None:
    result = subprocess.run([AGENT, "preflight", "--state-dir=/run"], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout
    assert "cgroup v2 at /sys/fs/cgroup" in result.stdout
    assert re.search(r"^warn +psi", result.stdout, re.M), result.stdout


def an_unprivileged_user_sees_the_same() -> None:
    leaf = Cgroup("nobody/ctr", memory__max="20971520", memory__oom__group="1")
    process = subprocess.Popen([AGENT, "observe", "--output=json", "--duration=6s", "/nobody/*"],
                               stdout=subprocess.PIPE, text=True, user=65532, group=65532, extra_groups=[])
    time.sleep(1.5)     # its baseline
    leaf.load("--leak=65536").wait()
    out, _ = process.communicate(timeout=30)
    (container,) = json.loads(out)["containers"]
    assert container["oomKills"] == 1 and kinds(container)[-1] == "oom", container
    leaf.remove()


def wrong_words_are_refused() -> None:
    for arguments, text in ((["--interval=1"], "interval"), (["--outputt=json"], "output"),
                            (["--output=xml"], "json"), (["--duration=-1s"], "duration")):
        result = subprocess.run([AGENT, "observe", *arguments], capture_output=True, text=True, check=False)
        assert result.returncode == 2 and text in result.stderr, (arguments, result)
    result = subprocess.run([AGENT, "observe", "--cgroup-root=/nowhere"], capture_output=True, text=True, check=False)
    assert result.returncode == 1 and "/nowhere" in result.stderr, result


CASES = [
    an_oom_kill_raises_the_memory_target_within_a_second,
    a_busy_loop_under_a_quota_climbs_to_its_need,
    bursts_under_a_quota_are_not_overstated,
    leaks_are_announced_before_their_kill,
    cgroups_come_and_go_and_stay_marked,
    json_is_one_document_at_the_end_also_after_a_signal,
    the_table_reads_well,
    the_live_table_redraws_on_a_terminal,
    preflight_passes_on_this_kernel,
    an_unprivileged_user_sees_the_same,
    wrong_words_are_refused,
]


def main(wanted: list[str]) -> int:
    failed = 0
    for case in CASES:
        name = case.__name__
        if wanted and name not in wanted:
            continue
        print(f"[ RUN      ] {name}", flush=True)
        try:
            case()
            print(f"[       OK ] {name}", flush=True)
        except Exception as error:  # pylint: disable=broad-except
            failed += 1
            line = traceback.extract_tb(error.__traceback__)[-1].lineno
            print(f"line {line}: {type(error).__name__}: {error}\n[  FAILED  ] {name}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
