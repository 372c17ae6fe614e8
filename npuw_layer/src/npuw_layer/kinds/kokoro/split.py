"""A Kokoro as two static models: what reads the text, and what makes audio of frames."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from compiler_layer.dialects.ov.matmul import MatMul
from compiler_layer.dialects.ov.types import element_of, shape_of, tensor
from compiler_layer.errors import CompilerError
from compiler_layer.model import Model
from compiler_layer.rewriting.dead_code import remove_dead_code
from compiler_layer.rewriting.shapes import specialize_shapes
from npuw_layer.errors import ModelError
from npuw_layer.kinds.kokoro.given_lengths import give_lengths
from npuw_layer.kinds.kokoro.names import (
    ASR_BLOCK,
    ASR_LEFT,
    EN_BLOCK,
    EN_LEFT,
    INPUT_IDS,
    OPTION,
)
from npuw_layer.kinds.kokoro.products import Products, find_products


def durations_model(whole: Model) -> Model:
    """Give what reads a text.

    Args:
        whole: the model as it was read, of static inputs; it stays as it is.

    Returns:
        The model up to its products with the alignment. Its outputs: durations, by the name that
        the whole model gives them, en_left and asr_left. Its inputs: those of the whole model that
        it reads, and text_mask and input_lengths.

    Raises:
        ModelError: it is no Kokoro, or not static.
    """
    _check_inputs(whole)
    model = whole.clone()
    give_lengths(model)  # while it still asks for shapes
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
    """Give what makes audio.

    Args:
        whole: as for ``durations_model``.
        block: how many frames it gets.

    Returns:
        The model from its products on. Its inputs: en_block and asr_block [1, channels, block], and
        those of the whole model that it reads; its output: the audio, by its name.

    Raises:
        ModelError: it is no Kokoro, or not static.
    """
    _check_inputs(whole)
    model = whole.clone()
    found = _products(model)
    for name, product in ((EN_BLOCK, found.en), (ASR_BLOCK, found.asr)):
        _take_frames(model, name, product, block)
    model.set_outputs([(found.audio.name, found.audio.value)])
    _drop_unread(model)
    return model


def _products(model: Model) -> Products:
    """Compute what is known of shapes, and find the products."""
    try:
        specialize_shapes(model)
    except CompilerError as error:
        raise ModelError(f"{OPTION} = YES: {error}") from error
    return find_products(model)


def _take_frames(model: Model, name: str, product: MatMul, block: int) -> None:
    """Let an input of so many frames stand for a product."""
    kind = tensor(element_of(product.output), (1, shape_of(product.a)[1], block))
    names = [port.name for port in model.inputs]
    value: SSAValue = model.body.insert_arg(kind, len(names))
    model.set_inputs([*names, name])
    product.output.replace_all_uses_with(value)


def _drop_unread(model: Model) -> None:
    """Remove what nothing of the outputs needs, inputs too."""
    remove_dead_code(model)
    for port in model.inputs:
        if not port.value.uses:
            model.remove_input(port.name)


def _check_inputs(model: Model) -> None:
    """See that the model is one of tokens, whose number is known."""
    opened = [port.name for port in model.inputs if -1 in shape_of(port.value)]
    if opened:
        raise ModelError(
            f"{OPTION} = YES: the shapes of {_listed(opened)} are open; reshape the model, e.g. "
            "input_ids to [1, 512], ref_s to [1, 256] and speed to [1]"
        )
    ids = {port.name: port.value for port in model.inputs}.get(INPUT_IDS)
    if ids is None or element_of(ids) != "i64" or len(shape_of(ids)) != 2 or shape_of(ids)[0] != 1:
        raise ModelError(f"{OPTION} = YES: the model has no input {INPUT_IDS}, i64 [1, tokens]")


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names))
