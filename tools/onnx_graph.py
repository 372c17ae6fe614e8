"""ONNX graph builder, shared by the scripts that write golden ONNX models."""

from __future__ import annotations

from typing import Any

import numpy as np


class Graph:
    """Growing ONNX graph.

    Args:
        seed: seed of its weights.
        kind: element type of float weights.
        steps: drawn weights are multiples of 1/steps, so that files compress well; 0: unrounded.
    """

    def __init__(
        self, seed: int, kind: type[np.floating[Any]] = np.float32, steps: int = 0
    ) -> None:
        self.nodes: list[Any] = []
        self.weights: list[Any] = []
        self._draw = np.random.RandomState(seed)
        self._kind = kind
        self._steps = steps

    def constant(self, name: str, values: np.ndarray) -> str:
        """Add a constant unchanged."""
        from onnx import numpy_helper

        self.weights.append(numpy_helper.from_array(values, name))
        return name

    def weight(self, name: str, values: np.ndarray) -> str:
        """Add a constant of floats."""
        return self.constant(name, values.astype(self._kind))

    def drawn(self, name: str, *shape: int) -> str:
        """Add a random matrix."""
        values = self._draw.standard_normal(shape) / np.sqrt(shape[0])
        return self.weight(name, self.rounded(values))

    def rounded(self, values: np.ndarray) -> np.ndarray:
        """Round values to multiples of 1/steps."""
        return np.round(values * self._steps) / self._steps if self._steps else values

    def bytes(self, name: str, *shape: int) -> str:
        """Add random 8-bit integers."""
        return self.constant(name, self._draw.randint(0, 256, shape).astype(np.uint8))

    def node(self, kind: str, inputs: list[str], outputs: list[str], **more: Any) -> str:
        """Add a node; return its first output."""
        from onnx import helper

        self.nodes.append(helper.make_node(kind, inputs, outputs, **more))
        return outputs[0]

    def model(self, inputs: list[Any], outputs: list[Any]) -> Any:
        """Return the graph as the model of a decoder."""
        from onnx import helper

        graph = helper.make_graph(self.nodes, "decoder", inputs, outputs, self.weights)
        opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
        return helper.make_model(graph, opset_imports=opsets)
