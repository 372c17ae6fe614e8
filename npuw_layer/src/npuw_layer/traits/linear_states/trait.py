"""Trait of layers with a state of fixed size."""

from __future__ import annotations

import re
from collections.abc import Sequence

from npuw_layer.backends.protocols import (
    ASSIGN_PREFIX,
    READ_PREFIX,
    Device,
    LoadedModel,
    TensorInfo,
)
from npuw_layer.errors import BlobError, ModelError
from npuw_layer.llm.kv.kv_strategy import KVStrategy
from npuw_layer.llm.plan.stages import Stage, StageKind
from npuw_layer.llm.request.history import History
from npuw_layer.llm.trait import ConversationPart, Instance, ModelNames
from npuw_layer.options import Options
from npuw_layer.traits.graph_trait import GraphTrait
from npuw_layer.traits.linear_states.states import LinearStates
from npuw_layer.traits.variables import variables

_STATE = re.compile(r"cache_params\.past\.(?:conv|ssm)\.\d+(?:cache_params\.present\..*)?")
"""Names of the variables that are states.

E.g. ``cache_params.past.conv.0cache_params.present.conv.0``: exporters join the names of the read
and the assigned tensor.
"""


class _OfModel(Instance):
    """States of one model.

    Args:
        held: the variables, as static models read them.
    """

    rereads = True
    one_row_for = ""

    def __init__(self, held: Sequence[TensorInfo]) -> None:
        self._held = held

    def part(self, device: Device, cache: KVStrategy, history: History) -> ConversationPart:
        """Allocate the states of a conversation."""
        return LinearStates(device, self._held)


class LinearStatesTrait(GraphTrait):
    """Layers with a state of fixed size in place of K and V."""

    forgets_tokens = False

    def owns(self, variable: str) -> bool:
        """Return whether a variable is a state of fixed size."""
        return is_linear_cache(variable)

    def recognise(self, inputs: Sequence[TensorInfo]) -> Instance | None:
        """Return the instance for a model that reads states of fixed size."""
        found = variables(inputs, READ_PREFIX, is_linear_cache)
        return _OfModel([*found.values()]) if found else None

    def check_options(self, names: ModelNames, options: Options) -> None:
        """Check that options are compatible with states of fixed size, if the model has any.

        Raises:
            ModelError: an option would share K and V without the states, or a state is not one of a
                short convolution.
        """
        states = sorted(name for name in names.variables if is_linear_cache(name))
        if not states:
            return
        others = [name for name in states if not _is_convolution(name)]
        if others:
            raise ModelError(
                f"the model has layers with a state {others[0]!r}; of states of fixed size only "
                "those of short convolutions are supported, not state-space models"
            )
        refused = {
            "NPUW_LLM_ENABLE_PREFIX_CACHING": options.enable_prefix_caching,
            "NPUW_LLM_BATCH_SLOTS": max(options.batch_slots) > 1,
            "NPUW_TEXT_EMBED": options.named("NPUW_TEXT_EMBED"),
            "NPUW_TEXT_RERANK": options.named("NPUW_TEXT_RERANK"),
        }
        for name, wanted in refused.items():
            if wanted:
                raise ModelError(
                    f"{name}: the model has layers with a state in place of K and V "
                    f"({states[0]!r}), which depends on all earlier tokens; leave the option out"
                )

    def check_ports(
        self, stages: Sequence[Stage], loaded: Sequence[LoadedModel], options: Options
    ) -> None:
        """Compare the states that programs read and assign.

        Raises:
            BlobError: a program reads states other than those it assigns, or than the other
                programs.
        """
        of_all: dict[str, TensorInfo] | None = None
        for stage, program in zip(stages, loaded, strict=True):
            if stage.kind is StageKind.HEAD:
                continue
            read = variables(program.inputs, READ_PREFIX, is_linear_cache)
            of_all = read if of_all is None else of_all
            assigned = variables(program.outputs, ASSIGN_PREFIX, is_linear_cache)
            if read != of_all or read != assigned:
                raise BlobError(f"{stage.name} has other states than the rest")


def is_linear_cache(variable: str) -> bool:
    """Return whether a variable is a state of fixed size, by its id."""
    return _STATE.fullmatch(variable) is not None


def _is_convolution(variable: str) -> bool:
    """Return whether a state of fixed size belongs to a short convolution."""
    return ".past.conv." in variable


TRAIT = LinearStatesTrait("linear_states")
