"""Rewinding on the real OpenVINO: earlier positions cut the K and V states, which only grow.

Source: openvino.genai 2026.4, src/cpp/src/utils.cpp (trim_kv_cache).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import openvino as ov

from genai_layer.runtime import CONTINUES, Array, InferRequest, Tensor, VariableState

_INPUTS = {"attention_mask", "beam_idx"}
_POSITIONS = "position_ids"
"""Input that models without positions, e.g. LFM-2, do not have."""


def remembers(compiled: Any) -> bool:
    """Return whether a compiled model stores the tokens of a conversation."""
    return _names(compiled) >= _INPUTS


def _names(compiled: Any) -> set[str]:
    return {name for port in compiled.inputs for name in port.get_names()}


class RewindingModel:
    """Compiled model whose requests rewind; satisfies ``runtime.CompiledModel``.

    Args:
        compiled: the compiled model.
        read: returns the model before compilation, which has the axes of its states.
    """

    def __init__(self, compiled: Any, read: Callable[[], ov.Model]) -> None:
        self._compiled = compiled
        self._read = read

    def create_infer_request(self) -> InferRequest:
        """Create an independent request."""
        return RewindingRequest(*self._parts_of_request())

    def get_property(self, name: str, /) -> Any:
        """Return an option of the model, by OpenVINO's name."""
        return self._rewinds if name == CONTINUES else self._compiled.get_property(name)

    @property
    def inputs(self) -> Sequence[Any]:
        """Input ports, without variables."""
        return self._compiled.inputs

    @property
    def outputs(self) -> Sequence[Any]:
        """Output ports, without variables."""
        return self._compiled.outputs

    def _parts_of_request(self) -> tuple[Any, Callable[[], Mapping[str, int]], bool]:
        """Return the arguments of a new RewindingRequest."""
        request = self._compiled.create_infer_request()
        return request, lambda: self._axes, _POSITIONS in _names(self._compiled)

    @cached_property
    def _states(self) -> Mapping[str, ov.PartialShape]:
        """Shapes of the states, without those of adapters."""
        found = state_shapes(self._read()).items()
        return {name: shape for name, shape in found if not name.startswith("lora_state_")}

    @cached_property
    def _axes(self) -> Mapping[str, int]:
        return token_axes(self._states)

    @property
    def _rewinds(self) -> bool:
        return self._axes.keys() == self._states.keys()


def state_shapes(model: ov.Model) -> Mapping[str, ov.PartialShape]:
    """Return the shape of each state, by the state's name."""
    return {
        node.get_attributes()["variable_id"]: node.get_output_partial_shape(0)
        for node in model.get_ops()
        if node.get_type_name() == "ReadValue"
    }


def token_axes(states: Mapping[str, ov.PartialShape]) -> Mapping[str, int]:
    """Return the axis of tokens of each state that stores tokens, by the state's name.

    It is the only dynamic axis after the first, which has the rows.
    """
    axes: dict[str, int] = {}
    for name, shape in states.items():
        if shape.rank.is_dynamic or len(shape) != 4:
            continue
        dynamic = [axis for axis in range(1, len(shape)) if shape[axis].is_dynamic]
        if len(dynamic) == 1:
            axes[name] = dynamic[0]
    return axes


class RewindingRequest:
    """Request that forgets the tokens after an earlier position; satisfies ``InferRequest``."""

    def __init__(
        self, request: Any, axes: Callable[[], Mapping[str, int]], has_positions: bool
    ) -> None:
        self._request = request
        self._axes = axes
        self._has_positions = has_positions
        self._stored = 0

    def infer(self, inputs: Mapping[str, Array], /) -> object:
        """Run one inference."""
        stored = self._rewind(inputs)
        result = self._request.infer(self._taken(inputs))
        self._stored = stored
        return result

    def start_async(self, inputs: Mapping[str, Array], /) -> None:
        """Begin one inference."""
        stored = self._rewind(inputs)
        self._request.start_async(self._taken(inputs))
        self._stored = stored

    def wait(self) -> None:
        """Block until the inference has ended."""
        self._request.wait()

    def get_tensor(self, name: str, /) -> Tensor:
        """Return an input or output tensor by name."""
        return self._request.get_tensor(name)

    def query_state(self) -> Sequence[VariableState]:
        """Return the variables."""
        return self._request.query_state()

    def reset_state(self) -> None:
        """Begin a new conversation."""
        self._stored = 0
        self._request.reset_state()

    def _taken(self, inputs: Mapping[str, Array]) -> Mapping[str, Array]:
        """Return the inputs that the model takes."""
        if self._has_positions:
            return inputs
        return {name: value for name, value in inputs.items() if name != _POSITIONS}

    def _rewind(self, inputs: Mapping[str, Array]) -> int:
        """Cut the states to the tokens before the new ones; return how many will be stored."""
        mask, positions = inputs.get("attention_mask"), inputs.get("position_ids")
        if mask is None or positions is None or mask.ndim != 2 or not positions.ndim:
            return self._stored  # the request rejects them
        kept = mask.shape[1] - positions.shape[-1]
        if 0 <= kept < self._stored:
            self._cut(kept)
        return mask.shape[1]

    def _cut(self, tokens: int) -> None:
        axes = self._axes()
        for state in self._request.query_state():
            name = state.name
            if name in axes:
                value, axis = state.state.data, axes[name]
                if value.ndim > axis and value.shape[axis] > tokens:  # else it was reset
                    kept = value[(slice(None),) * axis + (slice(tokens),)]
                    state.state = ov.Tensor(np.ascontiguousarray(kept))
            elif not name.startswith("lora_state_"):
                raise RuntimeError(
                    f"the state {name} has no axis of tokens, so the model cannot return to an "
                    "earlier position; call reset_state(), and read all tokens again"
                )
