"""A mixture whose tokens are brought to their experts by the host."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from compiler_layer.elements import convert_values
from compiler_layer.mixtures.ports import OUTPUT, ROWS, WEIGHT
from npuw_layer.errors import DeviceError
from npuw_layer.experts.container import Routed
from npuw_layer.experts.pool import WEIGHTS, ProgramPool, WeightPlace, weight_names
from npuw_layer.experts.routes import routes
from npuw_layer.llm.arena import ELEMENT_TYPES, Arena, nbytes
from npuw_layer.ports import Array, Device, LoadedModel, Memory, TensorInfo


class LoadedExperts:
    """The programs of a mixture's experts on a device; satisfies ``ports.LoadedModel``.

    Args:
        device: where they are.
        routed: what the mixture has.
        loaded: its experts' programs.
        literals: weights of its own, where they lie.
        pool_size: NPUW_MOE_POOL_SIZE.
    """

    def __init__(
        self,
        device: Device,
        routed: Routed,
        loaded: Sequence[LoadedModel],
        literals: Mapping[str, WeightPlace],
        pool_size: int,
    ) -> None:
        self.device = device
        self.routed = routed
        self.loaded = loaded
        self.literals = literals
        self.pool_size = pool_size
        self._inputs = self._find_inputs()

    @property
    def inputs(self) -> Sequence[TensorInfo]:
        """The rows, the router's ids and weights, and the weights of all experts, each once."""
        return self._inputs

    def _find_inputs(self) -> Sequence[TensorInfo]:
        routed = self.routed
        found = {port.name: port.info for port in (routed.rows, routed.ids, routed.weights)}
        for expert in routed.experts:
            for info, name in weight_names(self.loaded[expert.program], expert):
                if name not in self.literals:
                    found[name] = TensorInfo(name, info.element, info.shape)
        return list(found.values())

    @property
    def outputs(self) -> Sequence[TensorInfo]:
        """The sum."""
        return [self.routed.output.info]

    def create_program(self) -> ExpertsProgram:
        """Make something to run.

        Raises:
            DeviceError: the device has no memory left.
        """
        return ExpertsProgram(self)


class ExpertsProgram:
    """One user of a mixture; satisfies ``ports.Program``.

    An expert's program has its own rows, that are gathered for it; what it gives is added in f32,
    expert by expert in the order of the model's own sum, and rounded once.
    """

    def __init__(self, loaded: LoadedExperts) -> None:
        self._routed = loaded.routed
        self._infos = {info.name: info for info in (*loaded.inputs, *loaded.outputs)}
        first = loaded.loaded[0]
        ports = [info for info in (*first.inputs, *first.outputs) if info.name in _OF_EXPERT]
        self._arena = Arena(loaded.device, ports)
        self._pool = ProgramPool(loaded.pool_size, loaded.loaded, self._arena)
        self._places = dict(loaded.literals)
        self._views: dict[str, Array] = {}
        tokens = loaded.routed.ids.shape[0]
        self._sum = np.zeros((tokens, loaded.routed.output.shape[-1]), np.float32)

    def bind(self, name: str, memory: Memory, offset: int) -> None:
        """Let an input or output lie at an offset of a memory of the same device.

        Raises:
            DeviceError: there is no such tensor, or it does not fit.
        """
        info = self._infos.get(name)
        if info is None:
            raise DeviceError(f"no input or output {name!r}")
        if name.startswith(WEIGHTS):
            place = WeightPlace(memory, offset)
            if self._places.setdefault(name, place) != place:
                self._places[name] = place
                self._pool.clear()
            return
        raw = memory.data[offset : offset + nbytes(info)]
        if raw.size != nbytes(info):
            raise DeviceError(f"{name!r} needs {nbytes(info)} bytes, {raw.size} are there")
        shape = info.shape if name == self._routed.ids.name else (-1, info.shape[-1])
        if name == self._routed.weights.name:
            shape = self._routed.ids.shape
        self._views[name] = raw.view(ELEMENT_TYPES[info.element]).reshape(shape)

    def prepare(self) -> None:
        """See that all is there: which experts will run is not known yet.

        Raises:
            DeviceError: an input or output is not bound.
        """
        bound = self._views.keys() | self._places.keys()
        unbound = [name for name in self._infos if name not in bound]
        if unbound:
            raise DeviceError(f"not bound: {', '.join(unbound[:4])}")

    def run(self) -> None:
        """Run the experts that were chosen, each on the rows of its tokens.

        Raises:
            DeviceError: an input or output is not bound, or the device failed.
        """
        self.prepare()
        routed, total = self._routed, self._sum
        found = routes(self._views[routed.ids.name])
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
        output = self._views[routed.output.name]
        output[...] = convert_values(total, "f32", routed.output.element)

    def _fill(self, tokens: Array, slots: Array) -> None:
        """Bring the rows of tokens together; those behind them stay as they were."""
        routed, used = self._routed, len(tokens)
        self._arena[ROWS][:used] = self._views[routed.rows.name][tokens]
        self._arena[WEIGHT][:used, 0] = self._views[routed.weights.name][tokens, slots]


_OF_EXPERT = (ROWS, WEIGHT, OUTPUT)
