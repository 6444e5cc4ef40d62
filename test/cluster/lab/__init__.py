# SPDX-License-Identifier: Apache-2.0
"""A real Kubernetes on one machine. Tests import Cluster from here; `cluster` is its command."""

import sys
from pathlib import Path

# Shared helpers (test/lib) are found however this package is reached.
_TEST_ROOT = str(Path(__file__).resolve().parents[2])
if _TEST_ROOT not in sys.path:
    sys.path.insert(0, _TEST_ROOT)

from .cluster import Cluster  # noqa: E402
from .errors import LabError  # noqa: E402
from .nodespec import NodeSpec  # noqa: E402

__all__ = ["Cluster", "LabError", "NodeSpec"]
