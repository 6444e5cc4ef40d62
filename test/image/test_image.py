# SPDX-License-Identifier: Apache-2.0
"""The release binary and its image, as built by scripts/build-image. Run by ./run."""

import hashlib
import json
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tarfile
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BINARY = ROOT / "build/static/pernode-agent"
ARCHIVE = ROOT / "build/static/pernode-agent.tar"
MAX_BYTES = 6_000_000
PT_LOAD, PT_DYNAMIC, PT_INTERP, PT_GNU_STACK, PT_GNU_RELRO = 1, 2, 3, 0x6474E551, 0x6474E552
EXECUTABLE, WRITABLE = 1, 2


def run(*command, **options):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=600, **options)


def must(*command, **options):
    done = run(*command, **options)
    if done.returncode:
        raise AssertionError(f"{command}: {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def segments(path):
    """(type, flags) of the program headers of an ELF file."""
    data = path.read_bytes()
    start, = struct.unpack_from("<Q", data, 32)
    size, count = struct.unpack_from("<HH", data, 54)
    return [struct.unpack_from("<II", data, start + i * size) for i in range(count)]


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


class Binary(unittest.TestCase):
    def test_needs_nothing_at_run_time(self):
        self.assertNotIn(PT_INTERP, [kind for kind, _ in segments(BINARY)])
        self.assertNotIn("NEEDED", must("readelf", "--dynamic", BINARY))

    def test_is_hardened(self):
        found = segments(BINARY)
        self.assertIn("DYN", must("readelf", "--file-header", BINARY))
        self.assertIn(PT_GNU_RELRO, [kind for kind, _ in found])
        self.assertFalse(dict(found)[PT_GNU_STACK] & EXECUTABLE, "the stack is executable")
        for kind, flags in found:
            if kind == PT_LOAD:
                self.assertNotEqual(flags & (WRITABLE | EXECUTABLE), WRITABLE | EXECUTABLE)

    def test_holds_no_path_of_the_machine_that_built_it(self):
        data = BINARY.read_bytes()
        for path in (ROOT, pathlib.Path.home()):
            # As a path of its own: libraries hold relative ones, such as ./src/unix/core.c.
            found = re.search(rb"(?:^|[^A-Za-z0-9._/-])" + re.escape(str(path)).encode() + rb"/[^\0\n]*", data)
            self.assertIsNone(found, path)

    def test_runs_where_there_is_nothing_else(self):
        with tempfile.TemporaryDirectory() as root:
            shutil.copy(BINARY, root)
            alone = ("unshare", "--map-root-user", "chroot", root, "/pernode-agent")
            version = must(*alone, "--version")
            self.assertRegex(version, r"^pernode-agent \d+\.\d+\.\d+ \(commit [0-9a-f]{12}\)\n.*\bopenssl 3\.")
            refused = run(*alone, "prepare-state", "--state-dir=/nowhere")
            self.assertEqual(refused.returncode, 1)
            self.assertIn("/nowhere", refused.stderr)

    def test_another_folder_gives_the_same_bytes(self):
        if must("git", "-C", ROOT, "status", "--porcelain", "--untracked-files=no"):
            self.skipTest("the work tree has changes that a clone does not get")
        with tempfile.TemporaryDirectory() as folder:
            must("git", "clone", "--quiet", "--shared", ROOT, f"{folder}/elsewhere")
            built = must("scripts/build-release", cwd=f"{folder}/elsewhere").strip()
            self.assertEqual(digest(pathlib.Path(built)), digest(BINARY))


class Names(unittest.TestCase):
    """Names of API servers, over TLS 1.3, with no other machine involved: see names.py."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        folder = pathlib.Path(cls.folder.name)
        must("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
             "-subj", "/CN=names", "-addext", "subjectAltName=DNS:api.test,DNS:listed.example",
             "-keyout", folder / "key.pem", "-out", folder / "cert.pem")
        (folder / "hosts").write_text("127.0.0.1 localhost listed.example\n")
        (folder / "resolv.conf").write_text("nameserver 127.0.0.1\n")
        lines = must("unshare", "--map-root-user", "--net", "--mount", sys.executable, "-B", HERE / "names.py", BINARY, folder,
                     "api.test", "listed.example", "unknown.example", "other.test").splitlines()
        cls.by_server, cls.by_file, cls.unknown, cls.unlisted = (json.loads(line) for line in lines)

    def test_a_name_server_is_asked(self):
        self.assertEqual(self.by_server["exit"], 0, self.by_server["output"])
        self.assertIn("api.test", self.by_server["asked"])

    def test_the_hosts_file_comes_first(self):
        self.assertEqual(self.by_file["exit"], 0, self.by_file["output"])
        self.assertEqual(self.by_file["asked"], [])

    def test_an_unknown_name_is_an_error_that_names_it(self):
        self.assertEqual(self.unknown["exit"], 1)
        self.assertIn("unknown.example", self.unknown["output"])

    def test_a_certificate_for_another_name_is_refused(self):
        self.assertEqual(self.unlisted["exit"], 1)
        self.assertRegex(self.unlisted["output"], "(?i)certificate|subject name")


class Chart(unittest.TestCase):
    # What the chart itself decides: agent.publish, agent.port, agent.stateDirectory, and what is fixed in a pod.
    DECIDED = {"node-name", "pod-source", "publish", "cgroup-root", "state-dir", "listen", "kubeconfig"}

    def test_every_flag_of_run_is_a_value_and_every_value_a_flag(self):
        flags = set(re.findall(r"^  --([a-z-]+)", must(BINARY, "run", "--help"), re.M))
        schema = json.loads((ROOT / "helm/pernode/values.schema.json").read_text())
        values = set(schema["properties"]["agent"]["properties"]["config"]["properties"])
        self.assertLessEqual(self.DECIDED, flags)
        self.assertEqual(values, flags - self.DECIDED)


class Image(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with tarfile.open(ARCHIVE) as tar:
            cls.members = tar.getmembers()
            cls.manifest = json.load(tar.extractfile("manifest.json"))
            cls.config = json.load(tar.extractfile(cls.manifest[0]["Config"]))
            cls.layer = tar.extractfile(cls.manifest[0]["Layers"][0]).read()
        with tempfile.NamedTemporaryFile() as file:
            file.write(cls.layer)
            file.flush()
            with tarfile.open(file.name) as tar:
                cls.files = tar.getmembers()
                cls.binary = tar.extractfile("pernode-agent").read()

    def test_fits(self):
        self.assertLessEqual(ARCHIVE.stat().st_size, MAX_BYTES)

    def test_holds_the_binary_and_nothing_else(self):
        self.assertEqual([file.name for file in self.files if not file.isdir()], ["pernode-agent"])
        self.assertEqual(self.binary, BINARY.read_bytes())
        binary = next(file for file in self.files if file.isfile())
        self.assertEqual((binary.mode, binary.uid, binary.gid), (0o755, 0, 0))

    def test_runs_as_65532_with_the_binary_as_entry(self):
        self.assertEqual(len(self.manifest), 1)
        self.assertEqual(self.config["config"]["User"], "65532:65532")
        self.assertEqual(self.config["config"]["Entrypoint"], ["/pernode-agent"])
        self.assertEqual(self.config["rootfs"]["diff_ids"], ["sha256:" + hashlib.sha256(self.layer).hexdigest()])

    def test_is_for_this_machine(self):
        self.assertEqual(self.config["os"], "linux")
        self.assertEqual(self.config["architecture"], {"x86_64": "amd64", "aarch64": "arm64"}[os.uname().machine])

    def test_name_is_the_one_the_chart_asks_for(self):
        version = re.search(r"^appVersion: (\S+)", (ROOT / "helm/pernode/Chart.yaml").read_text(), re.M)[1]
        repository = re.search(r"^    repository: (\S+)", (ROOT / "helm/pernode/values.yaml").read_text(), re.M)[1]
        self.assertEqual(self.manifest[0]["RepoTags"], [f"{repository}:{version}"])

    def test_carries_no_time_of_day(self):
        for member in (*self.members, *self.files):
            self.assertEqual(member.mtime, 0, member.name)
        self.assertEqual(self.config["created"], "1970-01-01T00:00:00Z")

    def test_second_time_gives_the_same_bytes(self):
        with tempfile.TemporaryDirectory() as folder:
            must(ROOT / "scripts/build-image", f"{folder}/again.tar")
            self.assertEqual(digest(pathlib.Path(f"{folder}/again.tar")), digest(ARCHIVE))


class Counting(unittest.TextTestResult):
    passed = 0

    def addSuccess(self, test):
        super().addSuccess(test)
        self.passed += 1


if __name__ == "__main__":
    result = unittest.main(exit=False, testRunner=unittest.TextTestRunner(resultclass=Counting, verbosity=2)).result
    failed = len(result.failures) + len(result.errors)
    skipped = f", {len(result.skipped)} skipped" if result.skipped else ""
    print(f"{result.passed} passed, {failed} failed{skipped}", flush=True)
    sys.exit(1 if failed or not result.passed else 0)
