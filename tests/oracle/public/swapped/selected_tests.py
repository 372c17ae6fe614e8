"""Plugin of pytest for ``run_tests.py``: run only the tests that the file SELECTED_TESTS lists."""

import json
import os
from pathlib import Path

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Omit the other tests; the file is a list of names ``module.Class::test[parameters]``."""
    listed = Path(os.environ["SELECTED_TESTS"]).read_text(encoding="utf-8")
    selected = frozenset(json.loads(listed))
    items[:] = [item for item in items if _name(item.nodeid) in selected]


def _name(nodeid: str) -> str:
    """Return a test's name in a JUnit report."""
    address, bracket, parameters = nodeid.partition("[")
    path, *classes, function = address.split("::")
    return ".".join([path.removesuffix(".py"), *classes]) + f"::{function}{bracket}{parameters}"
