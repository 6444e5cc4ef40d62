# SPDX-License-Identifier: Apache-2.0
"""Starts the probe against a stand-in server and waits for what it prints."""

import os
import queue
import subprocess
import tempfile
import threading
import time
import unittest

from server import Server

PROBE = os.environ.get("FAULT_PROBE", "build/asan/test/fault_probe")
WAIT = 60

# Small, so that a test takes no longer than what it tests.
QUICK = {"backoff_first_ms": 1, "backoff_last_ms": 8, "lived_ms": 1, "stable_ms": 20, "watch_idle_ms": 20000,
         "picture_idle_ms": 20000, "list_timeout_ms": 20000}


class Probe:
    def __init__(self, arguments, environment=None):
        words = [f"{k}={v}" for k, v in arguments.items()]
        # pylint: disable=consider-using-with
        self.process = subprocess.Popen([PROBE, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True, env={**os.environ, **(environment or {})})
        self.lines = []
        self.queue = queue.Queue()
        self.stderr = ""
        self.readers = [threading.Thread(target=self._read, daemon=True), threading.Thread(target=self._errors, daemon=True)]
        for reader in self.readers:
            reader.start()

    def _read(self):
        for line in self.process.stdout:
            self.queue.put(line.rstrip("\n"))
        self.queue.put(None)

    def _errors(self):
        self.stderr = self.process.stderr.read()

    def say(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def next(self, timeout=WAIT):
        try:
            line = self.queue.get(timeout=timeout)
        except queue.Empty:
            raise AssertionError(f"nothing more was printed after {self.lines[-12:]}") from None
        if line is None:
            self.process.wait(WAIT)
            self.readers[1].join(WAIT)
            self.queue.put(None)
            raise AssertionError(f"the probe ended ({self.process.returncode}) after {self.lines[-12:]}\n{self.stderr}")
        self.lines.append(line)
        return line

    def until(self, start, timeout=WAIT):
        """The next line that begins with start; what came before it is in .lines."""
        end = time.monotonic() + timeout
        while True:
            left = end - time.monotonic()
            if left <= 0:
                raise AssertionError(f"no line {start!r} among {self.lines[-12:]}")
            line = self.next(left)
            if line.startswith(start):
                return line

    def stop(self):
        """An orderly end. Returns the exit code; what a sanitizer found makes it an error."""
        self.process.stdin.close()
        code = self.process.wait(WAIT)
        for reader in self.readers:
            reader.join(WAIT)
        self.process.stdout.close()
        self.process.stderr.close()
        return code


def picture(lines):
    """What a consumer knows after these lines: {name: version}. What is not told of between begin and synced is gone."""
    known, seen = {}, None
    for line in lines:
        word, _, rest = line.partition(" ")
        if word == "begin":
            seen = set()
        elif word == "synced":
            known = {k: v for k, v in known.items() if k in seen}
            seen = None
        elif word in ("ADDED", "MODIFIED", "DELETED"):
            name, _, version = rest.split(" ")[0].partition("@")
            if word == "DELETED":
                known.pop(name, None)
            else:
                known[name] = version
                if seen is not None:
                    seen.add(name)
    return known


class Case(unittest.TestCase):
    """A server and a probe, both gone after the test, the probe without a complaint."""

    def setUp(self):
        # pylint: disable=consider-using-with
        self.dir = tempfile.TemporaryDirectory()
        self.addCleanup(self.dir.cleanup)
        self.server = self.probe = None

    def serve(self, scenario, tls=None):
        self.server = Server(scenario, tls)
        self.addCleanup(self.server.close)
        return self.server

    def path(self, name):
        return os.path.join(self.dir.name, name)

    def write(self, name, text):
        """As the kubelet does it: the new file appears whole."""
        with open(self.path(name + ".new"), "w", encoding="utf-8") as f:
            f.write(text)
        os.rename(self.path(name + ".new"), self.path(name))
        return self.path(name)

    def kubeconfig(self, cluster="", user="token: secret", url=None):
        return self.write("kubeconfig", f"""
apiVersion: v1
kind: Config
current-context: c
contexts: [{{name: c, context: {{cluster: k, user: u}}}}]
clusters:
- name: k
  cluster:
    server: {url or self.server.url}
    {cluster}
users:
- name: u
  user:
    {user}
""")

    def start(self, kubeconfig=None, environment=None, **arguments):
        merged = {**QUICK, "path": "/api/v1/pods", **arguments}
        merged = {k: v for k, v in merged.items() if v is not None}
        if "pod" not in merged:
            merged["kubeconfig"] = kubeconfig or self.kubeconfig()
        self.probe = Probe(merged, environment)
        self.addCleanup(self._end_probe, self.probe)
        return self.probe

    def _end_probe(self, probe):
        code = probe.stop()
        if code != 0:
            raise AssertionError(f"the probe ended with {code} after {probe.lines[-8:]}\n{probe.stderr}")
