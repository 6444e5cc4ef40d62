#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The rules of this source tree that no common linter knows: which room may include which, functions that are not
used here, and how long a file or a function may be. Prints each breach as FILE:LINE: what; exits 1 if there is one."""

import re
import subprocess
import sys

FILE_LINES_MAX = 600
FUNCTION_LINES_MAX = 70

# Room -> rooms it may include besides itself.
ROOMS = {
    "base": set(),
    "proto": {"base"},
    "rules": {"base", "proto"},
    "net": {"base", "proto"},
    "agent": {"base", "proto", "rules", "net"},
    "aggregator": {"base", "proto", "rules", "net"},
    "cli": {"base", "proto", "rules", "net"},
}
# The same for the rooms within agent/. What lies in agent/ itself puts them together, and may include all.
AGENT_ROOMS = {
    "cgroup": set(),
    "state": set(),
    "sample": {"cgroup"},
    "pods": {"cgroup", "sample", "state"},
    "publish": {"state"},
    "endpoint": {"sample", "pods", "publish", "state"},
    "observe": {"cgroup", "sample"},
    "replay": set(),
}
BANNED = re.compile(
    r"\b(strcpy|strcat|sprintf|vsprintf|sscanf|strtok|atoi|atol|atof|strtol|strtoul|strtoll|strtoull|gets|system|popen"
    r"|alloca|strncpy|strncat|rand|setlocale)\s*\("
)
# Who may know libuv, yajl and the threads of neither.
ONLY_IN = [
    (re.compile(r'#include\s+<yajl/'), lambda f: f.startswith("proto/json_"), "yajl is known to proto/json_* only"),
    (re.compile(r'#include\s+<uv\.h>'), lambda f: f.startswith(("base/loop", "net/", "test/")), "libuv is known to base/loop and net/ only"),
    (re.compile(r"\buv_(fs_\w+|getaddrinfo|queue_work)\s*\("), lambda f: False, "would start libuv's thread pool"),
]


def tracked(*patterns):
    out = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "--", *patterns], capture_output=True, text=True, check=True)
    return [f for f in out.stdout.splitlines() if f]


def strip_comments(text):
    """Comments and strings become blanks of the same length, so that line numbers stay."""
    def blank(m):
        return re.sub(r"[^\n]", " ", m.group(0))
    return re.sub(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', blank, text, flags=re.S)


def check_c(name, text):
    room = name.split("/")[0]
    for n, line in enumerate(text.split("\n"), 1):
        m = re.match(r'#include\s+"([^"]+)"', line)
        if m and room in ROOMS:
            there = m.group(1).split("/")[0]
            if there in ROOMS and there != room and there not in ROOMS[room]:
                yield n, f"{room}/ may not include {there}/"
        if m and room == "agent":
            inner, wanted = name.split("/")[1], m.group(1).split("/")
            if inner in AGENT_ROOMS and wanted[0] == "agent" and wanted[1] in AGENT_ROOMS \
                    and wanted[1] != inner and wanted[1] not in AGENT_ROOMS[inner]:
                yield n, f"agent/{inner}/ may not include agent/{wanted[1]}/"
        for pattern, allowed, why in ONLY_IN:
            if pattern.search(line) and not allowed(name):
                yield n, why
    code = strip_comments(text)
    for n, line in enumerate(code.split("\n"), 1):
        m = BANNED.search(line)
        if m:
            yield n, f"{m.group(1)} is not used here"
    start = None
    for n, line in enumerate(code.split("\n"), 1):
        if line == "{":
            start = n
        elif line.startswith("}") and start:
            if n - start - 1 > FUNCTION_LINES_MAX and not name.startswith("test/"):
                yield start, f"function of {n - start - 1} lines (at most {FUNCTION_LINES_MAX})"
            start = None


def main():
    bad = 0
    for name in tracked("*.c", "*.h", "*.py", "*.sh", "*.js", "scripts/*", "test/cluster/cluster"):
        try:
            text = open(name, encoding="utf-8").read()
        except (UnicodeDecodeError, IsADirectoryError, FileNotFoundError):
            continue
        found = list(check_c(name, text)) if name.endswith((".c", ".h")) else []
        lines = text.count("\n")
        if lines > FILE_LINES_MAX and "/data/" not in name:
            found.append((1, f"file of {lines} lines (at most {FILE_LINES_MAX})"))
        if not text.startswith("#!") and "SPDX-License-Identifier: Apache-2.0" not in text[:300]:
            found.append((1, "no SPDX line at the top"))
        for n, line in enumerate(text.split("\n"), 1):
            if re.search(r"\b(TODO|FIXME)\b", line) and not name.endswith("house_rules.py"):
                found.append((n, "left undone"))
        for n, what in found:
            print(f"{name}:{n}: {what}")
        bad += len(found)
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
