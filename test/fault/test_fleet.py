# SPDX-License-Identifier: Apache-2.0
"""Thousands of agents that start at once, and that lose their server at once: what they ask, and when."""

import os
import queue
import subprocess
import threading
from collections import Counter

from crowd import Crowd
from harness import PROBE, WAIT, Case

FLEET = os.environ.get("FAULT_FLEET", os.path.join(os.path.dirname(PROBE), "fault_fleet"))
SPREAD = 15.0  # seconds: long beside the moments that a busy machine stands still (`pernode-agent run` has 5 by default)
CROWDED = 0.4  # of all in one bin; a machine that stalls for a second makes 0.3 of what is even
FIRST = 15.0  # for the first patch; a minute by default


def crowding(times, width):
    """The share of all that falls into the fullest bin."""
    first = min(times)
    return max(Counter(int((t - first) / width) for t in times).values()) / len(times)


class Fleet(Case):
    def start_fleet(self, agents, spread=SPREAD, **more):
        self.crowd = Crowd()
        self.addCleanup(self.crowd.close)
        path = self.kubeconfig(url=self.crowd.url)
        words = {"kubeconfig": path, "agents": agents, "start_spread_ms": int(spread * 1000), "first_spread_ms": int(FIRST * 1000), **more}
        # pylint: disable=consider-using-with
        self.fleet = subprocess.Popen([FLEET, *(f"{k}={v}" for k, v in words.items())], stdin=subprocess.PIPE,
                                      stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.lines = queue.Queue()
        self.readers = [threading.Thread(target=self._read, daemon=True), threading.Thread(target=self._errors, daemon=True)]
        self.errors = ""
        for reader in self.readers:
            reader.start()
        self.addCleanup(self.end_fleet)
        made = int(self.lines.get(timeout=WAIT).removeprefix("agents "))
        self.assertGreater(made, min(agents, 500), "too few descriptors for a fleet")
        self.fleet.stdin.write("go\n")
        self.fleet.stdin.flush()
        return made

    def _read(self):
        for line in self.fleet.stdout:
            self.lines.put(line.rstrip("\n"))

    def _errors(self):
        self.errors = self.fleet.stderr.read()

    def end_fleet(self):
        if not self.fleet.stdin.closed:
            self.fleet.stdin.close()
        code = self.fleet.wait(WAIT)
        for reader in self.readers:
            reader.join(WAIT)
        self.fleet.stdout.close()
        self.fleet.stderr.close()
        self.assertEqual(code, 0, self.errors[-2000:])

    def check_questions(self, log):
        """Nothing is asked for without a bound."""
        for asked in log:
            if asked.path != "/api/v1/pods":
                self.assertRegex(asked.path, "^/api/v1/nodes/n[0-9]+$")
            elif "watch" in asked.query:
                self.assertTrue("resourceVersion" in asked.query or asked.query.get("sendInitialEvents") == "true", asked.target)
                self.assertIn("timeoutSeconds", asked.query)
            else:
                self.assertIn("limit", asked.query)
            self.assertTrue(asked.node, asked.target)

    def test_a_fleet_that_starts_at_once_is_spread_and_comes_back_spread(self):
        agents = self.start_fleet(5000)
        self.crowd.wait_for(lambda c: len(c.watchers) == agents, "a watch of each", 4 * WAIT)
        self.crowd.wait_for(lambda c: sum(a.method == "PATCH" for a in c.log) >= agents, "a patch of each", 4 * WAIT)
        log = list(self.crowd.log)
        self.check_questions(log)
        kinds = Counter((a.method, "watch" in a.query, a.path == "/api/v1/pods") for a in log)
        # One look, one watch and one patch of each, and nothing else.
        self.assertEqual(kinds, {("GET", True, True): agents, ("GET", False, False): agents, ("PATCH", False, False): agents})
        shares = {}
        for name, chosen in (("watches", lambda a: "watch" in a.query), ("looks", lambda a: a.method == "GET" and "watch" not in a.query),
                             ("patches", lambda a: a.method == "PATCH")):
            shares[name] = crowding([a.at for a in log if chosen(a)], SPREAD / 10)
            self.assertLess(shares[name], CROWDED, name)  # a tenth each, were it even
        seats = self.crowd.most_seats
        self.assertLess(seats, agents / 2)  # twice as many as agents, did all ask at once

        # The server goes away for all of them in the same moment, and refuses each of them twice, more or less.
        before = len(log)
        self.crowd.fall_over(2 * agents)
        self.crowd.wait_for(lambda c: c.refusals_left == 0 and len(c.watchers) == agents, "a watch of each again", 4 * WAIT)
        log = self.crowd.log[before:]
        self.check_questions(log)
        back = crowding([a.at for a in log], 0.1)
        self.assertLess(back, 0.6)  # in lockstep it would be all; a busy machine serves what waited at one go
        # A wait grows with each refusal, so nobody was refused much more often than the others.
        most = max(Counter(a.node for a in log).values())
        self.assertLess(most, 12)
        self.assertLess(self.crowd.most_seats, agents / 2)
        self.assertFalse(any(a.method == "PATCH" for a in log))
        self.end_fleet()
        print(f"{agents} agents: fullest tenth of the spread {', '.join(f'{k} {v:.0%}' for k, v in shares.items())}; "
              f"seats at the start {seats}; back after refusals: fullest 100 ms {back:.0%}, at most {most} tries each; "
              f"{self.lines.queue[-1]}")

    def test_a_fleet_without_chance_would_be_seen(self):
        """What the test above measures is there to be measured."""
        agents = self.start_fleet(1000, spread=0, no_chance=1)
        self.crowd.wait_for(lambda c: len(c.watchers) == agents, "a watch of each", 4 * WAIT)
        watches = [a.at for a in self.crowd.log if "watch" in a.query]
        self.assertGreater(crowding(watches, SPREAD / 10), CROWDED)
