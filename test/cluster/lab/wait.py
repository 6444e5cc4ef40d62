# SPDX-License-Identifier: Apache-2.0
"""Waits for a condition, never for a time; when it does not come, shows what matters."""

from __future__ import annotations

import operator
import re
import time
from pathlib import Path
from typing import Any, Callable

from .errors import Hopeless, LabError
from .kube import Kube

POLL_SECONDS = 0.25
_MAX_SHOWN = 12
_OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq, "!=": operator.ne, ">=": operator.ge, "<=": operator.le,
    ">": operator.gt, "<": operator.lt, "=~": lambda text, pattern: bool(re.search(pattern, text)),
}
_CONDITION = re.compile(r"(.+?)\s*(==|!=|>=|<=|=~|>|<)\s*(.*)", re.DOTALL)


def until(condition: Callable[[], Any], what: str, timeout_seconds: float = 60,
          diagnose: Callable[[], str] | None = None, poll_seconds: float = POLL_SECONDS) -> Any:
    """Calls condition until its answer is true, and returns that answer.

    A LabError or OSError counts as "not yet"; the last one is shown when the time is over.
    """
    deadline = time.monotonic() + timeout_seconds
    last = ""
    while True:
        try:
            answer = condition()
            if answer:
                return answer
            last = f"last answer: {answer!r}"
        except Hopeless:
            raise
        except (LabError, OSError, KeyError, IndexError) as error:
            last = f"last error: {error!r}" if not isinstance(error, LabError) else str(error)
        if time.monotonic() > deadline:
            text = f"not within {timeout_seconds:.0f} s: {what} ({last})"
            raise LabError(f"{text}\n{diagnose()}" if diagnose else text)
        time.sleep(poll_seconds)


def until_file(path: Path, pattern: str, timeout_seconds: float = 60) -> str:
    """Waits until a file has a line that matches; returns that line."""
    expression = re.compile(pattern)

    def look() -> str | None:
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
            if expression.search(line):
                return line
        return None

    return until(look, f"{path} has a line matching {pattern!r}", timeout_seconds,
                 lambda: _tail_of(path))


def _tail_of(path: Path) -> str:
    from .errors import log_tail
    return f"--- end of {path} ---\n{log_tail(path) or '(empty or missing)'}\n---"


def _typed(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


def check(kube: Kube, target: list[str], condition: str) -> bool:
    """Whether a jsonpath of an object fulfils `PATH OP VALUE`, such as {.status.phase}==Running."""
    found = _CONDITION.fullmatch(condition)
    if not found:
        raise ValueError(f"condition {condition!r}: write it as JSONPATH OP VALUE, such as "
                         "'{.status.phase}==Running'; OP is one of " + " ".join(_OPERATORS))
    path, sign, wanted = found.groups()
    path = path if path.startswith("{") else "{" + path + "}"
    actual = kube.run("get", *target, "-o", f"jsonpath={path}").stdout
    if sign == "=~":
        return _OPERATORS[sign](actual, wanted)
    left, right = _typed(actual), _typed(wanted)
    if type(left) is not type(right):
        left, right = actual, wanted
    return _OPERATORS[sign](left, right)


def diagnosis(kube: Kube, namespace: str | None, target: list[str]) -> str:
    """The object, its events, and the end of its pods' logs: what one looks at first."""
    where = ["-n", namespace] if namespace else ["-A"]
    sections = [("object", ["get", *target, "-o", "yaml"]),
                ("pods", ["get", "pods", *where, "-o", "wide"]),
                ("nodes", ["get", "nodes", "-o", "wide"]),
                ("events", ["get", "events", *where, "--sort-by=.lastTimestamp"])]
    text = []
    for title, arguments in sections:
        text.append(f"--- {title} ---\n{_ask(kube, arguments)}")
    for pod in _unready_pods(kube, where)[:_MAX_SHOWN]:
        name, pod_namespace = pod["metadata"]["name"], pod["metadata"]["namespace"]
        log = _ask(kube, ["logs", "-n", pod_namespace, name, "--all-containers", "--tail=15"])
        text.append(f"--- log of {pod_namespace}/{name} ---\n{log}")
    return "\n".join(text)


def _ask(kube: Kube, arguments: list[str]) -> str:
    try:
        done = kube.run(*arguments, check=False, timeout_seconds=20)
    except LabError as error:
        return str(error)
    lines = (done.stdout or done.stderr).strip().splitlines()
    return "\n".join(lines[-60:])


def _unready_pods(kube: Kube, where: list[str]) -> list[dict]:
    try:
        pods = kube.get("pods", *where, timeout_seconds=20)["items"]
    except (LabError, ValueError):
        return []
    return [pod for pod in pods if not is_ready(pod)]


def is_ready(thing: dict) -> bool:
    """Whether a pod or node has the condition Ready=True."""
    conditions = thing.get("status", {}).get("conditions", [])
    return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)
