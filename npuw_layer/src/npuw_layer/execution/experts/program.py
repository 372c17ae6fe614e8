"""A mixture for which the host routes tokens to experts, and these routes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from compiler_layer.elements import convert_values
from compiler_layer.partition.compiled import OUTPUT, ROWS, WEIGHT
from npuw_layer.backends.arena import Arena
from npuw_layer.backends.host_tensors import HostTensors, Place
from npuw_layer.backends.protocols import Array, Device, LoadedModel, Memory, TensorInfo
from npuw_layer.errors import DeviceError
from npuw_layer.execution.experts.container import Routed
from npuw_layer.execution.experts.pool import WEIGHTS, ProgramPool, weight_names


class LoadedExperts:
    """The programs of a mixture's experts on a device; satisfies ``protocols.LoadedModel``.

    Args:
        device: the experts' device.
        routed: description of the mixture.
        loaded: the experts' programs.
        literals: locations of weights that are in no file.
        pool_size: NPUW_MOE_POOL_SIZE.

    Raises:
        DeviceError: a program is that of another mixture's expert.
    """

    def __init__(
        self,
        device: Device,
        routed: Routed,
        loaded: Sequence[LoadedModel],
        literals: Mapping[str, Place],
        pool_size: int,
    ) -> None:
        self.device = device
        self.routed = routed
        self.loaded = loaded
        self.literals = literals
        self.pool_size = pool_size
        for one in loaded:
            self._check(one)
        self.inputs: Sequence[TensorInfo] = self._find_inputs()
        """Hidden rows, the router's ids and weights, and the weights of all experts, each once."""
        self.outputs: Sequence[TensorInfo] = [routed.output.info]
        """Sum of the experts' results."""
        self.members: Sequence[tuple[str, LoadedModel]] = [("expert", each) for each in loaded]
        """Programs of the experts; see ``execution.devices.report``."""

    def _check(self, loaded: LoadedModel) -> None:
        """Check that a program's inputs and outputs are rows of this mixture."""
        routed = self.routed
        own = {
            TensorInfo(ROWS, routed.rows.element, (routed.count, routed.rows.shape[-1])),
            TensorInfo(WEIGHT, routed.weights.element, (routed.count, 1)),
            TensorInfo(OUTPUT, routed.output.element, (routed.count, routed.output.shape[-1])),
        }
        ports = (*loaded.inputs, *loaded.outputs)
        if {info for info in ports if not info.name.startswith(WEIGHTS)} != own:
            raise DeviceError(
                "a partitioned mixture (HOST_ROUTED) has the program of another expert; compile it "
                "again"
            )

    def _find_inputs(self) -> Sequence[TensorInfo]:
        routed = self.routed
        found = {port.name: port.info for port in (routed.rows, routed.ids, routed.weights)}
        for expert in routed.experts:
            for info, name in weight_names(self.loaded[expert.program], expert):
                if name not in self.literals:
                    found[name] = TensorInfo(name, info.element, info.shape)
        return list(found.values())

    def create_program(self) -> ExpertsProgram:
        """Create a runnable program.

        Raises:
            DeviceError: the device has no memory left.
        """
        return ExpertsProgram(self)


class ExpertsProgram:
    """One user of a mixture; satisfies ``protocols.Program``.

    The rows of an expert are gathered into its program's input. Its results are added in f32,
    expert by expert in the order of the model's own sum, and rounded once.
    """

    def __init__(self, loaded: LoadedExperts) -> None:
        self._routed = loaded.routed
        infos = (*loaded.inputs, *loaded.outputs)
        self._tensors = HostTensors(info for info in infos if not info.name.startswith(WEIGHTS))
        self._weights = [info.name for info in infos if info.name.startswith(WEIGHTS)]
        first = loaded.loaded[0]
        ports = [info for info in (*first.inputs, *first.outputs) if info.name in _OF_EXPERT]
        self._arena = Arena(loaded.device, ports)
        self._pool = ProgramPool(loaded.pool_size, loaded.loaded, self._arena)
        self._places = dict(loaded.literals)
        tokens = loaded.routed.ids.shape[0]
        self._sum = np.zeros((tokens, loaded.routed.output.shape[-1]), np.float32)

    def bind(self, name: str, memory: Memory, offset: int) -> None:
        """Bind an input or output to memory of the same device, at an offset.

        Raises:
            DeviceError: no such tensor exists, or it does not fit.
        """
        if name not in self._weights:
            self._tensors.bind(name, memory, offset)
            return
        place = (memory, offset)
        if self._places.setdefault(name, place) != place:
            self._pool.clear()  # first: no program must keep the old binding
            self._places[name] = place

    def prepare(self) -> None:
        """Check that all tensors are bound; only the run determines the chosen experts.

        Raises:
            DeviceError: an input or output is not bound.
        """
        self._tensors.check_bound()
        unbound = [name for name in self._weights if name not in self._places]
        if unbound:
            raise DeviceError(f"not bound: {', '.join(unbound[:4])}; bind all tensors before a run")

    def run(self) -> None:
        """Run the chosen experts, each on the rows of its tokens.

        Raises:
            DeviceError: an input or output is not bound, or the device failed.
        """
        self.prepare()
        routed, total = self._routed, self._sum
        found = routes(self._tensors[routed.ids.name])
        total[...] = 0
        for expert in routed.experts:
            route = found.get(expert.number)
            if route is None:
                continue
            program = self._pool.take(expert, self._places)
            for part in route.parts(routed.count):
                used = len(part.tokens)
                self._fill(part.tokens, part.slots)
                program.run()
                given = self._arena[OUTPUT][:used]
                total[part.tokens] += convert_values(given, routed.output.element, "f32")
        output = self._tensors[routed.output.name]
        output.reshape(total.shape)[...] = convert_values(total, "f32", routed.output.element)

    def _fill(self, tokens: Array, slots: Array) -> None:
        """Gather the rows of tokens; rows after them stay unchanged."""
        routed, used = self._routed, len(tokens)
        rows, weights = self._tensors[routed.rows.name], self._tensors[routed.weights.name]
        self._arena[ROWS][:used] = rows.reshape(-1, rows.shape[-1])[tokens]
        self._arena[WEIGHT][:used, 0] = weights.reshape(routed.ids.shape)[tokens, slots]


_OF_EXPERT = (ROWS, WEIGHT, OUTPUT)


@dataclass(frozen=True, slots=True)
class Route:
    """The tokens that chose an expert, ascending, and the slot of each choice."""

    tokens: Array
    slots: Array

    def parts(self, count: int) -> Iterator[Route]:
        """Yield routes of at most ``count`` tokens each."""
        for begin in range(0, len(self.tokens), count):
            some = slice(begin, begin + count)
            yield Route(self.tokens[some], self.slots[some])


def routes(ids: Array) -> dict[int, Route]:
    """Invert a router's choice.

    Args:
        ids: the experts of each token, integers [T, K].

    Returns:
        Routes of the chosen experts, by number, ascending.
    """
    flat = ids.reshape(-1)
    order = np.argsort(flat, kind="stable")
    chosen = flat[order]
    tokens, slots = np.divmod(order, ids.shape[1])
    begins = np.flatnonzero(np.diff(chosen, prepend=chosen[:1] - 1)).tolist()
    ends = [*begins[1:], len(chosen)]
    return {
        int(chosen[begin]): Route(tokens[begin:end], slots[begin:end])
        for begin, end in zip(begins, ends, strict=True)
    }
