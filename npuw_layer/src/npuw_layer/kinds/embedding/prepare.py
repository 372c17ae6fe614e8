"""Preparation of a model that reads texts: the graph that its stages are made from."""

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
    """Rebuild a model as a stateful decoder, if it is to be read in chunks.

    Args:
        model: the exported model; it may be changed.
        options: task and lengths.

    Returns:
        A stateful graph, which is split like a language model; or a stateless graph, if texts are
        read whole.

    Raises:
        NotCausal: options require chunks or a separate head, but the model must be read whole.
        ModelError: the model does not read a text.
    """
    if model.variables():
        outputs = [port.name for port in model.outputs]
        if options.group(TextOptions).text_embed and outputs == [LAST_HIDDEN_STATE]:
            model.set_outputs([(EMBED, model.outputs[0].value)])
        return model
    check_ports(model)
    chunks = lengths_of(options).chunk is not None
    if options.group(TextOptions).text_rerank and (chunks or options.cuts_head):
        raise NotCausal("the model has no KV cache; export it as a language model to get chunks")
    if chunks:
        rebuild(model)
    return model
