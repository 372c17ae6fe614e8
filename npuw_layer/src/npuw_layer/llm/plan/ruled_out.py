"""Checks of options that a model's programs rule out, for programs from any source.

Options that change no program may meet programs from the cache or a blob, which compilation has
not checked against them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from npuw_layer.backends.protocols import READ_PREFIX, LoadedModel
from npuw_layer.errors import ModelError
from npuw_layer.llm.plan.stages import LLMPlan, Stage
from npuw_layer.llm.trait import ModelNames
from npuw_layer.options import Options
from npuw_layer.tensors.names import CACHE_POSITION, POSITIONS
from npuw_layer.tensors.token_inputs import token_inputs
from npuw_layer.tensors.token_outputs import TokenOutput, token_outputs
from npuw_layer.tensors.traits import traits


def check_ruled_out(models: Mapping[Stage, LoadedModel], plan: LLMPlan, options: Options) -> None:
    """Check that a model supports the options.

    Args:
        models: programs of the model.
        plan: plan of the programs.
        options: options that the model is to run with.

    Raises:
        ModelError: the model does not; the error names the option and the remedy.
    """
    # Inputs and outputs that follow tokens are equal in all models.
    one = models[(plan.generate or plan.prefill)[0]]
    names = [info.name for info in one.inputs]
    variables = [name.removeprefix(READ_PREFIX) for name in names if name.startswith(READ_PREFIX)]
    check_traits(ModelNames(names, variables, [info.name for info in one.outputs]), options)
    for head in plan.heads:
        of_head = [info.name.removeprefix(READ_PREFIX) for info in models[head].inputs]
        for trait in traits():
            trait.check_head(of_head, options)
    several = any(port.name == POSITIONS and port.axes for port in token_inputs(one.inputs))
    if options.on_full == "TRUNCATE" and several:
        raise ModelError(
            "NPUW_LLM_ON_FULL = TRUNCATE: position_ids have several axes (M-RoPE), which cannot "
            "be computed again without the images; use ERROR or SLIDE"
        )
    # BLOOM has neither input: its biases follow the mask's columns, whose order a slide breaks.
    counts = CACHE_POSITION in names or POSITIONS not in names
    if options.on_full == "SLIDE" and counts:
        raise ModelError(
            "NPUW_LLM_ON_FULL = SLIDE: the model counts tokens itself, because its attention "
            "depends on token distances (sliding windows, biases by distance) or it takes no "
            "position_ids; sliding would falsify the count; use TRUNCATE"
        )
    outputs = token_outputs(one.outputs)
    if outputs:
        check_all_computed(options, outputs)


def check_traits(names: ModelNames, options: Options) -> None:
    """Check that a model's traits support the options.

    Raises:
        ModelError: a trait does not; the error names the option and the remedy.
    """
    for trait in traits():
        trait.check_options(names, options)


def check_all_computed(options: Options, outputs: Sequence[TokenOutput]) -> None:
    """Check that each inference computes all its tokens, since outputs have a row for each.

    Raises:
        ModelError: some tokens would come from the prefix cache, or be dropped.
    """
    problem = ""
    if options.enable_prefix_caching:
        problem = "NPUW_LLM_ENABLE_PREFIX_CACHING = YES: cached tokens have none"
    elif options.on_full == "TRUNCATE":
        problem = "NPUW_LLM_ON_FULL = TRUNCATE: dropped tokens have none"
    if problem:
        names = ", ".join(one.name for one in outputs)
        raise ModelError(f"the model returns {names} for each token; {problem}; leave it out")
