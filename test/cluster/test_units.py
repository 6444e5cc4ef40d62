# SPDX-License-Identifier: Apache-2.0
"""Parts of the test cluster that need no cluster."""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import unittest
from pathlib import Path
from unittest import mock

from lab import build, builtin, cli, errors, images, network, nodespec, preflight, process, remote, wait
from lab.cluster import Cluster
from lib import uml

wire = remote.wire


class Scratch(unittest.TestCase):
    """A directory of its own for each test."""

    def setUp(self):
        self.directory = Path(tempfile.mkdtemp(prefix="pernode-units-"))
        self.addCleanup(shutil.rmtree, self.directory)


class NodeOptions(unittest.TestCase):
    def test_every_option_arrives(self):
        spec = nodespec.parse("x,memory=1G,label=a.io/b=c,label=d=,taint=k=v:NoSchedule,"
                              "taint=only:NoExecute,cgroup-root=/lab,reserve-cpu=100m,"
                              "reserve-memory=64Mi,max-pods=30,runtime=crun")
        self.assertEqual(spec.memory_bytes, 1 << 30)
        self.assertEqual(spec.labels, {"a.io/b": "c", "d": ""})
        self.assertEqual(spec.taints, [{"key": "k", "value": "v", "effect": "NoSchedule"},
                                       {"key": "only", "value": "", "effect": "NoExecute"}])
        self.assertEqual((spec.cgroup_root, spec.runtime, spec.max_pods), ("/lab", "crun", 30))
        self.assertEqual(spec.reserved, {"cpu": "100m", "memory": "64Mi"})

    def test_a_wrong_option_is_named_with_what_is_accepted(self):
        for text, part in (("x,memory=5", "memory=5"), ("x,memory=10M", "too small"),
                           ("x,colour=red", "colour"), ("x,taint=k:Never", "taint=k:Never"),
                           ("X", "lower-case"), ("x,cgroup-root=lab", "absolute"),
                           ("x,label=a", "KEY=VALUE"), ("x,runtime=kata", "runc"),
                           ("x,max-pods=lots", "not a number"), ("x,memory", "no value")):
            with self.subTest(text), self.assertRaises(errors.LabError) as raised:
                nodespec.parse(text)
            self.assertIn(part, str(raised.exception))

    def test_the_fleet_has_a_bound(self):
        self.assertEqual([spec.name for spec in nodespec.default_fleet(3)], ["a", "b", "c"])
        for count in (0, 21):
            with self.assertRaises(errors.LabError):
                nodespec.default_fleet(count)


class Images(Scratch):
    def test_equal_files_give_equal_bytes(self):
        binary = self.directory / "program"
        binary.write_bytes(b"\x7fELF")
        binary.chmod(0o755)
        first, second = self.directory / "1.tar", self.directory / "2.tar"
        ids = [images.build_image(archive, "localhost/x:1", {"/bin/program": binary, "/etc/a": b"z"},
                                  entrypoint=["/bin/program"], user="65532:65532")
               for archive in (first, second)]
        os.utime(binary, (1, 1))
        self.assertEqual(ids[0], ids[1])
        self.assertEqual(first.read_bytes(), second.read_bytes())
        self.assertEqual(images.archive_tags(first), ["localhost/x:1"])

    def test_bad_images_are_refused(self):
        for tag, files in (("nameless", {}), ("localhost/x", {}), ("localhost/x:1", {"rel": b""}),
                           ("localhost/x:1", {"/a/../b": b""}),
                           ("localhost/x:1", {"/a": self.directory / "missing"})):
            with self.subTest(tag=tag, files=files), self.assertRaises(errors.LabError):
                images.build_image(self.directory / "x.tar", tag, files, entrypoint=["/a"])
        self.assertEqual(list(self.directory.iterdir()), [])

    def test_a_file_that_is_no_archive_is_named(self):
        bad = self.directory / "bad.tar"
        bad.write_bytes(os.urandom(4096))
        with self.assertRaisesRegex(errors.LabError, "bad.tar: not an image archive"):
            images.archive_tags(bad)

    def test_a_newer_image_of_the_same_name_replaces_the_stored_one(self):
        stored = self.directory / "stored"
        for content in (b"old", b"new"):
            images.build_image(self.directory / "x.tar", "localhost/x:1", {"/x": content},
                               entrypoint=["/x"])
            kept = builtin.store(self.directory / "x.tar", ["localhost/x:1"], stored)
        self.assertEqual([path.name for path in stored.iterdir()], [kept.name])


class Builds(Scratch):
    """With a compiler that is a script, so that each way to fail takes no time."""

    def setUp(self):
        super().setUp()
        self.go = self.directory / "go"
        finder = mock.patch.object(build, "_find_go", return_value=str(self.go))
        cache = mock.patch.dict(os.environ, {"XDG_CACHE_HOME": str(self.directory / "cache")})
        for patch in (finder, cache):
            patch.start()
            self.addCleanup(patch.stop)

    def _compiler(self, script):
        self.go.write_text("#!/bin/sh\n" + script, encoding="utf-8")
        self.go.chmod(0o755)

    _WORKS = 'while [ $# -gt 1 ]; do [ "$1" = -o ] && : > "$2"; shift; done\n'

    def test_a_finished_build_is_used_again_without_the_compiler(self):
        self._compiler(self._WORKS)
        binaries = build.build()
        self.assertTrue((binaries / "kubelet").exists())
        self._compiler("exit 1\n")
        self.assertEqual(build.build(), binaries)

    def test_a_failed_build_shows_why_and_is_not_taken_for_finished(self):
        self._compiler(f'case "$*" in *kubelet*) echo cannot find module; exit 1;; esac\n{self._WORKS}')
        with self.assertRaisesRegex(errors.LabError, "(?s)building kubelet failed.*cannot find module"):
            build.build()
        self.assertFalse(build.is_built())
        with self.assertRaisesRegex(errors.LabError, "cluster build"):
            build.binary("kubelet")
        self._compiler(self._WORKS)
        build.build()
        self.assertTrue(build.is_built())

    def test_what_an_interrupted_build_left_is_cleaned(self):
        part = build.build_dir().parent / "part-old"
        part.mkdir(parents=True)
        build.build_dir().mkdir()
        self.assertFalse(build.is_built())
        self._compiler(self._WORKS)
        build.build()
        self.assertFalse(part.exists())
        self.assertTrue(build.is_built())

    def test_no_space_is_said_before_building(self):
        with mock.patch.object(build, "NEED_FREE_BYTES", 1 << 60), \
                self.assertRaisesRegex(errors.LabError, "make room"):
            build.build()


class Preflight(unittest.TestCase):
    def test_all_that_is_missing_is_said_at_once_with_what_to_do(self):
        fleet = nodespec.default_fleet(1)
        with mock.patch.dict(preflight.DEBIAN_PROGRAMS, {"no-such-program": "no-such-package"}), \
                mock.patch.object(network, "TUN_DEVICE", Path("/dev/no-tun")), \
                mock.patch.object(preflight, "NODE_DISK_BYTES", 1 << 60), \
                mock.patch.dict(os.environ, {uml.KERNEL_VARIABLE: "no-such-kernel"}), \
                self.assertRaises(errors.LabError) as raised:
            preflight.check(fleet, Path(tempfile.gettempdir()))
        for part in ("apt-get install no-such-package", "/dev/no-tun", "modprobe tun", "make room",
                     "user-mode-linux"):
            self.assertIn(part, str(raised.exception))

    def test_guest_memory_needs_a_place_that_is_big_enough(self):
        with self.assertRaisesRegex(uml.UmlError, "set PERNODE_RAM_DIR"):
            uml.choose_ram_dir(1 << 60)
        self.assertTrue(uml.choose_ram_dir(1 << 20).is_dir())

    def test_a_kernel_command_line_refuses_what_it_cannot_carry(self):
        machine = uml.Machine(64 << 20, ["/sbin/my init"], Path("/dev/null"))
        with self.assertRaisesRegex(uml.UmlError, "spaces"):
            machine.command(Path("/usr/bin/linux.uml"))


class Processes(Scratch):
    def test_a_number_used_again_is_not_ours(self):
        mine = process.Process.of(os.getpid())
        self.assertTrue(mine.alive())
        self.assertFalse(process.Process(mine.pid, mine.start_ticks + 1, mine.boot_id).alive())
        self.assertFalse(process.Process(mine.pid, mine.start_ticks, "another boot").alive())

    def test_the_marked_are_found_and_ended_and_nobody_else(self):
        mark = os.urandom(8).hex()
        env = {**os.environ, process.MARK_VARIABLE: mark}
        ours = process.launch(["sleep", "100"], self.directory / "log", env)
        other = process.launch(["sleep", "100"], self.directory / "log",
                               {**env, process.MARK_VARIABLE: mark + "0"})
        self.addCleanup(other.end, 0)
        wait.until(lambda: process.marked(mark) == [ours], "the marked process is found", 10)
        ours.end(5)
        self.assertFalse(ours.alive())
        self.assertTrue(other.alive())

    def test_a_torn_record_counts_as_none(self):
        path = self.directory / "x.json"
        for text in ("", "{", "[]", '{"pid": 1}'):
            path.write_text(text, encoding="utf-8")
            self.assertIsNone(process.recall(path))


class Waiting(Scratch):
    def test_a_condition_that_does_not_come_is_told_with_its_last_answer(self):
        with self.assertRaisesRegex(errors.LabError, "(?s)not within 0 s: rain .*last answer: 0.*sky"):
            wait.until(lambda: 0, "rain", 0, lambda: "blue sky")

    def test_what_cannot_come_ends_the_waiting_at_once(self):
        def hopeless():
            raise errors.Hopeless("the kernel has ended")
        with self.assertRaisesRegex(errors.Hopeless, "kernel"):
            wait.until(hopeless, "node", 3600)

    def test_a_line_in_a_file_is_waited_for(self):
        path = self.directory / "log"
        timer = threading.Timer(0.2, lambda: path.write_text("one\nready 7\n", encoding="utf-8"))
        timer.start()
        self.addCleanup(timer.join)
        self.assertEqual(wait.until_file(path, r"ready \d", 10), "ready 7")

    def test_conditions_compare_numbers_as_numbers(self):
        kube = mock.Mock()
        for actual, condition, expected in (
                ("10", "{.x}>=9", True), ("10", ".x==10", True), ("a", "{.x}==a", True),
                ("", "{.x}==3", False), ("OOMKilled x", "{.x}=~^OOM", True), ("3", "{.x}!=3", False)):
            kube.run.return_value.stdout = actual
            with self.subTest(condition):
                self.assertEqual(wait.check(kube, ["pod", "x"], condition), expected)
        with self.assertRaisesRegex(ValueError, "JSONPATH OP VALUE"):
            wait.check(kube, ["pod", "x"], "nothing")


class Wire(unittest.TestCase):
    def setUp(self):
        self.ours, self.theirs = socket.socketpair()
        self.addCleanup(self.ours.close)
        self.addCleanup(self.theirs.close)

    def test_long_bytes_arrive_whole_in_several_frames(self):
        data = os.urandom(3 * wire.MAX_FRAME_BYTES + 1)
        threading.Thread(target=wire.send, args=(self.ours, wire.OUTPUT, data)).start()
        received = b""
        while len(received) < len(data):
            kind, piece = wire.receive(self.theirs)
            self.assertEqual(kind, wire.OUTPUT)
            received += piece
        self.assertEqual(received, data)

    def test_an_early_end_and_a_giant_frame_are_errors(self):
        self.ours.sendall(wire.HEADER.pack(b"o", 1 << 31))
        with self.assertRaisesRegex(wire.WireError, "at most"):
            wire.receive(self.theirs)
        self.ours.sendall(wire.HEADER.pack(b"o", 10) + b"abc")
        self.ours.close()
        with self.assertRaisesRegex(wire.WireError, "ended"):
            wire.receive(self.theirs)


class Workload(Scratch):
    """The program itself, on this machine."""

    @classmethod
    def setUpClass(cls):
        cls.scratch = Path(tempfile.mkdtemp(prefix="pernode-workload-"))
        cls.addClassCleanup(shutil.rmtree, cls.scratch)
        cls.program = cls.scratch / "workload"
        builtin.compile_static(builtin.CLUSTER_ROOT / "workload", cls.program)

    def _run(self, instruction):
        return subprocess.run([self.program], env={"WORKLOAD": instruction, "WORKLOAD_PORT": "0"},
                              capture_output=True, text=True, timeout=10, check=False)

    def test_a_wrong_instruction_ends_it_with_the_reason(self):
        for text in ("cpu=fast", "memory=64Xi", "memory=-1", "leak=", "burst=100m/2s/1s",
                     "children=65", "exit=256", "colour=red", "cpu", "cpu=99999999999999999999"):
            with self.subTest(text):
                done = self._run(text)
                self.assertEqual(done.returncode, 2)
                self.assertRegex(done.stderr, "WORKLOAD: .*expected")

    def test_it_ends_as_told(self):
        self.assertEqual(self._run("cpu=10m exit=7").returncode, 7)

    def test_a_file_changes_what_it_does(self):
        told = self.directory / "told"
        running = subprocess.Popen([self.program], env={"WORKLOAD_FILE": str(told),
                                                        "WORKLOAD_PORT": "0"})
        self.addCleanup(running.kill)
        told.write_text("memory=32Mi", encoding="ascii")

        def resident_bytes():
            pages = Path(f"/proc/{running.pid}/statm").read_text(encoding="ascii").split()[1]
            return int(pages) * os.sysconf("SC_PAGE_SIZE")

        wait.until(lambda: resident_bytes() > 32 << 20, "32 MiB are held", 20)
        told.write_text("memory=1Mi ", encoding="ascii")
        wait.until(lambda: resident_bytes() < 16 << 20, "they are given back", 20)
        told.write_text("exit=5", encoding="ascii")
        self.assertEqual(running.wait(10), 5)

    def test_cpu_is_used_as_told(self):
        running = subprocess.Popen([self.program], env={"WORKLOAD": "cpu=200m", "WORKLOAD_PORT": "0"})
        self.addCleanup(running.kill)

        def used_seconds():
            fields = Path(f"/proc/{running.pid}/stat").read_text(encoding="ascii").rpartition(")")[2]
            return sum(map(int, fields.split()[11:13])) / os.sysconf("SC_CLK_TCK")

        began = process.time.monotonic()
        wait.until(lambda: used_seconds() >= 0.4, "0.4 s of CPU are used", 60)
        # On a busy machine it may take longer, never shorter.
        self.assertGreater(process.time.monotonic() - began, 1.5)


class CommandLine(unittest.TestCase):
    def _run(self, *arguments):
        command = [sys.executable, Path(__file__).with_name("cluster"), *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)

    def test_usage_errors_exit_2_and_failures_exit_1_with_what_to_do(self):
        name = f"--name=none-{os.getpid()}"
        for arguments, status, part in (
                (["--help"], 0, "down"), ([], 2, "VERB"), (["fly"], 2, "fly"),
                (["--name=Bad Name", "status"], 1, "lower-case"),
                ([name, "kubectl", "get", "nodes"], 1, "cluster up"),
                ([name, "node", "kill", "z"], 1, "no such node"),
                ([name, "up", "--memory=5"], 1, "not a size"),
                ([name, "up", "--node=a", "--node=a"], 1, "twice"),
                ([name, "node", "hang", "z", "--wipe"], 1, "z"),
                ([name, "down"], 0, "")):
            with self.subTest(arguments):
                done = self._run(*arguments)
                self.assertEqual(done.returncode, status, done.stderr)
                self.assertIn(part, done.stdout + done.stderr)
        self.assertFalse(Cluster(name.removeprefix("--name=")).directory.exists())

    def test_every_verb_has_a_help_line(self):
        shown = cli.parser().format_help()
        for verb in ("build", "up", "down", "status", "kubectl", "helm", "exec", "logs", "shell",
                     "load-image", "build-image", "node", "partition", "heal", "clock", "wait", "etcd",
                     "apiserver", "instruct"):
            self.assertRegex(shown, rf"(?m)^    {verb}\b")
