"""The real OpenVINO's CPU plugin as a device: an independent implementation of every op.

Programs are OpenVINO IR in memory. ``openvino`` is imported only when a device is created: npuw
itself does not depend on the package.
"""

from __future__ import annotations

import threading
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from compiler_layer.errors import CompilerError
from compiler_layer.weights import WEIGHT_PREFIX
from driver_layer.support.versions import package_version
from npuw_layer.backends.arena import nbytes
from npuw_layer.backends.interpreter import HostDevice
from npuw_layer.backends.openvino_program import (
    ProgramHeader,
    ProgramIR,
    separate_outputs,
    settings_of,
)
from npuw_layer.backends.protocols import Array, Compiler, Contexts, Memory, TensorInfo
from npuw_layer.errors import DeviceError, ModelError
from npuw_layer.options.base import DEVICE_ROUTED, EXPERTS

if TYPE_CHECKING:
    import openvino as ov

    from compiler_layer.model import Model


@contextmanager
def _reported(what: str) -> Generator[None, None, None]:
    """Convert errors of OpenVINO to npuw's own."""
    try:
        yield
    except RuntimeError as error:
        # The first lines of a message name the place in OpenVINO, the last line names the reason.
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        raise DeviceError(f"{what}: {lines[-1] if lines else 'OpenVINO failed'}") from error


@cache
def _core() -> Any:
    """Return the process's only core, which is never freed.

    The CPU plugin installs a signal stack in the thread that loads it, and frees it when its core
    dies, in any thread. A later signal to the first thread, e.g. Ctrl-C, would then end the
    process.
    """
    import openvino

    return openvino.Core()


class OpenVINODevice(HostDevice):
    """Device that runs graphs in OpenVINO's CPU plugin; satisfies ``protocols.Device``.

    Args:
        compiler: unused: OpenVINO compiles by itself.
        platform: unused.
        contexts: unused.

    Raises:
        DeviceError: the package openvino is not installed.
    """

    def __init__(
        self,
        compiler: Compiler | None = None,
        platform: str = "",
        contexts: Contexts | None = None,
    ) -> None:
        del compiler, platform, contexts
        try:
            import openvino
        except ImportError as error:
            raise DeviceError(f"{error}; OPENVINO_CPU needs it: pip install openvino") from None
        self._version = openvino.__version__
        self._core = _core()

    @property
    def version(self) -> str:
        """Versions of OpenVINO, and of the compiler, whose passes rewrite graphs."""
        return f"openvino {self._version} graph {package_version('compiler_layer')}"

    def compile(self, model: Model, config: Mapping[str, str]) -> bytes:
        """Make the graph static and pure, with only OpenVINO's ops; the program is its IR.

        With ENABLE_WEIGHTLESS the weights are inputs, and become constants when bound.

        Raises:
            ModelError: the graph is not valid, or OpenVINO rejects it.
        """
        # Imported here: a run of cached programs loads no passes.
        from compiler_layer.pipeline import Options, opset_passes, run_passes
        from compiler_layer.writers.openvino_ir import ir_bytes

        routed = config.get(EXPERTS) == DEVICE_ROUTED
        precision = config["INFERENCE_PRECISION_HINT"]
        weightless = config.get("ENABLE_WEIGHTLESS") == "YES"
        options = Options(precision, weightless=weightless, device_routed=routed)
        try:
            run_passes(model, opset_passes(options), options)
            inputs, outputs = [port.name for port in model.inputs], separate_outputs(model)
            xml, weights = ir_bytes(model)
        except CompilerError as error:
            raise ModelError(str(error)) from error
        head = ProgramHeader(
            settings=settings_of(config), inputs=tuple(inputs), outputs=tuple(outputs)
        )
        program = ProgramIR(head, xml, weights).to_bytes()
        try:
            self._read(program)
        except DeviceError as error:
            raise ModelError(str(error)) from error
        return program

    def load(self, program: bytes | memoryview) -> LoadedIR:
        """Load an IR.

        Raises:
            DeviceError: the bytes are not a program of this device.
        """
        return LoadedIR(self._core, *self._read(program))

    def constants(self, program: bytes | memoryview) -> Sequence[tuple[int, int]]:
        """Return nothing: OpenVINO copies the IR, which names no file; see ``protocols``."""
        del program
        return ()

    def _read(self, program: bytes | memoryview) -> tuple[ov.Model, ProgramHeader]:
        parts = ProgramIR.parse(program)
        head = parts.head
        with _reported("OpenVINO cannot read the graph"):
            graph: ov.Model = self._core.read_model(parts.xml, parts.weights)
        ports = [*graph.inputs, *graph.outputs]
        if any(port.partial_shape.is_dynamic for port in ports):
            raise DeviceError("not a program of OPENVINO_CPU: it has dynamic shapes")
        counts = {"inputs": len(graph.inputs), "results": len(graph.outputs)}
        if len(head.inputs) != counts["inputs"] or any(
            not 0 <= output.index < counts[output.of] for output in head.outputs
        ):
            raise DeviceError("not a program of OPENVINO_CPU: its graph has other ports")
        return graph, head


class LoadedIR:
    """A graph of OpenVINO; satisfies ``protocols.LoadedModel``.

    If weights are inputs, they become constants in place when a program binds their memory. Then
    the plugin compiles the graph, once for all programs with these weights.
    """

    def __init__(self, core: Any, graph: ov.Model, head: ProgramHeader) -> None:
        self._core = core
        self._graph = graph
        self._settings: dict[str, str] = {**head.settings}
        self._lock = threading.Lock()
        self._compiled: dict[tuple[object, ...], ov.CompiledModel] = {}
        self.inputs: Sequence[TensorInfo] = [*map(_info, head.inputs, graph.inputs)]
        """Inputs of the graph, including weights."""
        ports = {"inputs": graph.inputs, "results": graph.outputs}
        self.outputs: Sequence[TensorInfo] = [
            _info(one.name, ports[one.of][one.index]) for one in head.outputs
        ]
        self.sources = head.outputs
        """Source of each output: a result of the graph, or an input."""

    def create_program(self) -> IRProgram:
        """Create a program to bind and run."""
        return IRProgram(self)

    def request(self, weights: Mapping[str, Array]) -> ov.InferRequest:
        """Create a request of the graph with weights, which are bytes in place by name.

        Raises:
            DeviceError: the plugin rejects the graph.
        """
        key = tuple((name, weights[name].ctypes.data) for name in sorted(weights))
        with self._lock, _reported("OpenVINO cannot compile the graph"):
            if key not in self._compiled:
                graph = self._with_weights(weights)
                self._compiled[key] = self._core.compile_model(graph, "CPU", self._settings)
            return self._compiled[key].create_infer_request()

    def _with_weights(self, weights: Mapping[str, Array]) -> ov.Model:
        if not weights:
            return self._graph
        from openvino import opset13

        graph = self._graph.clone()
        for info, parameter in zip(self.inputs, graph.get_parameters(), strict=True):
            if info.name in weights:
                value = opset13.constant(_tensor(weights[info.name], info), shared_memory=True)
                for use in list(parameter.output(0).get_target_inputs()):
                    use.replace_source_output(value.output(0))
                graph.remove_parameter(parameter)
        return graph


def _info(name: str, port: Any) -> TensorInfo:
    return TensorInfo(name, port.element_type.to_string(), tuple(port.shape))


def _tensor(raw: Array, info: TensorInfo) -> ov.Tensor:
    """Wrap bytes as a tensor of OpenVINO, in place."""
    import openvino

    return openvino.Tensor(raw, openvino.Shape(info.shape), getattr(openvino.Type, info.element))


class IRProgram:
    """A request of OpenVINO with bound memory; satisfies ``protocols.Program``."""

    def __init__(self, loaded: LoadedIR) -> None:
        self._loaded = loaded
        self._infos = {info.name: info for info in (*loaded.inputs, *loaded.outputs)}
        self._bound: dict[str, Array] = {}
        self._request: ov.InferRequest | None = None
        self._copies: list[tuple[Array, Array]] = []
        """Pairs of an array that OpenVINO writes, and its destination."""

    def bind(self, name: str, memory: Memory, offset: int) -> None:
        """Bind an input or output to memory.

        Raises:
            DeviceError: no such tensor exists, or it does not fit.
        """
        info = self._infos.get(name)
        if info is None:
            raise DeviceError(f"the graph has no input or output {name!r}")
        size = nbytes(info)
        raw = memory.data[offset : offset + size]
        if raw.size != size:
            raise DeviceError(f"{name!r} needs {size} bytes, its memory has {raw.size}")
        self._request = None
        self._bound[name] = raw

    def prepare(self) -> None:
        """Compile the graph in the plugin, unless done before, and bind the tensors.

        Raises:
            DeviceError: a tensor is not bound, or the plugin rejects the graph.
        """
        unbound = [name for name in self._infos if name not in self._bound]
        if unbound:
            raise DeviceError(f"not bound: {', '.join(unbound[:4])}; bind all tensors before a run")
        if self._request is not None:
            return
        weights = {name: raw for name, raw in self._bound.items() if _is_weight(name)}
        request = self._loaded.request(weights)
        inputs = [info for info in self._loaded.inputs if not _is_weight(info.name)]
        with _reported("OpenVINO rejects a tensor"):
            for index, info in enumerate(inputs):
                request.set_input_tensor(index, _tensor(self._bound[info.name], info))
            self._bind_outputs(request, [self._bound[info.name] for info in inputs])
        self._request = request

    def _bind_outputs(self, request: ov.InferRequest, inputs: Sequence[Array]) -> None:
        """Bind results to their destination, or to a temporary if it overlaps with an input.

        The plugin may write a result before it has read all inputs.
        """
        self._copies = []
        results: dict[int, Array] = {}
        for info, source in zip(self._loaded.outputs, self._loaded.sources, strict=True):
            place = self._bound[info.name]
            if source.of == "inputs":
                made = self._bound[self._loaded.inputs[source.index].name]
            elif source.index in results:
                made = results[source.index]
            else:
                over = any(np.may_share_memory(place, each) for each in inputs)
                made = results[source.index] = np.empty_like(place) if over else place
                request.set_output_tensor(source.index, _tensor(made, info))
            if made is not place:
                self._copies.append((made, place))

    def run(self) -> None:
        """Execute once, synchronously.

        Raises:
            DeviceError: a tensor is not bound, or the plugin failed.
        """
        self.prepare()
        assert self._request is not None  # prepare() sets it or raises
        with _reported("OpenVINO failed"):
            self._request.infer()
        for made, place in self._copies:
            place[:] = made


def _is_weight(name: str) -> bool:
    return name.startswith(WEIGHT_PREFIX)
