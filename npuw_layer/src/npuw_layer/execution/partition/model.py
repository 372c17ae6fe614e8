"""The parts of a model as one ``protocols.LoadedModel`` and ``protocols.Program``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass

from compiler_layer.partition.compiled import LINK_PREFIX, LITERAL_PREFIX
from npuw_layer.backends.arena import nbytes, padded
from npuw_layer.backends.host_tensors import Place, place_contents
from npuw_layer.backends.protocols import Device, LoadedModel, Program, TensorInfo
from npuw_layer.errors import DeviceError
from npuw_layer.execution.joined_program import JoinedProgram
from npuw_layer.execution.partition.container import Call, PartPrograms
from npuw_layer.storage.program_set import Bytes

_INSIDE = (LINK_PREFIX, LITERAL_PREFIX)
"""Prefixes of the ports that only this module binds."""

WrapsPrograms = Callable[[int, Program], Program]
"""Wrapper of a call's program, given the call's number."""


class LoadedParts:
    """The parts of a model on their devices; satisfies ``protocols.LoadedModel``.

    Args:
        device: device that owns the memory.
        parts: the calls, links and ports.
        loaded: the loaded functions.

    Raises:
        DeviceError: a call names unknown ports of its function, or links that do not fit.
    """

    def __init__(self, device: Device, parts: PartPrograms, loaded: Sequence[LoadedModel]) -> None:
        self.device = device
        self._parts = parts
        self._loaded = loaded
        self.unread = parts.unread
        """Inputs that no part reads: any binding is accepted."""
        self.links, self.link_bytes = self._place()
        """Offsets of the links in one memory, and its bytes."""
        self.literals = self._place_literals()
        """Places of the weights that are in no file, by call and name."""
        self._around: WrapsPrograms = lambda number, program: program

    @property
    def inputs(self) -> Sequence[TensorInfo]:
        """Inputs of the model itself, including weights, each once.

        A part that moved to another device reads its weights in that device's form.
        """
        return self._own(lambda loaded: loaded.inputs, self.unread)

    @property
    def outputs(self) -> Sequence[TensorInfo]:
        """Outputs of the model itself."""
        return self._own(lambda loaded: loaded.outputs, {})

    def create_program(self) -> PartsProgram:
        """Create a runnable program.

        Raises:
            DeviceError: the device has no memory left.
        """
        programs = [loaded.create_program() for _, loaded in self.calls()]
        return PartsProgram(self, [self._around(*each) for each in enumerate(programs)])

    def around(self, wrap: WrapsPrograms) -> LoadedParts:
        """Return the same model, with one more wrapper around the program of each call."""
        other, inside = copy(self), self._around
        other._around = lambda number, program: wrap(number, inside(number, program))
        return other

    def calls(self) -> Iterator[tuple[Call, LoadedModel]]:
        """Yield the calls and their functions, in execution order."""
        for call in self._parts.calls:
            yield call, self._loaded[call.function]

    @property
    def members(self) -> Sequence[tuple[str, LoadedModel]]:
        """Programs of the calls, with their groups' tags; see ``execution.devices.report``."""
        functions = self._parts.functions
        return [(functions[call.function].tag, loaded) for call, loaded in self.calls()]

    def _own(
        self,
        side: Callable[[LoadedModel], Sequence[TensorInfo]],
        more: Mapping[str, TensorInfo],
    ) -> Sequence[TensorInfo]:
        own = {**more}
        for call, loaded in self.calls():
            for info in side(loaded):
                name = call.names.get(info.name, info.name)
                if not name.startswith(_INSIDE):
                    own.setdefault(name, TensorInfo(name, info.element, info.shape))
        order = {name: place for place, name in enumerate(self._parts.ports)}
        return sorted(own.values(), key=lambda info: order.get(info.name, len(order)))

    def _place(self) -> tuple[Mapping[str, int], int]:
        """Find each link's lifetime and location."""
        made: dict[str, int] = {}
        read: dict[str, int] = {}
        for number, (call, loaded) in enumerate(self.calls()):
            for infos, at in ((loaded.outputs, made), (loaded.inputs, read)):
                for info in infos:
                    name = call.names.get(info.name, info.name)
                    if name.startswith(LINK_PREFIX):
                        self._check_link(name, info)
                        at[name] = number
        missing = [name for name in read if made.get(name, len(read)) >= read[name]]
        if missing:
            raise DeviceError(f"a partitioned model reads {missing[0]} before a part writes it")
        # Links are never adjacent, so calls of a function differ only in their links' locations.
        sizes = {name: padded(nbytes(self._parts.links[name]) + 1) for name in made}
        return place_links(
            {name: Lifetime(sizes[name], at, read.get(name, at)) for name, at in made.items()}
        )

    def _check_link(self, name: str, info: TensorInfo) -> None:
        link = self._parts.links.get(name)
        if link is None or (link.element, link.shape) != (info.element, info.shape):
            raise DeviceError(
                f"a partitioned model: {name} is {link}, but a part has {info.element} "
                f"{list(info.shape)}; compile it again"
            )

    def _place_literals(self) -> Mapping[tuple[int, str], Place]:
        """Copy the literals of all calls to memory; return their places, by call and name."""
        contents: dict[tuple[int, str], Bytes] = {}
        turns: Counter[int] = Counter()
        for number, call in enumerate(self._parts.calls):
            for name, values in self._parts.functions[call.function].literals.items():
                contents[number, name] = values[turns[call.function]]
            turns[call.function] += 1
        return place_contents(contents, self.device)


class PartsProgram(JoinedProgram):
    """One user of a partitioned model; satisfies ``protocols.Program``.

    Args:
        loaded: the parts.
        programs: the programs of the calls.
    """

    def __init__(self, loaded: LoadedParts, programs: Sequence[Program]) -> None:
        super().__init__(programs)
        for name in loaded.unread:
            self._routes[name] = []
        links = loaded.device.allocate(max(loaded.link_bytes, 1))
        calls = zip(loaded.calls(), programs, strict=True)
        for number, ((call, model), program) in enumerate(calls):
            for own in dict.fromkeys(info.name for info in (*model.inputs, *model.outputs)):
                name = call.names.get(own, own)
                if name in loaded.links:
                    program.bind(own, links, loaded.links[name])
                elif (number, own) in loaded.literals:
                    program.bind(own, *loaded.literals[number, own])
                elif not name.startswith(_INSIDE):
                    self._add(name, program, own)


@dataclass(frozen=True, slots=True)
class Lifetime:
    """A link: its bytes, the call that writes it, and the last one that reads it."""

    nbytes: int
    made: int
    read: int


def place_links(links: Mapping[str, Lifetime]) -> tuple[Mapping[str, int], int]:
    """Place links so that those with overlapping lifetimes do not overlap in memory.

    The largest come first, each at the lowest offset that is free during its lifetime.

    Returns:
        The offsets of the links, and the bytes of their memory.
    """
    placed: list[tuple[int, Lifetime]] = []
    offsets: dict[str, int] = {}
    order = sorted(links.items(), key=lambda item: (-item[1].nbytes, item[1].made, item[0]))
    for name, link in order:
        offsets[name] = _lowest(link, placed)
        placed.append((offsets[name], link))
    return offsets, max((at + link.nbytes for at, link in placed), default=0)


def _lowest(link: Lifetime, placed: Sequence[tuple[int, Lifetime]]) -> int:
    """Return the lowest offset that is free during a link's lifetime."""
    at = 0
    together = (
        (begin, begin + other.nbytes)
        for begin, other in placed
        if other.made <= link.read and link.made <= other.read
    )
    for begin, end in sorted(together):
        if at + link.nbytes <= begin:
            break
        at = max(at, end)
    return at
