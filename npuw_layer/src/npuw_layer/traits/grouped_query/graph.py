"""Decomposition of ONNX Runtime's attention into the attention of other decoders.

ONNX Runtime's OpenVINO execution provider makes an ONNX decoder with GroupQueryAttention stateful:
``past_key_values.N`` are then variables, read through a Gather by beam_idx.

Source: NPUW's DecomposeGQA (docs/reference/npuw.md#grouped-query-attention), which has separate
masks for prefill models, padded to the left, and for generate models; ONNX Runtime's
ov_stateful_patch_utils.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from xdsl.ir import SSAValue
from xdsl.rewriter import Rewriter

from compiler_layer.builder import GraphBuilder
from compiler_layer.dialects.ov.elementwise import Convert
from compiler_layer.dialects.ov.gather import Gather
from compiler_layer.dialects.ov.group_query_attention import GroupQueryAttention
from compiler_layer.dialects.ov.op import int_value
from compiler_layer.dialects.ov.shape import Reshape, Squeeze, Unsqueeze
from compiler_layer.dialects.ov.state import ReadValue
from compiler_layer.dialects.ov.types import element_of, shape_of
from compiler_layer.errors import CompilerError
from compiler_layer.model import Model
from compiler_layer.rewriting.dead_code import remove_dead_code
from compiler_layer.rewriting.grouped_attention import GroupedAttention
from npuw_layer.errors import ModelError
from npuw_layer.llm.graph.cache_positions import cache_position
from npuw_layer.llm.graph.causal_mask import causal_mask
from npuw_layer.llm.graph.compare_tokens import CompareTokens
from npuw_layer.llm.graph.computed import Computed, made_of
from npuw_layer.llm.graph.graph_pass import GraphPass, Placed
from npuw_layer.llm.plan.stages import Stage
from npuw_layer.options import Options
from npuw_layer.tensors.cache_axes import USUAL
from npuw_layer.tensors.names import MASK, POSITIONS
from npuw_layer.tensors.token_inputs import TOKENS

_POSITIONS_RANK = 2
"""Rank of position_ids [batch, new]; with several axes (M-RoPE) a factor depends on all of them."""

_TRIED = (1, 2, 9)
"""Lengths of masks for which the number of tokens is evaluated."""


def passes(model: Model, stage: Stage, options: Options) -> Sequence[Placed]:
    """Return the pass for a model with GroupQueryAttention."""
    del options
    if not any(isinstance(op, GroupQueryAttention) for op in model.body.ops):
        return ()
    return (Placed(CompareTokens.name, TakeApartGQA(stage.tokens, stage.past, stage.slots)),)


def _replace(model: Model, op: GroupQueryAttention, parts: _CommonParts) -> None:
    _check_variable(op, op.past_key)
    _check_variable(op, op.past_value)
    parts.check_counted(op)
    g = GraphBuilder(model, op)
    own = parts.of(g, op)
    q, k = op.q, op.k
    if int_value(op.do_rotary):
        cos, sin = (parts.angles(g, op, name) for name in ("cos", "sin"))
        q, k = (own.rotated(each, cos, sin) for each in (q, k))
    key = g.concat([op.past_key, k], USUAL.tokens)
    value = g.concat([op.past_value, op.v], USUAL.tokens)
    found = own.attended(q, key, value, parts.mask(g, op))
    Rewriter.replace_op(op, [], [found, key, value])


def _check_variable(op: GroupQueryAttention, past: SSAValue) -> None:
    reorder = past.owner
    read = reorder.data.owner if isinstance(reorder, Gather) else reorder
    if not isinstance(read, ReadValue):
        raise ModelError(
            f"{op.described}: its cache is not a variable; make the model stateful, as ONNX "
            "Runtime's OpenVINO execution provider does, or compile static models, whose caches "
            "are inputs, with NPUW_GQA = YES and without NPUW_LLM"
        )


class _CommonParts:
    """Parts that layers share, each created once.

    Args:
        model: model that the ops are added to.
        tokens: new tokens of the model.
        past: rows of its caches.
        slots: number of conversations in a batch.
    """

    def __init__(self, model: Model, tokens: int, past: int, slots: int) -> None:
        self._model = model
        self._sizes = tokens, slots
        self._capacity = past + tokens
        self._inputs = {port.name: port.value for port in model.inputs}
        self._counted = set[SSAValue]()
        self._angles: dict[tuple[SSAValue, SSAValue, int], SSAValue] = {}
        self._masks: dict[int | None, SSAValue] = {}

    def of(self, g: GraphBuilder, op: GroupQueryAttention) -> GroupedAttention:
        """Return the writer of an op's remaining parts."""
        tokens, slots = self._sizes
        return GroupedAttention(g, op, slots, tokens)

    def check_counted(self, op: GroupQueryAttention) -> None:
        """Check that the op attends to all tokens of attention_mask.

        Raises:
            ModelError: the op's number of tokens is computed otherwise.
        """
        if op.seqlens_k not in self._counted and not self._is_counted(op.seqlens_k):
            raise ModelError(
                f"{op.described}: seqlens_k must be the number of tokens in {MASK} less 1, "
                "computed from that input"
            )
        self._counted.add(op.seqlens_k)

    def _is_counted(self, value: SSAValue) -> bool:
        mask = self._inputs[MASK]
        if {*made_of(value)} != {mask}:
            return False
        try:
            found = [Computed({mask: np.ones((1, count), np.int64)}).of(value) for count in _TRIED]
        except CompilerError:
            return False
        return all(
            each.reshape(-1).tolist() == [count - 1]
            for each, count in zip(found, _TRIED, strict=True)
        )

    def angles(self, g: GraphBuilder, op: GroupQueryAttention, name: str) -> SSAValue:
        """Return sines or cosines of new tokens, as ``GroupedAttention.looked_up``."""
        table, places = op.other(name), self._positions(op)
        assert table is not None  # infer() has checked it
        rows = shape_of(table)[0]
        if rows < self._capacity:
            raise ModelError(
                f"{op.described}: its rotary tables have {rows} rows, but a static model needs "
                f"at least {self._capacity}; lower NPUW_LLM_MAX_PROMPT_LEN or "
                "NPUW_LLM_MIN_RESPONSE_LEN"
            )
        key = table, places, int_value(op.rotary_interleaved)
        if key not in self._angles:
            index = places if element_of(places) == "i64" else g.convert(places, "i64")
            self._angles[key] = self.of(g, op).looked_up(name, index)
        return self._angles[key]

    def _positions(self, op: GroupQueryAttention) -> SSAValue:
        """Return the positions of new tokens in the tables of rotary factors, [batch, new]."""
        given, inputs = op.other("position_ids"), self._inputs
        if given is None:
            return cache_position(self._model, *self._sizes)
        while isinstance(given.owner, Convert | Reshape | Squeeze | Unsqueeze):
            given = given.owner.operands[0]
        if given is not inputs.get(POSITIONS) or len(shape_of(given)) != _POSITIONS_RANK:
            raise ModelError(
                f"{op.described}: its position_ids must be the model's input of that name, one per "
                "token, or left out, so that tokens are counted"
            )
        return given

    def mask(self, g: GraphBuilder, op: GroupQueryAttention) -> SSAValue:
        """Return the mask as values to add to the scores."""
        if op.window not in self._masks:
            tokens = next(self._inputs[name] for name in TOKENS if name in self._inputs)
            self._masks[op.window] = causal_mask(g, tokens, self._inputs[MASK], op.window)
        return self._masks[op.window]


@dataclass(frozen=True)
class TakeApartGQA(GraphPass):
    """Decompose GroupQueryAttention of a stateful decoder into ops.

    Before:  %o, %k, %v = ov.GroupQueryAttention(%q, …, %past_key, %past_value, %seqlens_k, …)
    After:   %k = ov.Concat(%past_key, %new) ; %v = … ; %m = mask of %attention_mask
             %o = ov.ScaledDotProductAttention(%q, %k, %v, %m)

    The op derives the number of stored rows, the first of its cache, from attention_mask
    (``seqlens_k``). In a static cache new rows follow the whole buffer. The decomposition uses the
    mask of other decoders, so later passes find a Concat that extends K and V, windows, and
    attention. The input ``cache_position`` is added if rotary factors follow token indices and not
    position_ids.

    No token attends to rows that attention_mask hides. For ONNX Runtime hidden rows do not exist,
    so later tokens have smaller positions; but within one conversation no row is hidden.

    Raises:
        ModelError: an op's cache is not a variable, its number of tokens does not follow
            attention_mask, or it has rotary factors for fewer tokens than allowed.
    """

    name = "take-apart-gqa"

    tokens: int
    past: int
    slots: int = 1

    def _rewrite(self, model: Model) -> None:
        parts = _CommonParts(model, self.tokens, self.past, self.slots)
        for each in model.ops:
            if isinstance(each, GroupQueryAttention):
                _replace(model, each, parts)
        remove_dead_code(model)
