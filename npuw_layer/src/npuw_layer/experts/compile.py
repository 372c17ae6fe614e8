"""Compiles the experts of a mixture, those that are alike once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from compiler_layer.weights import WEIGHT_PREFIX, WeightRef
from npuw_layer.errors import ModelError
from npuw_layer.experts.container import ExpertEntry, PortEntry, Routed, write_container
from npuw_layer.ports import Device, TensorInfo

if TYPE_CHECKING:
    from xdsl.ir import SSAValue

    from compiler_layer.files import FileView
    from compiler_layer.mixtures.expert import ExpertModel
    from compiler_layer.mixtures.mixture import Mixture
    from compiler_layer.model import Model

FEWEST = 16
"""Rows that a program takes at least, if there are as many: below this a run takes as long."""


def rows_at_once(tokens: int, slots: int, experts: int, asked: int) -> int:
    """How many rows an expert's program takes.

    Args:
        tokens: T.
        slots: K, how many experts a token goes through.
        experts: E.
        asked: NPUW_MOE_TOKEN_CHUNK_SIZE; with 0 it is what an expert gets on average, rounded up to
            a power of two, and no fewer than FEWEST.
    """
    if asked:
        return min(asked, tokens)
    average = max(1, -(-tokens * slots // experts))
    return min(tokens, max(FEWEST, 1 << (average - 1).bit_length()))


def compile_experts(model: Model, device: Device, config: Mapping[str, str], asked: int) -> bytes:
    """Compile a model that is one mixture of experts.

    Args:
        model: static and lowered, with the hidden rows, the router's ids and weights as inputs, and
            the sum as its output.
        device: what the experts run on.
        config: as for ``ports.Compiler.compile``.
        asked: see ``rows_at_once``.

    Raises:
        ModelError: it is something else, or is not supported.
    """
    mixture = _the_mixture(model)
    count = rows_at_once(mixture.tokens, mixture.slots, len(mixture.terms), asked)
    made = _Programs(device, {**config, "ENABLE_WEIGHTLESS": "YES"})
    experts = [made.add(mixture, number, count) for number in mixture.terms]
    (output,) = model.outputs
    routed = Routed(
        rows=_entry(model, mixture.rows),
        ids=_entry(model, mixture.ids),
        weights=_entry(model, mixture.weights),
        output=PortEntry.of(_info(output.name, output.value)),
        count=count,
        experts=tuple(experts),
        sizes=tuple(len(program) for program in made.programs),
    )
    return write_container(routed, made.programs)


def _the_mixture(model: Model) -> Mixture:
    from compiler_layer.mixtures.find import find_mixtures

    found = find_mixtures(model)
    inputs = {port.value for port in model.inputs}
    if len(found) != 1 or [port.value for port in model.outputs] != [found[0].output]:
        raise ModelError(f"HOST_ROUTED runs models that are one mixture, not {len(found)}")
    if not {found[0].rows, found[0].ids, found[0].weights} <= inputs:
        raise ModelError("HOST_ROUTED: hidden rows, ids and weights of experts must be inputs")
    return found[0]


class _Programs:
    """The programs of a mixture's experts; an expert that is like another one has the same.

    What an expert is like tells its graph. Its weights must be inputs, all of them: of a device
    that keeps them in programs, each expert has its own.
    """

    def __init__(self, device: Device, config: Mapping[str, str]) -> None:
        self._device = device
        self._config = config
        self.programs: list[bytes] = []
        self._shared: dict[tuple[object, ...], tuple[int, ExpertModel, Sequence[str]]] = {}

    def add(self, mixture: Mixture, number: int, count: int) -> ExpertEntry:
        """Take an expert's program, or compile it.

        Raises:
            ModelError: the graph is not supported.
        """
        from compiler_layer.mixtures.expert import expert_model

        expert = expert_model(mixture, number, count)
        if expert.kind in self._shared:
            program, first, names = self._shared[expert.kind]
            weights = tuple(_renamed(name, first.views, expert.views) for name in names)
            return ExpertEntry(number=number, program=program, weights=weights)
        program = self._device.compile(expert.model, self._config)
        self.programs.append(program)
        inputs = self._device.load(program).inputs
        names = tuple(info.name for info in inputs if info.name.startswith(WEIGHT_PREFIX))
        places = {_place(name, expert.views) for name in names}
        if places == set(range(len(expert.views))):
            self._shared[expert.kind] = len(self.programs) - 1, expert, names
        return ExpertEntry(number=number, program=len(self.programs) - 1, weights=names)


def _place(name: str, views: Sequence[FileView]) -> int | None:
    """Which of an expert's weights an input is, or is a part of."""
    ref = WeightRef.parse(name)
    for index, view in enumerate(views):
        inside = view.offset <= ref.offset and ref.offset + ref.size <= view.offset + view.size
        if inside and Path(view.path).name == ref.file:
            return index
    return None


def _renamed(name: str, views: Sequence[FileView], others: Sequence[FileView]) -> str:
    """What an input of one expert's program is called for another expert."""
    ref, index = WeightRef.parse(name), _place(name, views)
    assert index is not None  # programs are shared whose inputs all have a place
    view, other = views[index], others[index]
    offset = other.offset + ref.offset - view.offset
    return WeightRef(Path(other.path).name, offset, ref.size, ref.stored, ref.element).name


def _entry(model: Model, value: SSAValue) -> PortEntry:
    (name,) = (port.name for port in model.inputs if port.value is value)
    return PortEntry.of(_info(name, value))


def _info(name: str, value: SSAValue) -> TensorInfo:
    from compiler_layer.dialects.ov.types import element_of, shape_of

    return TensorInfo(name, element_of(value), shape_of(value))
