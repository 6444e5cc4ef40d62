# SPDX-License-Identifier: Apache-2.0
"""Progress for the person who waits: one line per step on stderr, with the seconds it took."""

from __future__ import annotations

import contextlib
import sys
import time

quiet = False


def say(text: str) -> None:
    """One line of progress."""
    if not quiet:
        print(text, file=sys.stderr, flush=True)


@contextlib.contextmanager
def step(what: str):
    """Says when the step begins and how long it took; silent about the end when it failed."""
    say(f"{what} …")
    began = time.monotonic()
    yield
    say(f"{what}: done in {time.monotonic() - began:.1f} s")
