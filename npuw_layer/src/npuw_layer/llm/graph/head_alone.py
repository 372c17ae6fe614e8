"""LM head as a separate model."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.rewriter import Rewriter

from compiler_layer.dialects.ov.op import int_value
from compiler_layer.dialects.ov.state import Assign
from compiler_layer.dialects.ov.types import element_of, shape_of, tensor
from compiler_layer.model import Model
from compiler_layer.partition.repeated.attributes import forget_repetitions
from compiler_layer.rewriting.dead_code import remove_dead_code
from npuw_layer.errors import NoHead
from npuw_layer.llm.graph.graph_pass import GraphPass
from npuw_layer.llm.graph.head import find_head, logits_of
from npuw_layer.llm.graph.kept_variables import remove_marks
from npuw_layer.tensors.names import EMBED, LOGITS


@dataclass(frozen=True)
class HeadAlone(GraphPass):
    """Keep only the LM head, for a number of hidden states at a time.

    Before:  %logits = ov.MatMul(%states, %vocabulary) ; %states depend on %input_ids, …
    After:   %logits = ov.MatMul(%npuw_output_embed : 1xROWSx64, %vocabulary)

    Raises:
        NoHead: the logits are not a matmul of hidden states of static width.
    """

    name = "head-alone"

    rows: int

    def _rewrite(self, model: Model) -> None:
        logits = logits_of(model)
        head = find_head(logits)
        # The states' own width may be computed from their shape; the vocabulary's is known.
        product = head.readers[0]
        width = shape_of(product.b)[-1 if int_value(product.transpose_b) else -2]
        if width <= 0:
            raise NoHead("the hidden states of the LM head have no static width")
        names = [port.name for port in model.inputs]
        kind = tensor(element_of(product.a), (1, self.rows, width))
        head.read(head.before(model), model.add_input(EMBED, kind))
        for each in model.ops:
            if isinstance(each, Assign):
                Rewriter.replace_op(each, [], [each.value])
        model.set_outputs([(LOGITS, logits)])
        remove_dead_code(model)
        for name in names:
            model.remove_input(name)
        head.refresh_types()
        forget_repetitions(model)
        remove_marks(model)
        model.refresh_signature()
