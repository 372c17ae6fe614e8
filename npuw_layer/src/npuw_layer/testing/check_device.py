"""Checks of the behaviour of a device, and its compiler, that npuw relies on.

``check_device(make)`` and ``check_compiler(make, device)`` need no test framework; they raise
AssertionError with the problem.
"""

from __future__ import annotations

import mmap
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from xdsl.dialects.builtin import StringAttr

from compiler_layer.builder import GraphBuilder
from compiler_layer.dialects.ov import elementwise
from compiler_layer.dialects.ov.state import Assign, ReadValue
from compiler_layer.dialects.ov.types import tensor
from compiler_layer.model import Model
from npuw_layer.backends.protocols import (
    ASSIGN_PREFIX,
    READ_PREFIX,
    Compiler,
    Device,
    LoadedModel,
    Memory,
    ProfilesPrograms,
    Program,
    ability,
)
from npuw_layer.backends.recording import recording

CONFIG: Mapping[str, str] = {
    "INFERENCE_PRECISION_HINT": "f32",
    "NPU_PLATFORM": "4000",
    "NPU_TILES": "-1",
}
ROWS, WIDTH, OUT = 4, 16, 8
F32 = npt.NDArray[np.float32]

_READ, _ASSIGN = READ_PREFIX + "sum", ASSIGN_PREFIX + "sum"
_SHAPES = {"x": (ROWS, WIDTH), _READ: (ROWS, WIDTH), _ASSIGN: (ROWS, WIDTH), "y": (ROWS, OUT)}


def weights() -> F32:
    """Return the matrix of the graph, f32 [WIDTH, OUT]."""
    return np.random.default_rng(1).standard_normal((WIDTH, OUT)).astype(np.float32)


def small_graph() -> Model:
    """Return a stateful graph: sum += x; y = sum · weights."""
    kind = tensor("f32", (ROWS, WIDTH))
    model, (x,) = Model.build([("x", kind)])
    g = GraphBuilder(model)
    name = StringAttr("sum")
    read = ReadValue(operands=[[]], properties={"variable_id": name}, result_types=[kind])
    total = g.op(elementwise.Add, x, g.add(read).output, name="add")
    g.add(Assign.make([total], variable_id=name))
    model.set_outputs([("y", g.matmul(total, g.constant(weights()), False, name="product"))])
    return model


class _Bound:
    """A program with memory for each of its tensors."""

    def __init__(self, device: Device, loaded: LoadedModel) -> None:
        self.program: Program = loaded.create_program()
        self.memory: dict[str, Memory] = {}
        for info in (*loaded.inputs, *loaded.outputs):
            self.memory[info.name] = device.allocate(_nbytes(info.name))
            self.program.bind(info.name, self.memory[info.name], 0)

    def __getitem__(self, name: str) -> F32:
        return self.memory[name].data[: _nbytes(name)].view(np.float32).reshape(_SHAPES[name])

    def run(self, x: F32, total: F32) -> F32:
        self["x"][...] = x
        self[_READ][...] = total
        self.program.run()
        return self["y"].copy()


def _nbytes(name: str) -> int:
    rows, width = _SHAPES[name]
    return rows * width * 4


def _some(seed: int) -> F32:
    return np.random.default_rng(seed).standard_normal((ROWS, WIDTH)).astype(np.float32)


def _assert_close(found: F32, expected: npt.NDArray[np.floating[Any]], what: str) -> None:
    error = float(np.abs(found - expected).max())
    assert error <= 1e-4, f"{what}: off by {error:.2e}"


def _assert_refused(call: Callable[[], object], what: str) -> None:
    message = None
    try:
        call()
    except RuntimeError as error:
        message = str(error)
    assert message is not None, f"{what} was accepted"
    assert message, f"{what}: the error has no message"


def check_device(make: Callable[[], Device]) -> None:
    """Run all checks, each on a new device.

    Raises:
        AssertionError: the device violates ``protocols.Device``.
    """
    for check in DEVICE_CHECKS:
        check(make())


def _load(device: Device) -> LoadedModel:
    return device.load(device.compile(small_graph(), CONFIG))


def check_memory_is_zeroed_and_writable(device: Device) -> None:
    """Check that memory is zeroed, and keeps written values."""
    memory = device.allocate(1000)
    assert memory.data.size >= 1000, f"{memory.data.size} bytes instead of 1000"
    assert memory.data.dtype == np.uint8, f"memory is {memory.data.dtype}, not bytes"
    assert not memory.data.any(), "memory is not zeroed"
    memory.data[7] = 9
    assert memory.data[7] == 9, "memory does not keep written bytes"
    memory.free()


def check_the_hosts_bytes_are_read_in_place(device: Device) -> None:
    """Check that mapped memory is the host's memory itself; a device may decline to map."""
    pages = mmap.mmap(-1, 4096)
    host = np.frombuffer(pages, np.uint8)
    memory = device.map_host(host)
    if memory is None:
        return
    bound = _Bound(device, _load(device))
    size = _nbytes("x")
    x, total = _some(3), _some(4)
    bound.program.bind("x", memory, 64)
    host[64 : 64 + size] = x.view(np.uint8).reshape(-1)
    _assert_close(bound.run(_some(5), total), (x + total) @ weights(), "y of mapped bytes")
    memory.free()


def check_variables_become_inputs_and_outputs(device: Device) -> None:
    """Check that a variable becomes an input and an output with prefixed names."""
    loaded = _load(device)
    inputs = {info.name: (info.element, info.shape) for info in loaded.inputs}
    outputs = {info.name: (info.element, info.shape) for info in loaded.outputs}
    assert inputs == {name: ("f32", _SHAPES[name]) for name in ("x", _READ)}, str(inputs)
    assert outputs == {name: ("f32", _SHAPES[name]) for name in ("y", _ASSIGN)}, str(outputs)


def check_results_are_right(device: Device) -> None:
    """Check the results of repeated runs."""
    bound = _Bound(device, _load(device))
    for seed in range(3):
        x, total = _some(seed), _some(seed + 10)
        _assert_close(bound.run(x, total), (x + total) @ weights(), "y")
        _assert_close(bound[_ASSIGN], x + total, "the variable")


def check_a_binding_may_point_into_memory_and_be_replaced(device: Device) -> None:
    """Check that tensors may be anywhere in a memory, several in one, and be rebound."""
    bound = _Bound(device, _load(device))
    x, total = _some(1), _some(2)
    bound.run(x, total)
    shared = device.allocate(4096)
    at = {"x": 64, _READ: 1024}
    for name, values in (("x", -x), (_READ, total)):
        begin = at[name]
        shared.data[begin : begin + _nbytes(name)] = values.view(np.uint8).reshape(-1)
        bound.program.bind(name, shared, begin)
    bound.program.run()
    _assert_close(bound["y"], (total - x) @ weights(), "y after rebinding")


def check_an_output_may_be_the_next_input(device: Device) -> None:
    """Check that state is passed on without a copy, by swapping the bindings of two memories."""
    bound = _Bound(device, _load(device))
    x = _some(3)
    bound.run(x, np.zeros_like(x))
    bound.program.bind(_READ, bound.memory[_ASSIGN], 0)
    bound.program.bind(_ASSIGN, bound.memory[_READ], 0)
    bound.program.run()
    _assert_close(bound["y"], (x + x) @ weights(), "y of the second step")


def check_programs_of_one_model_are_independent(device: Device) -> None:
    """Check that programs of one loaded model do not disturb each other."""
    loaded = _load(device)
    one, two = _Bound(device, loaded), _Bound(device, loaded)
    x, total = _some(4), _some(5)
    first = one.run(x, total)
    two.run(-x, -total)
    _assert_close(one["y"], first, "y of a program after another one ran")
    _assert_close(one.run(x, total), first, "y of a second run")


def check_profiled_programs_tell_what_they_take(device: Device) -> None:
    """Check that profiled programs report each run, and nothing without a listener."""
    profiling = ability(device, ProfilesPrograms)
    if profiling is None:
        return
    profiling.profile_programs()
    bound = _Bound(device, _load(device))
    x, total = _some(6), _some(7)
    with recording() as runs:
        first = bound.run(x, total)
        bound.run(x, total)
    heard = len(runs)
    _assert_close(first, (x + total) @ weights(), "y of a profiled run")
    bound.run(x, total)
    assert len(runs) == heard, "a run is reported without a listener"
    if not runs:  # a group of devices may run the program on one without profiling
        return
    assert heard == 2, f"2 runs, {heard} of which are reported"
    one, two = ([layer.name for layer in run.layers] for run in runs)
    assert one == two, "two runs of a program have different layers"
    for layer in runs[0].layers:
        assert layer.start_ns >= 0, f"{layer.name} begins before the run"
        assert min(layer.dpu_ns, layer.sw_ns, layer.dma_ns) >= 0, f"{layer.name} takes less than 0"
        busy = layer.dpu_ns + layer.sw_ns + layer.dma_ns
        assert (busy > 0) == layer.ran, f"{layer.name}: {busy} ns of work, ran: {layer.ran}"
    assert runs[0].total_ns > 0, "a run takes no time"


def check_errors_are_runtime_errors(device: Device) -> None:
    """Check that misuse is rejected with a message, and the device stays usable."""
    loaded = _load(device)
    program = loaded.create_program()
    memory = device.allocate(4096)
    _assert_refused(program.run, "a run without bindings")
    _assert_refused(lambda: program.bind("nothing", memory, 0), "an unknown name")
    for junk in (b"", b"not a program", bytes(5000)):
        _assert_refused(lambda junk=junk: device.load(junk), f"a program {junk[:16]!r}")
    check_results_are_right(device)


DEVICE_CHECKS = (
    check_memory_is_zeroed_and_writable,
    check_the_hosts_bytes_are_read_in_place,
    check_variables_become_inputs_and_outputs,
    check_results_are_right,
    check_a_binding_may_point_into_memory_and_be_replaced,
    check_an_output_may_be_the_next_input,
    check_programs_of_one_model_are_independent,
    check_profiled_programs_tell_what_they_take,
    check_errors_are_runtime_errors,
)
"""All checks of a device."""


def check_compiler(make: Callable[[], Compiler], device: Callable[[Compiler], Device]) -> None:
    """Check a compiler, by itself and by the results of its programs.

    Args:
        make: creates a compiler.
        device: creates a device that runs the compiler's programs.

    Raises:
        AssertionError: the compiler violates ``protocols.Compiler``.
    """
    compiler = make()
    assert compiler.version == make().version, "two compilers of one kind differ in version"
    assert compiler.version, "the compiler has no version"
    once, twice = (make().compile(small_graph(), CONFIG) for _ in range(2))
    assert once == twice, "equal graphs compile to different programs"
    _assert_refused(lambda: compiler.compile(_unsupported_graph(), CONFIG), "a dynamic graph")
    _check_variables_stay_in_place(device(make()))
    check_device(lambda: device(make()))


def _check_variables_stay_in_place(device: Device) -> None:
    """Check STATE_IN_PLACE with two swapped variables, whose input and output share memory."""
    kind = tensor("f32", (ROWS, WIDTH))
    model, (x,) = Model.build([("x", kind)])
    g = GraphBuilder(model)
    ids = [StringAttr(name) for name in ("one", "two")]
    one, two = (
        g.add(ReadValue(operands=[[]], properties={"variable_id": name}, result_types=[kind]))
        for name in ids
    )
    for name, value in zip(ids, (two.output, one.output), strict=True):
        g.add(Assign.make([value], variable_id=name))
    model.set_outputs([("y", g.op(elementwise.Add, x, one.output))])
    loaded = device.load(device.compile(model, {**CONFIG, "STATE_IN_PLACE": "YES"}))
    program, nbytes = loaded.create_program(), ROWS * WIDTH * 4
    memory = {name: device.allocate(nbytes) for name in ("x", "y", "one", "two")}
    for info in (*loaded.inputs, *loaded.outputs):
        name = info.name.removeprefix(READ_PREFIX).removeprefix(ASSIGN_PREFIX)
        program.bind(info.name, memory[name], 0)
    values = {name: memory[name].data[:nbytes].view(np.float32) for name in memory}
    values["one"][...], values["two"][...] = 1, 2
    for expected in (1, 2, 1):
        program.run()
        _assert_close(values["y"], np.float32(expected) + values["x"], "variables that swap")


def _unsupported_graph() -> Any:
    """Return a graph with dynamic shapes."""
    kind = tensor("f32", (-1, WIDTH))
    model, (x,) = Model.build([("x", kind)])
    g = GraphBuilder(model)
    model.set_outputs([("y", g.matmul(x, g.constant(weights()), False))])
    return model
