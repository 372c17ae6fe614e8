"""Attention over a paged KV cache, as used by continuous batching."""

from __future__ import annotations

from xdsl.dialects.builtin import BoolAttr
from xdsl.ir import SSAValue
from xdsl.irdl import operand_def, prop_def, result_def, var_operand_def

from compiler_layer.dialects.ov.op import OvOp
from compiler_layer.dialects.ov.types import Shape, Tensor, element_of, same_dims, shape_of, tensor

CACHES = (3, 4)
"""Indices of the cache operands, K and V."""

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
"""Optional operands, after the required ones; an absent one has no elements."""

MOST_OTHERS = len(_OTHERS)

_UNKNOWN = {
    "score_aggregation_window": "score outputs",
    "rotated_block_indices": "rotated blocks of K",
    "xattention_threshold": "sparse attention (xattention)",
    "sinks": "sinks",
    "adaptive_rkv_evictable_sizes": "evictable rows (adaptive R-KV)",
    "token_type_ids": "token types",
    "qq_bias": "a query-to-query bias",
}
"""Optional operands that are not supported, with the name of their feature."""

_CACHE_ELEMENTS = ("f32", "f16")
_CACHE_RANK = 4


class PagedAttentionExtension(OvOp):
    """Causal attention of several sequences, whose rows of K and V are in blocks of two caches.

    q [T, H · D], k [T, Hkv · D] and v [T, Hkv · Dv] are the new tokens of all sequences, one
    sequence after another. Sequence s of S has the tokens subsequence_begins[s] to
    subsequence_begins[s + 1], and past_lens[s] tokens before them. The caches are
    [blocks, Hkv, B, D] and [blocks, Hkv, B, Dv]. The blocks of sequence s are block_indices from
    block_indices_begins[s] to block_indices_begins[s + 1]; its row i is row i % B of its block
    i // B.

    With ``write_kv_cache`` the new rows of K and V are first written to the caches, **in place**;
    no other op changes operands. Then each token attends to all rows up to its own, or with a
    sliding_window W > 0 to the last W of these. Scores are multiplied by scale, or 1 / sqrt(D) if
    scale has no elements. With alibi_slopes [H], a head's slope times the distance from a row to
    the token's own is subtracted from the score (ALiBi). Results: y [T, H · Dv]; scores and
    diversity, which are not computed and must not be used.

    Source: OpenVINO's internal op of this name (core/dev_api), which the SDPAToPagedAttention
    transformation creates.
    """

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
        """Operands that locate rows: past_lens and the three after it."""
        return tuple(self.operands[5:9])

    def refusal(self) -> str | None:
        """Return the requested feature that is not supported, or None."""
        given = dict(zip(_OTHERS, self.others, strict=False))
        asked = {what: _is_given(given.get(name)) for name, what in _UNKNOWN.items()}
        asked["score outputs"] = bool(self.scores.uses or self.diversity.uses)
        return next((f"with {what}" for what, wanted in asked.items() if wanted), None)

    def infer(self) -> list[Tensor]:
        """Infer [T, H · Dv]; scores and diversity are empty."""
        q, k, v = shapes = [shape_of(each) for each in (self.q, self.k, self.v)]
        if any(len(shape) != 2 for shape in shapes):
            raise ValueError(f"q, k and v are {[*map(list, shapes)]}, not [tokens, channels]")
        for each in (self.key_cache, self.value_cache):
            _check_cache(element_of(each), shape_of(each))
        if any(len(shape_of(each)) != 1 or element_of(each) != "i32" for each in self.tables):
            raise ValueError("tables of sequences and blocks must be i32 vectors")
        tokens = same_dims(*(shape[:1] for shape in shapes))
        channels = _attended_channels(q[1], k[1], v[1])
        element = element_of(self.q)
        attended = tensor(element, (*tokens, channels))
        return [attended, tensor(element, (0,)), tensor(element, (0,))]

    def check(self) -> None:
        """Check that every requested feature is supported.

        Raises:
            ValueError: a feature is not supported.
        """
        refusal = self.refusal()
        if refusal is not None:
            raise ValueError(f"PagedAttentionExtension {refusal}")


def _is_given(operand: SSAValue | None) -> bool:
    return operand is not None and 0 not in shape_of(operand)


def _attended_channels(q: int, k: int, v: int) -> int:
    """Return H · Dv for H · D, Hkv · D and Hkv · Dv; -1 if one is not known."""
    if min(q, k, v) < 0:
        return -1
    if not k or q % k or not q or not v:
        raise ValueError(f"q, k and v of {q}, {k} and {v} channels do not form heads")
    return q // k * v


def _check_cache(element: str, shape: Shape) -> None:
    if element not in _CACHE_ELEMENTS:
        raise ValueError(f"the cache is {element}; {' and '.join(_CACHE_ELEMENTS)} are supported")
    if len(shape) != _CACHE_RANK:
        raise ValueError(f"the cache is {list(shape)}, not [blocks, heads, rows, channels]")
