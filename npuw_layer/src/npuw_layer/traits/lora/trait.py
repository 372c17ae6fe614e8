"""Trait of LoRA adapters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from npuw_layer.backends.protocols import READ_PREFIX, Device, LoadedModel, TensorInfo
from npuw_layer.llm.kv.kv_strategy import KVStrategy
from npuw_layer.llm.plan.stages import Stage
from npuw_layer.llm.request.history import History
from npuw_layer.llm.trait import ConversationPart, Instance
from npuw_layer.options import Options
from npuw_layer.traits.graph_trait import GraphTrait
from npuw_layer.traits.lora.buffers import AdapterBuffers
from npuw_layer.traits.lora.names import check_head_adapters, is_adapter_variable
from npuw_layer.traits.lora.ports import check_adapters
from npuw_layer.traits.lora.values import AdapterValues
from npuw_layer.traits.variables import variables

if TYPE_CHECKING:
    pass


class _OfModel(Instance):
    """Variables of adapters in one model.

    Args:
        held: the variables, as static models read them.
    """

    one_row_for = ""

    def __init__(self, held: Mapping[str, TensorInfo]) -> None:
        self._held = held

    def part(self, device: Device, cache: KVStrategy, history: History) -> ConversationPart:
        """Allocate the buffers of a conversation."""
        return AdapterBuffers(device, [*self._held.values()], self.settings())

    def settings(self) -> AdapterValues:
        """Return new adapters, without effect until set."""
        return AdapterValues({name: info.shape for name, info in self._held.items()})


class LoRA(GraphTrait):
    """Adapters in variables that a request sets."""

    def owns(self, variable: str) -> bool:
        """Return whether a variable is an adapter's, in any slot."""
        return is_adapter_variable(variable)

    def recognise(self, inputs: Sequence[TensorInfo]) -> Instance | None:
        """Return the instance for a model that reads adapters."""
        found = variables(inputs, READ_PREFIX, is_adapter_variable)
        return _OfModel(found) if found else None

    def check_head(self, variables: Sequence[str], options: Options) -> None:
        """Check that the LM head of several conversations has no adapters.

        Raises:
            ModelError: the head would need the adapter of each conversation.
        """
        check_head_adapters(variables, max(options.batch_slots))

    def check_ports(
        self, stages: Sequence[Stage], loaded: Sequence[LoadedModel], options: Options
    ) -> None:
        """Compare the adapters that programs read; see ``ports``."""
        check_adapters(stages, loaded, options.max_lora_rank)


TRAIT = LoRA("lora")
