"""The modules of driver_layer have no import cycles."""

from __future__ import annotations

from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter

import grimp
import pytest


def modules() -> Iterator[tuple[str, set[str]]]:
    # Imports for type checking count, too: readers need both modules all the same.
    graph = grimp.build_graph("driver_layer", cache_dir=None)
    for module in graph.modules:
        yield module, graph.find_modules_directly_imported_by(module)


def test_the_import_graph_has_no_cycles() -> None:
    try:
        TopologicalSorter(dict(modules())).prepare()
    except CycleError as error:
        pytest.fail(" -> ".join(reversed(error.args[1])))
