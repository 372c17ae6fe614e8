"""The modules of driver_layer import one another without circles."""

from __future__ import annotations

from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter

import grimp
import pytest


def modules() -> Iterator[tuple[str, set[str]]]:
    # Imports for types alone are counted, too: they are read together all the same.
    graph = grimp.build_graph("driver_layer", cache_dir=None)
    for module in graph.modules:
        yield module, graph.find_modules_directly_imported_by(module)


def test_modules_import_one_another_without_circles() -> None:
    try:
        TopologicalSorter(dict(modules())).prepare()
    except CycleError as error:
        pytest.fail(" -> ".join(reversed(error.args[1])))
