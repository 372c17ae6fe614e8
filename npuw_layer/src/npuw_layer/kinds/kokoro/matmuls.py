"""Matmuls of a Kokoro's encodings with its alignment; their outputs have a row per frame.

The alignment, [1, tokens, frames], has a 1 where a frame belongs to a token. It follows from the
durations, so no size behind these matmuls is known before the model runs.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import SSAValue

from compiler_layer.dialects.ov.matmul import MatMul
from compiler_layer.dialects.ov.op import int_value
from compiler_layer.dialects.ov.types import element_of, shape_of
from compiler_layer.model import Model, Port
from npuw_layer.errors import ModelError
from npuw_layer.kinds.kokoro.names import OPTION

_INTEGERS = ("i64", "i32")
_FLOATS = ("f32", "f16")


@dataclass(frozen=True, slots=True)
class AlignmentMatmuls:
    """Cut points of a Kokoro.

    Attributes:
        durations: the output with the duration of each token in frames, [tokens].
        audio: the output with samples, [samples].
        en: the matmul of the prosody encoding (the wider one, as it includes the style),
        asr: and of the phonetic encoding; each [1, channels, tokens] times [1, tokens, frames].
    """

    durations: Port
    audio: Port
    en: MatMul
    asr: MatMul


def find_alignment_matmuls(model: Model) -> AlignmentMatmuls:
    """Find the matmuls by data dependencies, without regard to names.

    Args:
        model: a model whose shapes are computed as far as the inputs determine them.

    Raises:
        ModelError: the model is not a Kokoro; the message names the missing feature.
    """
    durations = _output(model, _INTEGERS, "no integer output with the durations of tokens")
    audio = _output(model, _FLOATS, "no floating-point output with the audio")
    following = _following(model, durations.value)
    found = [
        op
        for op in model.body.ops
        if isinstance(op, MatMul) and op.b in following and op.a not in following
    ]
    if len(found) != 2 or found[0].b is not found[1].b or not all(map(_is_plain, found)):
        raise _not_kokoro(
            "no two matmuls of encodings, [1, channels, tokens], with an alignment computed from "
            "durations"
        )
    asr, en = sorted(found, key=lambda op: shape_of(op.a)[1])
    return AlignmentMatmuls(durations, audio, en, asr)


def _output(model: Model, elements: tuple[str, ...], lacking: str) -> Port:
    for port in model.outputs:
        if element_of(port.value) in elements:
            return port
    raise _not_kokoro(lacking)


def _following(model: Model, value: SSAValue) -> set[SSAValue]:
    """Return the values that depend on a value."""
    following = {value}
    for op in model.body.ops:
        if any(operand in following for operand in op.operands):
            following.update(op.results)
    return following


def _is_plain(op: MatMul) -> bool:
    """Return whether a matmul reads an untransposed [1, channels, tokens], with known channels."""
    shape = shape_of(op.a)
    turned = int_value(op.transpose_a) or int_value(op.transpose_b)
    return not turned and len(shape) == 3 and shape[0] in (1, -1) and shape[1] > 0


def _not_kokoro(lacking: str) -> ModelError:
    return ModelError(
        f"{OPTION} = YES: the model is not a Kokoro: it has {lacking}; export one with optimum-cli "
        "export openvino --library kokoro, or leave the option out"
    )
