"""Trait of LoRA adapters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from npuw_layer.backends.protocols import READ_PREFIX, Device, LoadedModel, Program, TensorInfo
from npuw_layer.llm.kv.kv_strategy import KVStrategy
from npuw_layer.llm.plan.stages import Stage
from npuw_layer.llm.request.history import History
from npuw_layer.llm.request.new_tokens import NewTokens
from npuw_layer.llm.trait import ConversationPart, Instance, Settings
from npuw_layer.options import Options
from npuw_layer.traits.graph_trait import GraphTrait
from npuw_layer.traits.lora.buffers import AdapterBuffers
from npuw_layer.traits.lora.names import adapter_inputs, check_head_adapters, is_adapter_variable
from npuw_layer.traits.lora.ports import check_adapters
from npuw_layer.traits.lora.values import AdapterValues
from npuw_layer.traits.lora.variable_state import AdapterVariableState

if TYPE_CHECKING:
    from npuw_layer.llm.request.conversation import Conversation


class _Adapters(ConversationPart):
    """Adapters of one conversation.

    Args:
        device: device of the adapters' memory.
        inputs: inputs that read adapters, each variable once.
        values: adapters in force, at first without effect.
    """

    persists = True

    def __init__(self, device: Device, inputs: Sequence[TensorInfo], values: AdapterValues) -> None:
        self._buffers = AdapterBuffers(device, inputs)
        self._values = values

    @property
    def nbytes(self) -> int:
        """Bytes of device memory."""
        return self._buffers.nbytes

    @property
    def digest(self) -> bytes:
        """Identity of the adapters in force; empty if none has an effect."""
        return self._values.digest

    def use(self, settings: Settings | None) -> None:
        """Use the adapters of a conversation that has taken this slot."""
        assert isinstance(settings, AdapterValues)  # made by this trait's instance
        self._values = settings

    def bind(self, program: Program, ports: Sequence[TensorInfo]) -> None:
        """Bind the inputs that read adapters."""
        self._buffers.bind(program, ports)

    def begin(self) -> None:
        """Copy changed adapters to the device."""
        self._buffers.apply(self._values)

    def prefix_key(self, tokens: NewTokens) -> bytes:
        """Return a key that separates rows computed with these adapters from others."""
        return self._values.digest

    def variable_states(
        self, talk: Conversation, check_idle: Callable[[], None]
    ) -> Sequence[AdapterVariableState]:
        """Return the variables as a request exposes them."""
        values = self._values
        return [AdapterVariableState(name, values, check_idle) for name in values.names]


class _OfModel(Instance):
    """Variables of adapters in one model.

    Args:
        inputs: inputs that read adapters, each variable once.
    """

    one_row_for = ""

    def __init__(self, inputs: Sequence[TensorInfo]) -> None:
        self._inputs = inputs
        self._shapes = {info.name.removeprefix(READ_PREFIX): info.shape for info in inputs}

    def part(self, device: Device, cache: KVStrategy, history: History) -> ConversationPart:
        """Allocate the buffers of a conversation."""
        return _Adapters(device, self._inputs, self.settings())

    def settings(self) -> AdapterValues:
        """Return new adapters, without effect until set."""
        return AdapterValues(self._shapes)


class LoRA(GraphTrait):
    """Adapters in variables that a request sets."""

    def owns(self, variable: str) -> bool:
        """Return whether a variable is an adapter's, in any slot."""
        return is_adapter_variable(variable)

    def recognise(self, inputs: Sequence[TensorInfo]) -> Instance | None:
        """Return the instance for a model that reads adapters."""
        found = adapter_inputs([inputs])
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
