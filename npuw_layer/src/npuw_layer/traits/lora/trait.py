"""Trait of LoRA adapters."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from npuw_layer.backends.protocols import READ_PREFIX, Device, LoadedModel, TensorInfo
from npuw_layer.errors import BlobError
from npuw_layer.llm.kv.kv_strategy import KVStrategy
from npuw_layer.llm.plan.stages import Stage, StageKind
from npuw_layer.llm.request.history import History
from npuw_layer.llm.trait import ConversationPart, Instance
from npuw_layer.options import Options
from npuw_layer.tensors.names import slot_of, slot_variable
from npuw_layer.traits.graph_trait import GraphTrait
from npuw_layer.traits.lora.buffers import AdapterBuffers
from npuw_layer.traits.lora.names import adapter_name, check_head_adapters, is_adapter_variable
from npuw_layer.traits.lora.values import AdapterValues
from npuw_layer.traits.variables import variables

_FLOATS = frozenset({"f32", "f16", "bf16"})
"""Element types of programs' activations."""


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
        """Check that all programs except LM heads read the same adapters, at the compiled rank.

        Raises:
            BlobError: adapters differ, or are of another rank.
        """
        rank = options.max_lora_rank
        known: dict[str, TensorInfo] = {}
        bodies: set[frozenset[str]] = set()
        for stage, program in zip(stages, loaded, strict=True):
            read = variables(program.inputs, READ_PREFIX, is_adapter_variable)
            names = {slot_of(name)[0] for name in read}
            for name, info in read.items():
                variable = slot_of(name)[0]
                alone = TensorInfo(variable, info.element, info.shape[-2:])
                if (
                    not _fits(variable, info, stage, rank)
                    or known.setdefault(variable, alone) != alone
                ):
                    raise BlobError(
                        f"{stage.name} has {READ_PREFIX}{name} {info.element} {list(info.shape)}, "
                        f"which differs from the other programs, or is not of rank {rank}"
                    )
            if {*read} != _expected(names, stage):
                raise BlobError(f"{stage.name} has different adapters in its slots")
            if stage.kind is not StageKind.HEAD:
                bodies.add(frozenset(names))
        if len(bodies) > 1:
            raise BlobError("its programs have different adapters")


def _expected(names: Iterable[str], stage: Stage) -> set[str]:
    """Return the names of the variables in a stage's inputs."""
    if stage.slots == 1:
        return set(names)
    return {slot_variable(name, slot) for name in names for slot in range(stage.slots)}


def _fits(variable: str, info: TensorInfo, stage: Stage, rank: int) -> bool:
    """Return whether an input is a matrix of the rank; with several slots, a batch of one."""
    of = adapter_name(variable)
    batch = (1,) if stage.slots > 1 else ()
    return (
        of is not None
        and info.element in _FLOATS
        and len(info.shape) == len(batch) + 2
        and info.shape[: len(batch)] == batch
        and info.shape[len(batch) + of.part.rank_axis] == rank
    )


TRAIT = LoRA("lora")
