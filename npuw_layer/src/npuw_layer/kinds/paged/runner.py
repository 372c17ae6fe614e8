"""Runner of one variant, with memory for its tokens."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from npuw_layer.backends.arena import Arena
from npuw_layer.backends.interpreter import HostMemory
from npuw_layer.backends.protocols import Array
from npuw_layer.kinds.paged.names import Role, role_of
from npuw_layer.kinds.static.compiled import CompiledStatic
from npuw_layer.kinds.static.port import is_port

_IN_PLACE = (Role.CACHE, Role.TABLE)
"""Roles of inputs that are bound to the host's memory without a copy."""


class VariantRunner:
    """Program of a variant with its own tensors.

    Args:
        compiled: the variant.

    Raises:
        DeviceError: the device is out of memory.
    """

    def __init__(self, compiled: CompiledStatic) -> None:
        loaded = compiled.programs.loaded
        self._program = loaded.create_program()
        compiled.bank.bind(self._program, loaded.inputs)
        ports = filter(is_port, loaded.inputs)
        inputs = [info for info in ports if role_of(info.name) not in _IN_PLACE]
        outputs = list(filter(is_port, loaded.outputs))
        self._inputs = [info.name for info in inputs]
        self._outputs = [info.name for info in outputs]
        self._arena = Arena(compiled.device, [*inputs, *outputs])
        self._arena.bind(self._program)

    def run(self, rows: Mapping[str, Array], in_place: Mapping[str, Array]) -> dict[str, Array]:
        """Run the variant once.

        Args:
            rows: inputs by name, of at most as many tokens as the variant takes; remaining rows are
                zeroed.
            in_place: tables and caches by name, contiguous; caches are written.

        Returns:
            The outputs by name, with padding; the next run overwrites them.

        Raises:
            DeviceError: a device failed.
        """
        for name in self._inputs:
            values, own = rows.get(name), self._arena[name]
            own[...] = 0
            if values is not None:
                own[: len(values)] = values
        for name, values in in_place.items():
            self._program.bind(name, HostMemory(values.reshape(-1).view(np.uint8)), 0)
        self._program.run()
        return {name: self._arena[name] for name in self._outputs}
