# SPDX-License-Identifier: Apache-2.0
"""Runs the tests of this folder (or those named) and ends with `N passed, N failed`."""

import os
import sys
import unittest


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path.insert(0, here)
    loader = unittest.defaultTestLoader
    suite = loader.loadTestsFromNames(sys.argv[1:]) if sys.argv[1:] else loader.discover(here)
    result = unittest.TextTestRunner(verbosity=2).run(suite)
    # A sub-test that fails counts for its test, once.
    failed = len({getattr(test, "test_case", test).id() for test, _ in result.failures + result.errors})
    print(f"{max(result.testsRun - failed, 0)} passed, {failed} failed")
    sys.exit(0 if failed == 0 and result.testsRun else 1)


if __name__ == "__main__":
    main()
