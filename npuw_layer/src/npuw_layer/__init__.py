"""Runtime of stateful LLMs as static prefill and generate models on an NPU, and of static models.

The interface follows OpenVINO: ``Core().compile_model(model, "NPU", config)`` returns a model, and
its ``create_infer_request()`` a request.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from npuw_layer.api.core import Core
    from npuw_layer.backends.tensor import Tensor
    from npuw_layer.kinds.llm.compiled_model import CompiledModel
    from npuw_layer.kinds.static.compiled_model import BatchedCompiledModel, StaticCompiledModel
    from npuw_layer.kinds.static.infer_request import StaticInferRequest
    from npuw_layer.llm.request.infer_request import InferRequest
    from npuw_layer.llm.request.variable_state import VariableState
    from npuw_layer.remote.context import RemoteContext
    from npuw_layer.remote.memory import page_aligned_bytes
    from npuw_layer.remote.properties import FileDescriptor
    from npuw_layer.remote.tensor import RemoteTensor

__all__ = [
    "BatchedCompiledModel",
    "CompiledModel",
    "Core",
    "FileDescriptor",
    "InferRequest",
    "RemoteContext",
    "RemoteTensor",
    "StaticCompiledModel",
    "StaticInferRequest",
    "Tensor",
    "VariableState",
    "page_aligned_bytes",
]

_HOME = {
    "CompiledModel": "npuw_layer.kinds.llm.compiled_model",
    "Core": "npuw_layer.api.core",
    "FileDescriptor": "npuw_layer.remote.properties",
    "InferRequest": "npuw_layer.llm.request.infer_request",
    "RemoteContext": "npuw_layer.remote.context",
    "RemoteTensor": "npuw_layer.remote.tensor",
    "BatchedCompiledModel": "npuw_layer.kinds.static.compiled_model",
    "StaticCompiledModel": "npuw_layer.kinds.static.compiled_model",
    "StaticInferRequest": "npuw_layer.kinds.static.infer_request",
    "Tensor": "npuw_layer.backends.tensor",
    "VariableState": "npuw_layer.llm.request.variable_state",
    "page_aligned_bytes": "npuw_layer.remote.memory",
}


def __getattr__(name: str) -> Any:
    """Import a public name on first use, so that a warm start loads no compiler."""
    if name not in _HOME:
        raise AttributeError(f"module 'npuw_layer' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOME[name]), name)
