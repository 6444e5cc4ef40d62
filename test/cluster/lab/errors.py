# SPDX-License-Identifier: Apache-2.0
"""The one exception that a user of this package sees, and how a log's end is shown with it."""

from __future__ import annotations

from pathlib import Path

TAIL_LINES = 20
_TAIL_BYTES = 16 << 10


class LabError(Exception):
    """What failed, where, why, and what to do: complete enough to be printed as it is."""


class Hopeless(LabError):
    """What was waited for cannot come any more, so that waiting ends at once."""


def log_tail(path: Path, lines: int = TAIL_LINES) -> str:
    """The last lines of a log file, reading only its end; empty when there is none."""
    try:
        with open(path, "rb") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - _TAIL_BYTES))
            text = file.read().decode("utf-8", "replace")
    except OSError:
        return ""
    return "\n".join(text.splitlines()[-lines:])


def with_log(message: str, path: Path) -> Hopeless:
    """An error that ends with the end of the log that explains it."""
    tail = log_tail(path)
    if not tail:
        return Hopeless(f"{message}\n(nothing in {path})")
    return Hopeless(f"{message}\n--- end of {path} ---\n{tail}\n---")
