"""The numpy graph interpreter as a device: exact, slow, and independent of hardware.

NPUW_DEVICES=CPU selects it, to distinguish wrong answers of the compiler and the device from
those of the layers above.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from compiler_layer.dialects.ov.constant import Constant
from compiler_layer.dialects.ov.types import element_of, shape_of
from compiler_layer.errors import CompilerError
from compiler_layer.files import FileView
from compiler_layer.model import Model, Port
from compiler_layer.pipeline import Options, lower_graph
from compiler_layer.reference.interpreter import Interpreter
from driver_layer.support.versions import package_version
from npuw_layer.backends.host_tensors import HostTensors
from npuw_layer.backends.protocols import Array, Compiler, Contexts, Memory, TensorInfo
from npuw_layer.errors import DeviceError, ModelError
from npuw_layer.options.base import DEVICE_ROUTED, EXPERTS


@dataclass(frozen=True, slots=True, eq=False)
class HostMemory:
    """Memory of the host; satisfies ``protocols.Memory``."""

    data: Array
    """The bytes."""

    def free(self) -> None:
        """Do nothing: the array is freed with its last reference."""


class HostDevice:
    """Memory of devices that compute on the host, and their whole models."""

    takes_any_memory: Literal[True] = True

    def foldings(self, model: Model) -> Iterator[Model]:
        """Yield the model itself: each layer runs separately."""
        yield model

    def allocate(self, nbytes: int) -> HostMemory:
        """Allocate zeroed memory."""
        return HostMemory(np.zeros(nbytes, np.uint8))

    def map_host(self, data: Array) -> HostMemory:
        """Wrap host memory without a copy."""
        return HostMemory(data)


class InterpreterDevice(HostDevice):
    """Device that runs graphs in numpy; satisfies ``protocols.Device``.

    Args:
        compiler: unused: nothing is compiled.
        platform: unused.
        contexts: unused.
    """

    def __init__(
        self,
        compiler: Compiler | None = None,
        platform: str = "",
        contexts: Contexts | None = None,
    ) -> None:
        del compiler, platform, contexts

    @property
    def version(self) -> str:
        """The compiler's version, as its passes rewrite graphs."""
        return f"graph {package_version('compiler_layer')}"

    def compile(self, model: Model, config: Mapping[str, str]) -> bytes:
        """Make the graph static and pure; the program is its text.

        Raises:
            ModelError: the graph is not valid.
        """
        try:
            routed = config.get(EXPERTS) == DEVICE_ROUTED
            precision = config["INFERENCE_PRECISION_HINT"]
            lower_graph(model, Options(precision=precision, device_routed=routed))
        except CompilerError as error:
            raise ModelError(str(error)) from error
        return model.text().encode()

    def load(self, program: bytes | memoryview) -> LoadedGraph:
        """Load a graph.

        Raises:
            DeviceError: the bytes are not a graph, or its files of weights have changed.
        """
        try:
            graph = Model.parse(bytes(program).decode())
            for op in graph.body.ops:
                if isinstance(op, Constant) and isinstance(op.held, FileView):
                    op.held.check()
            return LoadedGraph(graph)
        except (CompilerError, UnicodeDecodeError) as error:
            raise DeviceError(f"not a program of the CPU device: {error}") from error


class LoadedGraph:
    """A loaded graph; satisfies ``protocols.LoadedModel``."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.inputs: Sequence[TensorInfo] = [port_info(port) for port in model.inputs]
        self.outputs: Sequence[TensorInfo] = [port_info(port) for port in model.outputs]

    def create_program(self) -> GraphProgram:
        """Create a program to bind and run."""
        return GraphProgram(self.model, self.inputs, self.outputs)


def port_info(port: Port) -> TensorInfo:
    """Describe an input or output of a graph."""
    return TensorInfo(port.name, element_of(port.value), shape_of(port.value))


class GraphProgram:
    """A graph with bound memory; satisfies ``protocols.Program``."""

    def __init__(
        self, model: Model, inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo]
    ) -> None:
        self._interpreter = Interpreter(model)
        self._inputs = inputs
        self._outputs = outputs
        self._tensors = HostTensors((*inputs, *outputs))

    def bind(self, name: str, memory: Memory, offset: int) -> None:
        """Bind an input or output to memory.

        Raises:
            DeviceError: no such tensor exists, or it does not fit.
        """
        self._tensors.bind(name, memory, offset)

    def prepare(self) -> None:
        """Do nothing: the graph is interpreted."""

    def run(self) -> None:
        """Evaluate the graph.

        Raises:
            DeviceError: a tensor is not bound, an op fails, or the model's files are gone.
        """
        self._tensors.check_bound()
        self._evaluate({info.name: self._tensors[info.name] for info in self._inputs})

    def _evaluate(self, inputs: Mapping[str, Array]) -> None:
        try:
            results = self._interpreter.run(inputs)
        except (CompilerError, ArithmeticError, LookupError, MemoryError, ValueError) as error:
            raise DeviceError(f"the interpreter failed: {error}") from error
        for info in self._outputs:
            self._tensors[info.name][...] = results[info.name]
