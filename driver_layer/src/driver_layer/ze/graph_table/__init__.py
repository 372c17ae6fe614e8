"""The graph extension's function table, 1.18, with all of its functions, by subject.

Source: docs/reference/level_zero.md#graph-extension.
"""

from __future__ import annotations

from driver_layer.ze.driver import GRAPH_EXTENSION, extension_tables
from driver_layer.ze.graph_table.arguments import GraphArguments
from driver_layer.ze.graph_table.compiler_queries import CompilerQueries
from driver_layer.ze.graph_table.creation import GraphCreation
from driver_layer.ze.graph_table.properties import GraphProperties
from driver_layer.ze.graph_table.recording import GraphRecording


class ze_graph_dditable_ext_t(
    GraphCreation, GraphArguments, GraphRecording, GraphProperties, CompilerQueries
):
    """The function table; its functions raise ZeError for C's result codes."""


extension_tables[GRAPH_EXTENSION] = ze_graph_dditable_ext_t()
