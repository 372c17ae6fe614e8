"""Attention over a cache of K and V in pages, as continuous batching has it."""

from __future__ import annotations

from xdsl.dialects.builtin import BoolAttr
from xdsl.ir import SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, prop_def, result_def, var_operand_def

from compiler_layer.dialects.ov.op import OvOp
from compiler_layer.dialects.ov.types import Shape, Tensor, element_of, same_dims, shape_of, tensor

CACHES = (3, 4)
"""The numbers of the operands that are caches, of K and of V."""

_OTHERS = (
    *("score_aggregation_window", "rotated_block_indices", "rotation_deltas", "rotation_trig_lut"),
    *("xattention_threshold", "xattention_block_size", "xattention_stride", "sinks"),
    *("adaptive_rkv_start_size", "adaptive_rkv_evictable_sizes"),
    *(
        "adaptive_rkv_diversity_block_set_indices",
        "adaptive_rkv_diversity_block_set_indices_begins",
    ),
    *("token_type_ids", "qq_bias", "qq_bias_begins"),
)
"""Operands behind those that are always there; one that is not given has no elements."""

MOST_OPERANDS = 13 + len(_OTHERS)

_UNKNOWN = {
    "score_aggregation_window": "scores for others",
    "rotated_block_indices": "rows of K that are turned anew",
    "xattention_threshold": "sparse attention (xattention)",
    "sinks": "sinks",
    "adaptive_rkv_evictable_sizes": "rows that may be evicted (adaptive R-KV)",
    "token_type_ids": "tokens of several types",
    "qq_bias": "a bias of queries by queries",
}
"""Operands that are not understood, if they are given."""

_CACHE_ELEMENTS = ("f32", "f16")
_CACHE_RANK = 4


@irdl_op_definition
class PagedAttentionExtension(OvOp):
    """Causal attention of several sequences, whose rows of K and V lie in blocks of two caches.

    q [T, H · D], k [T, Hkv · D] and v [T, Hkv · Dv] are the new tokens of all sequences, one after
    another. Of sequence s of S these are tokens subsequence_begins[s] to subsequence_begins[s + 1];
    past_lens[s] others came before them. Caches are [blocks, Hkv, B, D] and [blocks, Hkv, B, Dv];
    row i of the sequence is row i % B of the block that stands at i // B among its own, which are
    block_indices from block_indices_begins[s] to block_indices_begins[s + 1].

    With ``write_kv_cache`` the new rows of K and V are first written there, **in place**: it is the
    only op that changes operands. Then each token attends to all rows up to its own, or with a
    sliding_window W > 0 to the last W of these. Scores are multiplied with scale, or if that has no
    elements with 1 / sqrt(D). Where there are alibi_slopes [H], the slope of a head of q, times how
    far a row is behind the token's own, is taken off them (ALiBi). Results: y [T, H · Dv]; scores
    and their diversity, of which nothing is computed, so that nobody may use them.

    Source: OpenVINO's internal op of this name (core/dev_api), which the SDPAToPagedAttention
    transformation makes.
    """

    name = "ov.PagedAttentionExtension"
    q = operand_def(Tensor)
    k = operand_def(Tensor)
    v = operand_def(Tensor)
    key_cache = operand_def(Tensor)
    value_cache = operand_def(Tensor)
    past_lens = operand_def(Tensor)
    subsequence_begins = operand_def(Tensor)
    block_indices = operand_def(Tensor)
    block_indices_begins = operand_def(Tensor)
    scale = operand_def(Tensor)
    sliding_window = operand_def(Tensor)
    alibi_slopes = operand_def(Tensor)
    max_context_len = operand_def(Tensor)
    others = var_operand_def(Tensor)
    write_kv_cache = prop_def(BoolAttr)
    y = result_def(Tensor)
    scores = result_def(Tensor)
    diversity = result_def(Tensor)

    @property
    def tables(self) -> tuple[SSAValue, ...]:
        """What says where rows lie: past_lens and the three behind it."""
        return tuple(self.operands[5:9])

    def refusal(self) -> str | None:
        """Tell what is asked for that is not understood, or None."""
        given = dict(zip(_OTHERS, self.others, strict=False))
        asked = {what: _is_given(given.get(name)) for name, what in _UNKNOWN.items()}
        asked["scores for others"] = bool(self.scores.uses or self.diversity.uses)
        return next((f"with {what}" for what, wanted in asked.items() if wanted), None)

    def infer(self) -> list[Tensor]:
        """[T, H · Dv]; of scores there are none."""
        q, k, v = shapes = [shape_of(each) for each in (self.q, self.k, self.v)]
        if any(len(shape) != 2 for shape in shapes):
            raise ValueError(f"q, k and v of {[*map(list, shapes)]}, not of [tokens, channels]")
        for each in (self.key_cache, self.value_cache):
            _check_cache(element_of(each), shape_of(each))
        if any(len(shape_of(each)) != 1 or element_of(each) != "i32" for each in self.tables):
            raise ValueError("tables of sequences and blocks that are no i32 vectors")
        tokens = same_dims(*(shape[:1] for shape in shapes))
        channels = _attended_channels(q[1], k[1], v[1])
        element = element_of(self.q)
        attended = tensor(element, (*tokens, channels))
        return [attended, tensor(element, (0,)), tensor(element, (0,))]

    def check(self) -> None:
        """See that all that is asked for is understood.

        Raises:
            ValueError: it is not.
        """
        refusal = self.refusal()
        if refusal is not None:
            raise ValueError(f"PagedAttentionExtension {refusal}")


def _is_given(operand: SSAValue | None) -> bool:
    return operand is not None and 0 not in shape_of(operand)


def _attended_channels(q: int, k: int, v: int) -> int:
    """H · Dv of H · D, Hkv · D and Hkv · Dv; -1 if one is not known."""
    if min(q, k, v) < 0:
        return -1
    if not k or q % k or not q or not v:
        raise ValueError(f"q, k and v of {q}, {k} and {v} channels")
    return q // k * v


def _check_cache(element: str, shape: Shape) -> None:
    if element not in _CACHE_ELEMENTS:
        raise ValueError(f"a cache of {element}; {' and '.join(_CACHE_ELEMENTS)} are understood")
    if len(shape) != _CACHE_RANK:
        raise ValueError(f"a cache of {list(shape)}, not of [blocks, heads, rows, channels]")
