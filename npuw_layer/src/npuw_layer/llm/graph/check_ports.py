"""Check of a stateful language model's ports."""

from __future__ import annotations

from dataclasses import dataclass

from compiler_layer.dialects.ov.paged_attention import PagedAttentionExtension
from compiler_layer.dialects.ov.types import shape_of
from compiler_layer.model import Model
from npuw_layer.errors import ModelError
from npuw_layer.llm.graph.graph_pass import GraphPass
from npuw_layer.tensors.names import BEAMS, EMBED, LOGITS, MASK
from npuw_layer.tensors.token_inputs import TOKENS, beside_tokens, ignored_inputs

_CACHE_RANK = 4


def _stateless(model: Model) -> str:
    """Return the error text for a language model without variables, with the way to export one."""
    caches = [port.name for port in model.inputs if len(shape_of(port.value)) == _CACHE_RANK]
    instead = f"; {len(caches)} inputs such as {caches[0]!r} take them" if caches else ""
    return (
        f"the model is stateless: no variables (ReadValue, Assign) keep K and V{instead}; export "
        "it with state: optimum-cli export openvino --task text-generation-with-past, without "
        "--disable-stateful"
    )


@dataclass(frozen=True)
class CheckPorts(GraphPass):
    """Check that a graph is a stateful language model; remove unread optional inputs.

    Before:  (%input_ids, %attention_mask, %token_type_ids: unread, …) → %logits
    After:   (%input_ids, %attention_mask, …) → %logits

    ``known`` names inputs that other passes of the pipeline handle.

    Raises:
        ModelError: the graph is not such a model; the error names its inputs and outputs.
    """

    name = "check-ports"

    known: tuple[str, ...] = ()

    def _rewrite(self, model: Model) -> None:
        names = {port.name for port in model.inputs}
        # A model that biases attention by distance (ALiBi) reads no positions.
        unknown = names - {*TOKENS, *beside_tokens(), MASK, BEAMS, *self.known}
        outputs = [port.name for port in model.outputs]
        given = [name for name in TOKENS if name in names]
        gives = outputs.count(LOGITS) == 1 or outputs == [EMBED]
        paged = any(isinstance(each, PagedAttentionExtension) for each in model.body.ops)
        if len(given) == 1 and gives and not paged and not model.variables():
            raise ModelError(_stateless(model))
        if len(given) != 1 or MASK not in names or unknown or not gives:
            hint = "; set NPUW_PA = YES for a model with paged attention" if paged else ""
            raise ModelError(
                f"not a stateful language model: inputs {sorted(names)}, outputs {outputs}; "
                f"expected {' or '.join(TOKENS)}, {MASK}[, {', '.join(beside_tokens())}, {BEAMS}] "
                f"and {LOGITS}{hint}"
            )
        for port in model.inputs:
            if port.name in ignored_inputs() and not port.value.uses:
                model.remove_input(port.name)
