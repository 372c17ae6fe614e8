"""Runs one stateful LLM as static prefill and generate models on an NPU.

The names are OpenVINO's: ``Core().compile_model(model, "NPU", config).create_infer_request()``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from npuw_layer.compiled_model import CompiledModel
    from npuw_layer.core import Core
    from npuw_layer.llm.infer_request import InferRequest
    from npuw_layer.llm.variable_state import VariableState
    from npuw_layer.tensor import Tensor

__all__ = ["CompiledModel", "Core", "InferRequest", "Tensor", "VariableState"]

_HOME = {
    "CompiledModel": "npuw_layer.compiled_model",
    "Core": "npuw_layer.core",
    "InferRequest": "npuw_layer.llm.infer_request",
    "Tensor": "npuw_layer.tensor",
    "VariableState": "npuw_layer.llm.variable_state",
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: a warm start loads no compiler."""
    if name not in _HOME:
        raise AttributeError(f"module 'npuw_layer' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOME[name]), name)
