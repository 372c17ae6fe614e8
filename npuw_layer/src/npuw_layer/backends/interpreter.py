"""The numpy graph interpreter as a device: exact, slow, and without any hardware.

It is what NPUW_DEVICES=CPU is for: to tell whether a wrong answer comes from the compiler and the
device, or from above them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from compiler_layer.dialects.ov.constant import Constant
from compiler_layer.dialects.ov.types import element_of, shape_of
from compiler_layer.errors import CompilerError
from compiler_layer.files import FileView
from compiler_layer.model import Model, Port
from compiler_layer.pipeline import Options, lower_graph
from compiler_layer.reference.interpreter import Interpreter
from npuw_layer.backends.host_tensors import HostTensors
from npuw_layer.backends.protocols import (
    DEVICE_ROUTED,
    EXPERTS,
    Array,
    Compiler,
    Memory,
    TensorInfo,
)
from npuw_layer.errors import DeviceError, ModelError
from npuw_layer.storage.versions import package_version


class HostMemory:
    """Memory of the host; satisfies ``backends.protocols.Memory``."""

    def __init__(self, data: Array) -> None:
        self._data = data

    @property
    def data(self) -> Array:
        """The bytes."""
        return self._data

    def free(self) -> None:
        """Nothing to do: the array goes when nobody holds it."""


class InterpreterDevice:
    """Runs graphs in numpy; satisfies ``backends.protocols.Device``.

    Args:
        compiler: not used: there is nothing to compile.
        platform: not used.
    """

    takes_any_memory = True

    def __init__(self, compiler: Compiler | None = None, platform: str = "") -> None:
        del compiler, platform

    @property
    def version(self) -> str:
        """The compiler's version, as graphs are rewritten by it."""
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

    def foldings(self, model: Model) -> Iterator[Model]:
        """Give the model itself: each of its layers is run."""
        yield model

    def load(self, program: bytes | memoryview) -> LoadedGraph:
        """Read a graph.

        Raises:
            DeviceError: the bytes are no graph, or its weights are not where they were.
        """
        try:
            graph = Model.parse(bytes(program).decode())
            for op in graph.body.ops:
                if isinstance(op, Constant) and isinstance(op.held, FileView):
                    op.held.check()
            return LoadedGraph(graph)
        except (CompilerError, UnicodeDecodeError) as error:
            raise DeviceError(f"not a program of the CPU device: {error}") from error

    def allocate(self, nbytes: int) -> HostMemory:
        """Take memory, zeroed."""
        return HostMemory(np.zeros(nbytes, np.uint8))

    def map_host(self, data: Array) -> HostMemory:
        """Use bytes where they are."""
        return HostMemory(data)


class LoadedGraph:
    """A graph; satisfies ``backends.protocols.LoadedModel``."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self._inputs = [_info(port) for port in model.inputs]
        self._outputs = [_info(port) for port in model.outputs]

    @property
    def inputs(self) -> Sequence[TensorInfo]:
        """The arguments."""
        return self._inputs

    @property
    def outputs(self) -> Sequence[TensorInfo]:
        """The results."""
        return self._outputs

    def create_program(self) -> GraphProgram:
        """Make something to run."""
        return GraphProgram(self.model, self.inputs, self.outputs)


def _info(port: Port) -> TensorInfo:
    return TensorInfo(port.name, element_of(port.value), shape_of(port.value))


class GraphProgram:
    """A graph with bound memory; satisfies ``backends.protocols.Program``."""

    def __init__(
        self, model: Model, inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo]
    ) -> None:
        self._interpreter = Interpreter(model)
        self._inputs = inputs
        self._outputs = outputs
        self._tensors = HostTensors((*inputs, *outputs))

    def bind(self, name: str, memory: Memory, offset: int) -> None:
        """Let an input or output lie in memory.

        Raises:
            DeviceError: there is no such tensor, or it does not fit.
        """
        self._tensors.bind(name, memory, offset)

    def prepare(self) -> None:
        """Nothing to do: the graph is interpreted."""

    def run(self) -> None:
        """Evaluate the graph.

        Raises:
            DeviceError: a tensor is not bound, or an op fails; or the model's files are gone.
        """
        self._tensors.check_bound()
        inputs = {info.name: self._tensors[info.name] for info in self._inputs}
        try:
            results = self._interpreter.run(inputs)
        except (CompilerError, ArithmeticError, LookupError, MemoryError, ValueError) as error:
            raise DeviceError(f"the interpreter failed: {error}") from error
        for info in self._outputs:
            self._tensors[info.name][...] = results[info.name]
