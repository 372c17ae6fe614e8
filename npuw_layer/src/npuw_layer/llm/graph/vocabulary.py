"""Size of the vocabulary in the name of an input."""

from __future__ import annotations

from collections.abc import Iterator

from compiler_layer.dialects.ov.elementwise import Convert
from compiler_layer.dialects.ov.gather import Gather
from compiler_layer.dialects.ov.op import int_value
from compiler_layer.dialects.ov.shape import Reshape, Squeeze, Unsqueeze
from compiler_layer.dialects.ov.types import shape_of, tensor
from compiler_layer.model import Model
from npuw_layer.llm.graph.graph_pass import GraphPass
from npuw_layer.tensors.names import IDS, VOCABULARY

_KEPT = Convert | Reshape | Squeeze | Unsqueeze
"""Ops that keep ids unchanged."""


def record_vocabulary(graph: Model, model: Model) -> None:
    """Add the input of ``RecordVocabulary``.

    Args:
        graph: graph made from the model; changed in place.
        model: model that looks up unchanged ids.
    """
    known = min(_tables(model), default=0)
    if known:
        graph.add_input(f"{VOCABULARY}{known}", tensor("i64", (1,)))


def _tables(model: Model) -> Iterator[int]:
    """Yield the number of rows of each table in which unchanged ids are looked up."""
    ids = model.find_input(IDS)
    waiting = [] if ids is None else [ids]
    while waiting:
        for use in waiting.pop().uses:
            op = use.operation
            if isinstance(op, _KEPT) and use.index == 0:
                waiting.append(op.results[0])
            elif isinstance(op, Gather) and use.index == 1 and _takes_rows(op):
                yield shape_of(op.data)[0]


def _takes_rows(op: Gather) -> bool:
    """Return whether an op looks up rows of a table of known length."""
    try:
        return op.known_axis() == 0 and not int_value(op.batch_dims) and shape_of(op.data)[0] > 0
    except ValueError:
        return False


class RecordVocabulary(GraphPass):
    """Add an unread input whose name ends with the number of token ids.

    Before:  %h = ov.Gather(%table : 32000x64, %input_ids)
    After:   the same, and an input npuw_vocabulary_32000

    A device looks up embeddings without checking that the row exists, so the host must check ids,
    and the host sees no graph if programs come from the cache or a blob. The last dimension of the
    logits is no substitute: exporters pad and cut heads. A model that looks up no ids stays as it
    is.
    """

    name = "record-vocabulary"

    def _rewrite(self, model: Model) -> None:
        record_vocabulary(model, model)
