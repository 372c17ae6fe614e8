"""Static graph of one length for a model that reads a text whole, unaffected by padding.

Padding follows the text and is masked out, so no token attends to it. Some models compare ids with
the padding id to count positions or find the last token (RoBERTa, classifiers made of decoders).
There padding must have that id; the host does not know it, and writes ``PADDING`` instead.
"""

from __future__ import annotations

import numpy as np
from xdsl.ir import SSAValue

from compiler_layer.builder import GraphBuilder
from compiler_layer.dialects.ov import elementwise, logic, shape
from compiler_layer.dialects.ov.attention import ScaledDotProductAttention
from compiler_layer.dialects.ov.constant import Constant, values_of
from compiler_layer.dialects.ov.op import int_value
from compiler_layer.dialects.ov.slicing import Slice
from compiler_layer.dialects.ov.types import shape_of
from compiler_layer.model import Model
from npuw_layer.errors import ModelError
from npuw_layer.kinds.embedding.options import TextOptions
from npuw_layer.kinds.embedding.reading import PADDING
from npuw_layer.llm.graph.last_token_head import LastTokenHead
from npuw_layer.llm.graph.pipeline import run_passes, stage_passes
from npuw_layer.llm.graph.vocabulary import record_vocabulary
from npuw_layer.llm.plan.stages import Stage
from npuw_layer.options import Options
from npuw_layer.options.llm import PROMPT_GRAIN
from npuw_layer.tensors.names import IDS, MASK, POSITIONS
from npuw_layer.traits.images.trait import TOKEN_TYPES

_KEPT = shape.Unsqueeze | shape.Squeeze | shape.Reshape | elementwise.Convert
"""Ops that preserve ids."""


def text_graph(model: Model, stage: Stage, options: Options, check: bool = False) -> Model:
    """Return the static graph of a stage of a model that reads texts.

    A model with K and V is prepared like a language model, but returns embeddings, or logits, of
    all tokens. Parameters and errors are those of ``stage_graph``.
    """
    if not model.variables():
        graph = whole_graph(model, stage.tokens)
        record_vocabulary(graph, model)
        return graph
    graph = model.clone()
    passes = stage_passes(model, stage, options, check)
    if options.group(TextOptions).text_embed:
        passes = [each for each in passes if not isinstance(each, LastTokenHead)]
    run_passes(graph, passes)
    return graph


def whole_graph(model: Model, tokens: int) -> Model:
    """Return the static graph that reads texts of up to a number of tokens.

    Args:
        model: a stateless graph; not changed.
        tokens: length of the longest text.

    Returns:
        A graph with input_ids and attention_mask i64 [1, tokens], and token_type_ids and
        position_ids of that shape if the model has them. Padding behind a text has the id
        ``PADDING`` and is masked out. The outputs are the model's.

    Raises:
        ModelError: the model reads inputs other than a text, has too few positions, or ignores the
            mask.
    """
    check_ports(model)
    _check_tables(model, tokens)
    _check_masked(model)
    clone = model.clone()
    clone.set_input_shapes({port.name: (1, tokens) for port in clone.inputs})
    _pad(clone)
    return clone


def check_ports(model: Model) -> None:
    """Check that a model reads a text and no other inputs.

    Raises:
        ModelError: the model has other inputs, which the error names.
    """
    names = {port.name for port in model.inputs}
    if not {IDS, MASK} <= names <= {IDS, MASK, TOKEN_TYPES, POSITIONS}:
        raise ModelError(
            f"not a model that reads a text: inputs {sorted(names)}; expected {IDS}, {MASK}"
            f"[, {TOKEN_TYPES}, {POSITIONS}]"
        )


def _check_masked(model: Model) -> None:
    """Check that padding can be masked out.

    Raises:
        ModelError: tokens attend to later ones, and the mask is unused.
    """
    mask = next(port.value for port in model.inputs if port.name == MASK)
    both = [
        op
        for op in model.body.ops
        if isinstance(op, ScaledDotProductAttention) and not int_value(op.causal)
    ]
    if not mask.uses and both:
        raise ModelError(
            f"{both[0].described}: the model does not read {MASK}, so tokens would attend to the "
            "padding of shorter texts; export the model with its mask"
        )


def _check_tables(model: Model, tokens: int) -> None:
    """Check that position tables, which are cut to the text's length, are long enough.

    Raises:
        ModelError: a table is too short.
    """
    for op in model.body.ops:
        if not isinstance(op, Slice) or not isinstance(op.x.owner, Constant):
            continue
        for rows, cut in zip(shape_of(op.x), shape_of(op.output), strict=True):
            if cut == -1 and rows < tokens:
                raise ModelError(
                    f"the model has {rows} positions, fewer than NPUW_LLM_MAX_PROMPT_LEN = "
                    f"{tokens}; set it to at most {rows // PROMPT_GRAIN * PROMPT_GRAIN}"
                )


def _pad(model: Model) -> None:
    """Replace ``PADDING`` in the ids by the padding id of the model."""
    ids = next(port.value for port in model.inputs if port.name == IDS)
    known = _padding_id(ids)
    readers = list(ids.uses)
    g = GraphBuilder(model, model.body.first_op)
    padding = g.op(logic.Equal, ids, g.constant(np.full((1, 1), PADDING, np.int64)))
    id_of_padding = g.constant(np.full((1, 1), known, np.int64))
    padded = g.op(elementwise.Select, padding, id_of_padding, ids)
    for use in readers:
        use.operation.operands[use.index] = padded


def _padding_id(ids: SSAValue) -> int:
    """Return the number that ids are compared with; 0 without a comparison."""
    waiting = [ids]
    while waiting:
        value = waiting.pop()
        for use in value.uses:
            op = use.operation
            if isinstance(op, logic.Equal | logic.NotEqual):
                number = values_of(op.operands[1 - use.index])
                if number is not None and number.size == 1 and number.item() >= 0:
                    return int(number.item())
            elif isinstance(op, _KEPT) and use.index == 0:
                waiting.append(op.results[0])
    return 0
