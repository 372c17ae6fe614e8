"""Options that a model's programs rule out, wherever the programs come from.

Options that change no program find it in the cache, or come with a blob, so that compilation has
not checked them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from npuw_layer.backends.protocols import READ_PREFIX, LoadedModel, TensorInfo
from npuw_layer.errors import ModelError
from npuw_layer.llm.plan.stages import Plan, Stage
from npuw_layer.llm.trait import ModelNames
from npuw_layer.options import Options
from npuw_layer.tensors.names import CACHE_POSITION, POSITIONS
from npuw_layer.tensors.token_inputs import token_inputs
from npuw_layer.tensors.token_outputs import TokenOutput, token_outputs
from npuw_layer.tensors.traits import traits


def check_ruled_out(models: Mapping[Stage, LoadedModel], plan: Plan, options: Options) -> None:
    """See that a model can do what options ask for.

    Args:
        models: its programs.
        plan: what they are for.
        options: of the model as it is to run.

    Raises:
        ModelError: it cannot; names the option, and what to do.
    """
    # As to what they take and give of tokens, all are alike.
    one = models[(plan.generate or plan.prefill)[0]]
    names = [info.name for info in one.inputs]
    variables = [name.removeprefix(READ_PREFIX) for name in names if name.startswith(READ_PREFIX)]
    check_traits(ModelNames(names, variables, [info.name for info in one.outputs]), options)
    for head in plan.heads:
        check_head([info.name.removeprefix(READ_PREFIX) for info in models[head].inputs], options)
    if options.on_full == "TRUNCATE":
        _check_rereads(one.inputs)
    # BLOOM takes neither: its biases follow the columns of the mask, which slide out of order.
    counts = CACHE_POSITION in names or POSITIONS not in names
    if options.on_full == "SLIDE" and counts:
        raise ModelError(
            "NPUW_LLM_ON_FULL = SLIDE: the model counts tokens itself, as its attention "
            "depends on how far they are apart (sliding windows, biases by distance) or takes "
            "no position_ids; sliding would change that; use TRUNCATE"
        )
    outputs = token_outputs(one.outputs)
    if outputs:
        check_all_computed(options, outputs)


def check_traits(names: ModelNames, options: Options) -> None:
    """Check that a model's traits can do what options ask for.

    Raises:
        ModelError: one cannot; names the option and the remedy.
    """
    for trait in traits():
        trait.check_options(names, options)


def check_head(variables: Sequence[str], options: Options) -> None:
    """Check the same of an LM head that is a program of its own.

    Args:
        variables: of the head.
        options: of the model.

    Raises:
        ModelError: a trait cannot.
    """
    for trait in traits():
        trait.check_head(variables, options)


def check_all_computed(options: Options, outputs: Sequence[TokenOutput]) -> None:
    """See that all tokens of an inference are computed in it, as outputs have rows of each.

    Raises:
        ModelError: some would come from the prefix cache, or be dropped.
    """
    problem = ""
    if options.enable_prefix_caching:
        problem = "NPUW_LLM_ENABLE_PREFIX_CACHING = YES: of tokens that were cached there are none"
    elif options.on_full == "TRUNCATE":
        problem = "NPUW_LLM_ON_FULL = TRUNCATE: of tokens that are dropped there would be none"
    if problem:
        names = ", ".join(one.name for one in outputs)
        raise ModelError(f"the model gives {names} of each token; {problem}; leave it out")


def _check_rereads(inputs: Sequence[TensorInfo]) -> None:
    """See that what stays of a history can be read anew."""
    if any(one.name == POSITIONS and one.axes for one in token_inputs(inputs)):
        raise ModelError(
            "NPUW_LLM_ON_FULL = TRUNCATE: position_ids have several axes (M-RoPE), and those "
            "of what is read anew could not be told without the images; use ERROR or SLIDE"
        )
