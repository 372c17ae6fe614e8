"""LoRA adapters on the real OpenVINO: inserted into models, and set as states of requests.

Source: openvino_genai's LoRASeparateTransform and LoRAFuseTransform (src/cpp/src/lora/adapter.cpp).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import openvino as ov
from openvino import opset13
from openvino.op import assign, read_value
from openvino.op.util import Variable, VariableInfo

from genai_layer.abilities import LowRank
from genai_layer.adapters.openvino_rewind import RewindingModel, RewindingRequest
from genai_layer.errors import PropertyError
from genai_layer.runtime import Array, InferRequest, Tensor, VariableState

ops: Any = opset13  # whose type stubs are incomplete
_RANK_AXES = {"A": 0, "alpha": 1, "B": 1}


def adaptable(model: Any) -> dict[str, Any]:
    """Return the matmuls with a matrix of static shape, by name."""
    return {
        node.get_friendly_name(): node
        for node in model.get_ordered_ops()
        if node.get_type_name() == "MatMul" and _is_adaptable(node)
    }


def widths(node: Any) -> tuple[int, int]:
    """Return the input and output widths of a matmul."""
    rows, columns = (each.get_length() for each in node.input(1).get_partial_shape())
    return (columns, rows) if node.get_attributes()["transpose_b"] else (rows, columns)


def insert_adapters(model: Any, adapters: Mapping[str, LowRank], mode: str) -> None:
    """Insert adapters into a model, in place.

    Args:
        model: an ``openvino.Model``.
        adapters: low-rank terms to add to matmuls, by name.
        mode: see ``abilities.SupportsAdapters``.

    Raises:
        PropertyError: the mode is FUSE, and weights are quantised.
    """
    for name, node in adaptable(model).items():
        if name not in adapters:
            continue
        if mode == "FUSE":
            _fuse(node, adapters[name])
        else:
            _put_beside(model, node, adapters[name], mode)


def _is_adaptable(node: Any) -> bool:
    shape = node.input(1).get_partial_shape()
    return shape.is_static and len(shape) == 2 and not node.get_attributes()["transpose_a"]


def _put_beside(model: Any, node: Any, added: LowRank, mode: str) -> None:
    """Turn y = x Wᵀ into y + ((x Aᵀ) · alpha) Bᵀ, in the type of y."""
    kind, targets = node.get_output_element_type(0), list(node.output(0).get_target_inputs())
    prefix = f"lora_state_{len(model.get_sinks())}{node.get_friendly_name()}"
    parts: list[Any] = []
    for part, values in (("A", added.a), ("alpha", added.alpha), ("B", added.b)):
        given = (
            ops.constant(values)
            if mode == "STATIC"
            else _state(model, f"{prefix}.{part}", values, _RANK_AXES[part], mode)
        )
        same = given.get_output_element_type(0) == kind
        parts.append(given if same else ops.convert(given, kind.get_type_name()))
    a, alpha, b = parts
    low = ops.multiply(ops.matmul(node.input_value(0), a, False, True), alpha)
    adapted = ops.add(node, ops.matmul(low, b, False, True))
    for target in targets:
        target.replace_source_output(adapted.output(0))


def _state(model: Any, name: str, like: Array, rank_axis: int, mode: str) -> Any:
    """Create a variable that keeps its value: of any rank, or of at most the present rank."""
    shape: list[Any] = list(like.shape)
    shape[rank_axis] = (0, shape[rank_axis]) if mode == "STATIC_RANK" else -1
    info = VariableInfo()
    info.variable_id, info.data_shape = name, ov.PartialShape(shape)
    info.data_type = ov.Type(like.dtype)
    variable = Variable(info)
    model.add_variables([variable])
    read: Any = read_value(variable)
    model.add_sinks([assign(read, variable)])
    return read


def _fuse(node: Any, added: LowRank) -> None:
    """Turn W into W + B · alpha · A for this matmul alone; other readers of W keep W."""
    held = node.input_value(1).get_node()
    while held.get_type_name() == "Convert":
        held = held.input_value(0).get_node()
    if held.get_type_name() != "Constant" or not held.get_element_type().is_real():
        raise PropertyError(
            f"the weights of {node.get_friendly_name()} are quantised, so MODE_FUSE cannot "
            "add adapters to them; use MODE_STATIC, or f32, f16 or bf16 weights"
        )
    change = (added.b * added.alpha) @ added.a.astype(np.float32)
    transposed = node.get_attributes()["transpose_b"]
    fused = held.get_data(dtype=np.float32) + (change if transposed else change.T)
    weights = ops.constant(fused, node.get_input_element_type(1))
    node.input(1).replace_source_output(weights.output(0))


class AdaptedModel(RewindingModel):
    """A compiled model with states of adapters.

    Args:
        compiled: the compiled model.
        read: see ``RewindingModel``.
        adapters: the low-rank terms that the model was compiled with.
    """

    def __init__(
        self, compiled: Any, read: Callable[[], ov.Model], adapters: Mapping[str, LowRank]
    ) -> None:
        super().__init__(compiled, read)
        self._adapters = adapters

    def create_infer_request(self) -> InferRequest:
        """Create an independent request."""
        return AdaptedRequest(*self._parts_of_request(), self._adapters)


class AdaptedRequest(RewindingRequest):
    """A request whose adapters outlast conversations; arguments as above."""

    def __init__(
        self,
        request: Any,
        axes: Callable[[], Mapping[str, int]],
        has_positions: bool,
        adapters: Mapping[str, LowRank],
    ) -> None:
        super().__init__(request, axes, has_positions)
        self._adapters = adapters

    def query_state(self) -> Sequence[VariableState]:
        """Return the variables."""
        return [self._held(state) for state in self._request.query_state()]

    def reset_state(self) -> None:
        """Begin a new conversation; adapters are kept."""
        self._stored = 0
        for state in self.query_state():
            if not isinstance(state, AdapterState):
                state.reset()

    def _held(self, state: Any) -> VariableState:
        for product, added in self._adapters.items():
            for part, values in (("A", added.a), ("alpha", added.alpha), ("B", added.b)):
                if state.name.endswith(f"{product}.{part}") and state.name.startswith(
                    "lora_state_"
                ):
                    return AdapterState(state, values, _RANK_AXES[part])
        return state


class AdapterState:
    """One of an adapter's tensors; satisfies ``abilities.AdapterVariable``.

    Args:
        state: OpenVINO's state.
        like: a tensor with the state's type and widths.
        rank_axis: the axis whose length is the rank.
    """

    def __init__(self, state: Any, like: Array, rank_axis: int) -> None:
        self._state = state
        self._like = like
        self._rank_axis = rank_axis

    @property
    def name(self) -> str:
        """The variable's id."""
        return self._state.name

    @property
    def state(self) -> Tensor:
        """Value of the state."""
        return self._state.state

    @state.setter
    def state(self, value: Array) -> None:
        """Set the value; an empty tensor adds nothing."""
        values = value if value.size else self._nothing()
        self._state.state = ov.Tensor(np.ascontiguousarray(values, self._like.dtype))

    def reset(self) -> None:
        """Set the state to an empty tensor, which adds nothing."""
        self.state = self._nothing()

    def _nothing(self) -> Array:
        shape = list(self._like.shape)
        shape[self._rank_axis] = 0
        return np.empty(shape, self._like.dtype)
