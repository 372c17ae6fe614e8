"""Trait of layers with a state of fixed size."""

from __future__ import annotations

from collections.abc import Sequence

from npuw_layer.backends.protocols import READ_PREFIX, Device, LoadedModel, TensorInfo
from npuw_layer.llm.kv.kv_strategy import KVStrategy
from npuw_layer.llm.plan.stages import Stage
from npuw_layer.llm.request.history import History
from npuw_layer.llm.trait import ConversationPart, Instance, ModelNames
from npuw_layer.options import Options
from npuw_layer.traits.graph_trait import GraphTrait
from npuw_layer.traits.linear_states.check import check_linear_caches, check_states
from npuw_layer.traits.linear_states.names import is_linear_cache
from npuw_layer.traits.linear_states.states import LinearStates
from npuw_layer.traits.variables import variables


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
        """Check that options are compatible with states; see ``check``."""
        check_linear_caches(names.variables, options)

    def check_ports(
        self, stages: Sequence[Stage], loaded: Sequence[LoadedModel], options: Options
    ) -> None:
        """Compare the states that programs read and assign; see ``check``."""
        check_states(stages, loaded)


TRAIT = LinearStatesTrait("linear_states")
