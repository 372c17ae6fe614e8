"""Cut of a Kokoro into two static models: one encodes the text, the other makes audio of frames."""

from __future__ import annotations

import logging

from xdsl.ir import SSAValue

from compiler_layer.dialects.ov.logic import Greater
from compiler_layer.dialects.ov.matmul import MatMul
from compiler_layer.dialects.ov.recurrent import LSTMSequence
from compiler_layer.dialects.ov.shape import ShapeOf
from compiler_layer.dialects.ov.types import element_of, shape_of, tensor
from compiler_layer.errors import CompilerError
from compiler_layer.model import Model
from compiler_layer.rewriting.dead_code import remove_dead_code
from compiler_layer.rewriting.shapes import specialize_shapes
from npuw_layer.errors import ModelError
from npuw_layer.kinds.kokoro.matmuls import AlignmentMatmuls, find_alignment_matmuls
from npuw_layer.kinds.kokoro.names import (
    ASR_BLOCK,
    ASR_LEFT,
    EN_BLOCK,
    EN_LEFT,
    INPUT_IDS,
    INPUT_LENGTHS,
    OPTION,
    TEXT_MASK,
)

_log = logging.getLogger(__name__)


def durations_model(whole: Model) -> Model:
    """Return the model that reads a text.

    Args:
        whole: the model as read, with static inputs; not changed.

    Returns:
        The model up to its matmuls with the alignment. Outputs: durations, by their name in the
        whole model, en_left and asr_left. Inputs: those of the whole model that are used here, and
        text_mask and input_lengths.

    Raises:
        ModelError: the model is not a Kokoro, or not static.
    """
    _check_inputs(whole)
    model = whole.clone()
    _give_lengths(model)  # before shapes are folded
    found = _products(model)
    durations = found.durations
    model.set_outputs(
        [
            (durations.name, durations.value),
            (EN_LEFT, found.en.a),
            (ASR_LEFT, found.asr.a),
        ]
    )
    _drop_unread(model)
    return model


def audio_model(whole: Model, block: int) -> Model:
    """Return the model that makes audio.

    Args:
        whole: as for ``durations_model``.
        block: number of frames per run.

    Returns:
        The model behind its matmuls. Inputs: en_block and asr_block [1, channels, block], and those
        of the whole model that are used here. Output: the audio, by its name.

    Raises:
        ModelError: the model is not a Kokoro, or not static.
    """
    _check_inputs(whole)
    model = whole.clone()
    found = _products(model)
    for name, product in ((EN_BLOCK, found.en), (ASR_BLOCK, found.asr)):
        _take_frames(model, name, product, block)
    model.set_outputs([(found.audio.name, found.audio.value)])
    _drop_unread(model)
    return model


def _give_lengths(model: Model) -> None:
    """Add inputs that describe padding; the result of a text without padding is unchanged.

    The exported model treats all tokens as text: it takes their number from the shape of its input,
    which never changes in a static model. So values that the model derives from this shape become
    inputs, if it has them: the mask of attention, and the lengths that recurrent networks read.

    Args:
        model: with the input ``input_ids``, of a static shape; changed in place.
    """
    ids = next(port.value for port in model.inputs if port.name == INPUT_IDS)
    mask = _mask(model, ids)
    if mask is None:
        _log.warning("no padding mask found: padding affects the result")
        return
    mask.output.replace_all_uses_with(model.add_input(TEXT_MASK, tensor("boolean", shape_of(ids))))
    networks = [op for op in model.body.ops if isinstance(op, LSTMSequence)]
    if networks:
        lengths = model.add_input(INPUT_LENGTHS, tensor("i64", (1,)))
        for network in networks:
            network.operands[network.operands.index(network.lengths)] = lengths


def _mask(model: Model, ids: SSAValue) -> Greater | None:
    """Return the comparison of positions with lengths, all derived from the shape of the ids."""
    known: set[SSAValue] = set()
    """Constants, and values that depend only on them and on that shape."""
    of_shape: set[SSAValue] = set()
    for op in model.body.ops:
        follows = any(operand in of_shape for operand in op.operands)
        if isinstance(op, ShapeOf) and op.x is ids:
            follows = True
        elif not all(operand in known for operand in op.operands):
            continue
        known.update(op.results)
        if follows:
            of_shape.update(op.results)
        if follows and isinstance(op, Greater):
            return op
    return None


def _products(model: Model) -> AlignmentMatmuls:
    """Infer shapes, and find the matmuls."""
    try:
        specialize_shapes(model)
    except CompilerError as error:
        raise ModelError(f"{OPTION} = YES: {error}") from error
    return find_alignment_matmuls(model)


def _take_frames(model: Model, name: str, product: MatMul, block: int) -> None:
    """Replace a matmul by an input of a block of frames."""
    kind = tensor(element_of(product.output), (1, shape_of(product.a)[1], block))
    product.output.replace_all_uses_with(model.add_input(name, kind))


def _drop_unread(model: Model) -> None:
    """Remove ops and inputs that no output needs."""
    remove_dead_code(model)
    for port in model.inputs:
        if not port.value.uses:
            model.remove_input(port.name)


def _check_inputs(model: Model) -> None:
    """Check that all inputs are static, and that input_ids are i64 [1, tokens]."""
    opened = [repr(port.name) for port in model.inputs if -1 in shape_of(port.value)]
    if opened:
        raise ModelError(
            f"{OPTION} = YES: the shapes of {', '.join(opened)} are open; reshape the model, e.g. "
            "input_ids to [1, 512], ref_s to [1, 256] and speed to [1]"
        )
    ids = {port.name: port.value for port in model.inputs}.get(INPUT_IDS)
    if ids is None or element_of(ids) != "i64" or len(shape_of(ids)) != 2 or shape_of(ids)[0] != 1:
        raise ModelError(f"{OPTION} = YES: the model has no input {INPUT_IDS}, i64 [1, tokens]")
