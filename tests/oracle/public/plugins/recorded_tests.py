"""Plugin of pytest for ``run_tests.py``: append each result to the file RECORDED_TESTS.

The results so far thus outlive a run that is killed.
"""

import json
import os
from pathlib import Path

import pytest


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Record a failure, or that a test passes."""
    if report.failed or (report.when == "call" and report.passed):
        _record(report)


def pytest_collectreport(report: pytest.CollectReport) -> None:
    """Record that a file cannot be imported."""
    if report.failed:
        _record(report)


def _record(report: pytest.TestReport | pytest.CollectReport) -> None:
    if "PYTEST_XDIST_WORKER" in os.environ:
        return  # the process that distributes the tests records them
    crash = getattr(report.longrepr, "reprcrash", None)
    message = crash.message.splitlines()[:1] if crash else str(report.longrepr).splitlines()[-1:]
    line = {"test": report.nodeid, "failure": message if report.failed else None}
    with Path(os.environ["RECORDED_TESTS"]).open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")
