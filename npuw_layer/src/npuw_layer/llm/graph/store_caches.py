"""K and V caches of a static model: it reads a fixed number of rows, and assigns only new rows.

Caches are stored as [1, tokens, heads, width], not [1, heads, tokens, width]. So the rows of a
token are contiguous, the cache of a smaller variant is the beginning of a larger one's, and a
program may write the new rows of a prompt directly to their place in the cache.

The caches of several conversations are separate: each *slot* has its own variables, which are bound
to the memory of the conversation in the slot. So no copies are needed when conversations come and
go. The compiler never joins separate caches: see ``lower-attention``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from compiler_layer.dialects.ov.types import shape_of
from compiler_layer.model import Model, Variable
from compiler_layer.partition.repeated.attributes import add_repeated_ids, repeated_ids
from npuw_layer.errors import ModelError
from npuw_layer.llm.graph.graph_pass import GraphPass
from npuw_layer.llm.graph.kept_variables import is_kept, remove_marks
from npuw_layer.llm.graph.stored_float8 import common_rounding, take_scales
from npuw_layer.llm.graph.stored_floats import store_floats
from npuw_layer.llm.graph.stored_rows import SCALE_SUFFIX, StoredCache, store_plain, store_quantized
from npuw_layer.llm.graph.usual_axes import cache_join
from npuw_layer.llm.graph.value_caches import attended_caches, value_caches
from npuw_layer.llm.kv.kv_layout import KVLayout
from npuw_layer.options.llm import KvElement
from npuw_layer.tensors.cache_axes import USUAL
from npuw_layer.tensors.names import slot_variable, transposed_variable


def _check_blocks(model: Model) -> None:
    """Check that attention reads the caches directly; no other op supports blocks.

    Raises:
        ModelError: a cache would have to be joined first.
    """
    caches = {each.name for each in model.variables() if not is_kept(each)}
    others = caches - attended_caches(model)
    if others:
        raise ModelError(
            f"NPUW_LLM_ENABLE_BLOCK_BASED_KV_CACHE: attention does not read {min(others)!r} as "
            "stored, so blocks are not supported; leave the option out"
        )


def cache_of(variable: Variable, past: int, slots: int = 1) -> StoredCache:
    """Return a variable as a cache with ``past`` rows to read for each slot.

    Raises:
        ModelError: the variable is not a K or V cache.
    """
    name, read, assign = variable.name, variable.read, variable.assign
    if read is None or assign is None:
        raise ModelError(f"variable {name!r} is not both read and assigned")
    join = cache_join(variable)
    if join is None or join.known_axis() != USUAL.tokens:
        raise ModelError(f"variable {name!r} is not a K or V cache: no Concat extends it")
    _, heads, _, width = shape_of(read.output)
    if heads <= 0 or width <= 0:
        raise ModelError(f"variable {name!r} has no static heads and width")
    return StoredCache(read, assign, join.parts[1], (1, past, heads, width), slots)


def _name_repeated(model: Model, past: int, slots: int, layout: KVLayout) -> None:
    """Record the new variables' names in the layers that a folded model leaves out."""
    groups = [list(group) for group in repeated_ids(model)]
    stored: list[list[str]] = []
    if layout.element == "i8":
        stored += [[name + SCALE_SUFFIX for name in group] for group in groups]
    if layout.room is not None:
        stored += [[transposed_variable(name) for name in group] for group in groups]
    read: list[list[str]] = []
    if layout.block is not None or slots > 1:
        read = [
            [span.of(name) for name in group]
            for group in [*groups, *stored]
            for span in layout.spans(past)
        ]
    if slots > 1:
        # Variables other than caches are not split into ranges.
        read = [
            [slot_variable(name, slot) for name in group]
            for group in [*read, *groups]
            for slot in range(slots)
        ]
    add_repeated_ids(model, [*stored, *read])


@dataclass(frozen=True)
class StoreCaches(GraphPass):
    """Read ``past`` rows of each cache, and assign only new rows, token by token.

    Before:  %p = ov.ReadValue "0.key" : ?xHx?xW ; ov.Assign "0.key"(ov.Concat(%p, %new))
    After:   %p = ov.Transpose(ov.ReadValue "0.key" : 1xPASTxHxW) ; …
             ov.Assign "0.key"(ov.Transpose(%new) : 1xTOKENSxHxW)

    A cache is a variable that is read, extended by a Concat and assigned. ``element`` i8 adds a
    variable of scales for each row; another type converts rows. With ``optimize_fp8`` rows are
    stored as the model's own FakeConverts round them. With ``room`` each V is a
    ``transposed_variable``: [1, H, W, room] is read, of which the first ``past`` columns are used,
    and [1, H, W, TOKENS] assigned. With ``block`` each block of the past is a ``block_variable``.
    With several ``slots`` each slot reads a ``slot_variable``, and one [1, slots, H, W] is
    assigned.

    Requires: ``usual-axes``.

    Raises:
        ModelError: a variable is not a K or V cache, or does not support blocks.
    """

    name = "store-caches"

    past: int
    slots: int = 1
    element: KvElement = ""
    room: int | None = None
    block: int | None = None
    optimize_fp8: bool = False

    @staticmethod
    def of(past: int, layout: KVLayout, slots: int = 1, optimize_fp8: bool = False) -> StoreCaches:
        """Return the pass for a layout."""
        return StoreCaches(past, slots, layout.element, layout.room, layout.block, optimize_fp8)

    def _rewrite(self, model: Model) -> None:
        layout = KVLayout(self.element, self.room, self.block)
        rounding = common_rounding(model, layout.element) if self.optimize_fp8 else None
        layout = replace(layout, element=rounding or layout.element)
        scales = take_scales(model) if rounding else {}
        transposed = value_caches(model) if layout.room is not None else frozenset[str]()
        if layout.block is not None:
            _check_blocks(model)
        for variable in model.variables():
            if is_kept(variable):
                continue
            cache = replace(
                cache_of(variable, self.past, self.slots),
                spans=layout.spans(self.past),
                room=layout.room if variable.name in transposed else None,
                keeps_type=layout.element == "f32",
            )
            if layout.element == "i8":
                store_quantized(model, cache)
            elif layout.element:
                store_floats(model, cache, layout.element, scales.get(variable.name))
            else:
                store_plain(model, cache)
        _name_repeated(model, self.past, self.slots, layout)
        remove_marks(model)
