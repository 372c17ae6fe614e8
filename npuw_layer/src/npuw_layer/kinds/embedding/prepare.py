"""The graph of a model that reads texts, as its stages are made of it."""

from __future__ import annotations

from compiler_layer.model import Model
from npuw_layer.errors import NotCausal
from npuw_layer.kinds.embedding.options import TextOptions
from npuw_layer.kinds.embedding.rebuild import rebuild
from npuw_layer.kinds.embedding.whole import check_ports
from npuw_layer.llm.plan.stages import lengths_of
from npuw_layer.options import Options
from npuw_layer.tensors.names import EMBED, LAST_HIDDEN_STATE


def prepare_text(model: Model, options: Options) -> Model:
    """Make a stateful decoder of a model, if it is to be read in chunks.

    Args:
        model: as it was read; it may be changed.
        options: what is wanted of it.

    Returns:
        A stateful graph, which is split as a language model is; or, if texts are read whole, a
        stateless one.

    Raises:
        NotCausal: chunks, or a head of its own, are wanted of a model that can only be read whole.
        ModelError: it reads no text.
    """
    if model.variables():
        outputs = [port.name for port in model.outputs]
        if options.group(TextOptions).text_embed and outputs == [LAST_HIDDEN_STATE]:
            model.set_outputs([(EMBED, model.outputs[0].value)])
        return model
    check_ports(model)
    chunks = lengths_of(options).chunk is not None
    if options.group(TextOptions).text_rerank and (chunks or options.cuts_head):
        raise NotCausal("it keeps no K and V; export it as a language model to read it in chunks")
    if chunks:
        rebuild(model)
    return model
