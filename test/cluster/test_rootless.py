# SPDX-License-Identifier: Apache-2.0
"""A cluster of somebody who is not root."""

import json
import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

from lab import build, workload

PROJECT = Path(__file__).resolve().parents[2]
NOBODY = 65534

# In a mount namespace of its own, the checkout and the built programs lie where that user may read them, and there is a
# tun device as udev would make it. $1: scratch directory, $2: checkout, $3: built programs, $4: who
STAGE = """
set -eu
scratch=$1 checkout=$2 built=$3 who=$4; shift 4
mount --bind "$checkout" "$scratch/project"
mount --bind "$built" "$scratch/cache/pernode/cluster/$(basename "$built")"
mount --bind "$scratch/tun" /dev/net/tun
exec setpriv --reuid="$who" --regid="$who" --clear-groups --no-new-privs env -i HOME="$scratch" \
    XDG_CACHE_HOME="$scratch/cache" PATH=/usr/sbin:/usr/bin:/sbin:/bin "$@"
"""


@unittest.skipIf(os.geteuid() != 0, "not root: then all other tests show the same")
class WithoutRoot(unittest.TestCase):
    def setUp(self):
        self.built = build.build().parent
        self.scratch = Path(tempfile.mkdtemp(prefix="pernode-rootless-", dir="/var/tmp"))
        self.addCleanup(shutil.rmtree, self.scratch, ignore_errors=True)
        (self.scratch / "project").mkdir()
        (self.scratch / "cache/pernode/cluster" / self.built.name).mkdir(parents=True)
        os.mknod(self.scratch / "tun", 0o20666, os.makedev(10, 200))
        (self.scratch / "tun").chmod(0o666)
        for path in (self.scratch, *(self.scratch / "cache").rglob("*"), self.scratch / "cache"):
            os.chown(path, NOBODY, NOBODY)

    def run_as_nobody(self, *argv: str, stdin: str = "", timeout_seconds: float = 300) -> str:
        done = subprocess.run(
            ["timeout", "--kill-after=10", str(timeout_seconds), "unshare", "--mount", "--propagation=private", "sh", "-c", STAGE, "stage",
             self.scratch, PROJECT, self.built, str(NOBODY), *argv], input=stdin, capture_output=True, text=True, check=False, cwd="/")
        self.assertEqual(done.returncode, 0, f"{argv}\n{done.stdout[-4000:]}{done.stderr[-4000:]}")
        return done.stdout

    def cluster(self, *argv: str, stdin: str = "") -> str:
        return self.run_as_nobody("/usr/bin/python3", "-B", f"{self.scratch}/project/test/cluster/cluster",
                                  "--name=rootless", *argv, stdin=stdin)

    def left(self) -> list[str]:
        """The processes that know of the scratch directory."""
        found = []
        for entry in filter(str.isdigit, os.listdir("/proc")):
            try:
                environment = Path("/proc", entry, "environ").read_bytes()
                command = Path("/proc", entry, "cmdline").read_bytes()
            except OSError:
                continue
            if os.fsencode(self.scratch) in environment:
                found.append(f"{entry} {command.decode(errors='replace')[:200]}")
        return found

    def test_another_user_has_a_cluster_with_running_pods_and_leaves_nothing(self):
        try:
            self.run_as_nobody("unshare", "--user", "--map-root-user", "--net", "true")
        except AssertionError as error:
            self.skipTest(f"this machine makes no user namespaces for other users: {str(error)[-200:]}")
        try:
            self.cluster("up", "--nodes=1")
            self.cluster("kubectl", "apply", "-f", "-", stdin=json.dumps(workload.daemonset("load", "default", "memory=2Mi")))
            self.cluster("kubectl", "rollout", "status", "daemonset/load", "--timeout=120s")
            self.assertEqual(self.cluster("shell", "a", "--", "id", "-u").strip(), "0")
            self.assertTrue(self.left())
        finally:
            self.cluster("down")
        self.assertEqual(self.left(), [])
        self.assertEqual(list((self.scratch / "cache/pernode/clusters").iterdir()), [])


if __name__ == "__main__":
    unittest.main()
