"""Queries for the layers of a model that the graph compiler supports.

Source: docs/reference/level_zero.md#graph-extension.
"""

from __future__ import annotations

from driver_layer.ze.handles import Handle


class ze_graph_query_network_handle_t(Handle):
    """Result of a query.

    Args:
        layers: friendly names of the supported layers.
    """

    def __init__(self, layers: tuple[str, ...]) -> None:
        super().__init__()
        self.layers = layers

    @property
    def text(self) -> str:
        """The names in the form of the extension, each in angle brackets."""
        return "".join(f"<{name}>" for name in self.layers)
