"""NaN logits: rejected with the causes that are possible with the model's properties."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from genai_layer.errors import RuntimeFailure
from genai_layer.npu import OnFull, property_of
from genai_layer.properties import plain
from genai_layer.runtime import CompiledModel


def reject_nan(
    logits: npt.NDArray[np.float32], tokens: int, compiled: CompiledModel | None
) -> None:
    """Reject NaN logits, from which sampling would choose the same token forever.

    Activations of some models overflow f16. A model with a position table returns NaN beyond the
    table, which a sliding cache can reach.

    Args:
        logits: f32 [rows, n, vocabulary].
        tokens: number of tokens that the model has read.
        compiled: the model; None if its properties are unknown.

    Raises:
        RuntimeFailure: a logit is NaN.
    """
    if np.isnan(logits.max()):
        raise RuntimeFailure(f"the logits after {tokens} tokens are NaN: {_advice(compiled)}")


def _advice(compiled: CompiledModel | None) -> str:
    """Return the possible causes and their remedies, without properties that are set already."""
    cause, remedy = "weights are not finite", "check the model's files"
    if _is(compiled, "INFERENCE_PRECISION_HINT", "f16"):
        cause = "activations overflowed f16"
        remedy = "set INFERENCE_PRECISION_HINT to f32 or bf16"
    fewer = "request fewer tokens"
    if _is(compiled, "NPUW_LLM_ON_FULL", OnFull.SLIDE):
        fewer += " or set NPUW_LLM_ON_FULL=TRUNCATE, which keeps positions low"
    return f"{cause}, or the model has no positions that far; {remedy}, else {fewer}"


def _is(compiled: CompiledModel | None, name: str, value: str) -> bool:
    return compiled is not None and plain(property_of(compiled, name, None)) == value
