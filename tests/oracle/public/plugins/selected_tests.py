"""Plugin of pytest for ``run_tests.py``: run only the tests that the file SELECTED_TESTS lists."""

import json
import os
from pathlib import Path

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Omit the other tests; the file is a list of ids."""
    listed = Path(os.environ["SELECTED_TESTS"]).read_text(encoding="utf-8")
    selected = frozenset(json.loads(listed))
    items[:] = [item for item in items if item.nodeid in selected]
