"""How many token ids a model knows: as many as its table of embeddings has rows.

A device looks rows up without asking whether they are there, so that the host has to; and the host
sees no graph when programs come from the cache, or from a blob. So the number stands in the name of
an input that no op reads, as that of ``long_rope`` does. The logits' last dimension tells something
else: heads are padded, or cut, as exporters like.
"""

from __future__ import annotations

from collections.abc import Iterator

from compiler_layer.dialects.ov.elementwise import Convert
from compiler_layer.dialects.ov.gather import Gather
from compiler_layer.dialects.ov.op import int_value
from compiler_layer.dialects.ov.shape import Reshape, Squeeze, Unsqueeze
from compiler_layer.dialects.ov.types import shape_of, tensor
from compiler_layer.model import Model
from npuw_layer.llm.names import IDS, VOCABULARY

_KEPT = Convert | Reshape | Squeeze | Unsqueeze
"""Ops that keep ids as they are."""


def tell_vocabulary(graph: Model, model: Model) -> None:
    """Let a static model's inputs tell which token ids there are, if it takes any.

    Args:
        graph: made of the model; changed in place.
        model: that takes ids as exporters have it.
    """
    names = [port.name for port in graph.inputs]
    known = min(_tables(model), default=0)
    if IDS in names and known:
        graph.body.insert_arg(tensor("i64", (1,)), len(names))
        graph.set_inputs([*names, f"{VOCABULARY}{known}"])


def _tables(model: Model) -> Iterator[int]:
    """The rows of each table that ids as they are given are looked up in."""
    waiting = [port.value for port in model.inputs if port.name == IDS]
    while waiting:
        for use in waiting.pop().uses:
            op = use.operation
            if isinstance(op, _KEPT) and use.index == 0:
                waiting.append(op.results[0])
            elif isinstance(op, Gather) and use.index == 1 and _takes_rows(op):
                yield shape_of(op.data)[0]


def _takes_rows(op: Gather) -> bool:
    """Whether an op looks up rows of a table whose length is known."""
    try:
        return op.known_axis() == 0 and not int_value(op.batch_dims) and shape_of(op.data)[0] > 0
    except ValueError:
        return False
