"""Modules of npuw_layer import one another in one direction."""

from __future__ import annotations

from graphlib import CycleError, TopologicalSorter

import grimp


def test_no_modules_import_each_other_in_a_circle() -> None:
    """Imports for type checking alone count, too: who reads one module need not read another."""
    graph = grimp.build_graph("npuw_layer", cache_dir=None)
    imports = {name: graph.find_modules_directly_imported_by(name) for name in graph.modules}
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        raise AssertionError(f"a circle of imports: {' <- '.join(error.args[1])}") from None
