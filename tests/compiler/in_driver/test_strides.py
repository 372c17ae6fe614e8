"""Models whose callers choose the strides of arguments, as the public test_tensor_strides.cpp."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pytest
from tests.compiler.in_driver.caller import Caller, serialized

from compiler_layer.builder import GraphBuilder
from compiler_layer.dialects.ov.elementwise import Add, Multiply
from compiler_layer.dialects.ov.shape import Transpose
from compiler_layer.dialects.ov.types import tensor
from compiler_layer.in_driver.compiler import DriverCompiler
from compiler_layer.model import Model
from driver_layer import ze
from driver_layer.abi.platforms import PLATFORMS
from driver_layer.errors import GraphCompilerError

SHAPE = (2, 3, 4)
NAMES = ("a", "b", "c", "Result_5", "Result_6")
"""Friendly names of the parameters, of the product and of the sum."""

Strides = Mapping[int, tuple[int, ...]]
"""Strides by argument, in elements, innermost dimension first."""

CASES: list[Strides] = [
    {1: (2, 20, 240, 1920)},
    {3: (1, 40, 480, 1920)},
    {0: (2, 20, 480, 1920), 4: (3, 20, 240, 3840)},
    {
        0: (1, 20, 240, 1920),
        1: (2, 20, 240, 1920),
        2: (1, 60, 240, 1920),
        3: (1, 20, 720, 1920),
        4: (1, 20, 240, 3840),
    },
]


def model() -> Model:
    """Return ``a * b`` and ``a * b + c``."""
    made, (a, b, c) = Model.build([(name, tensor("f16", SHAPE)) for name in "abc"])
    g = GraphBuilder(made)
    product = g.op(Multiply, a, b, name="product")
    made.set_outputs([("p", product), ("s", g.op(Add, product, c, name="sum"))])
    return made


@dataclass
class Arguments:
    """Memory of a graph's arguments, each with room for any strides used here."""

    caller: Caller
    graph: ze.ze_graph_handle_t
    strides: Strides
    memories: list[ze.Memory] = field(default_factory=list[ze.Memory])

    def __post_init__(self) -> None:
        rng = np.random.default_rng(0)
        for _ in self.graph.tensors:
            memory = ze.zeMemAllocHost(self.caller.context, 1 << 14)
            memory.data.view(np.float16)[:] = rng.integers(1, 20, memory.data.size // 2)
            self.memories.append(memory)

    def view(self, index: int, content: np.ndarray | None = None) -> np.ndarray:
        """Return an argument's tensor in its memory, or in other content."""
        info, rank = self.graph.tensors[index], len(self.graph.tensors[index].shape)
        steps = self.strides.get(index, info.strides[::-1])[:rank][::-1]
        held = self.memories[index].data if content is None else content
        values = held.view(info.element.storage)
        sizes = [step * values.itemsize for step in steps]
        return np.lib.stride_tricks.as_strided(values, info.shape, sizes)

    def beside(self, index: int) -> np.ndarray:
        """Return an argument's memory with zeros in place of the tensor."""
        content = self.memories[index].data.copy()
        self.view(index, content)[...] = 0
        return content

    def bind(self) -> None:
        for index, memory in enumerate(self.memories):
            given = self.strides.get(index)
            link = ze.ze_graph_argument_value_strides_t(given) if given else None
            value = ze.ze_graph_argument_value_tensor_t(memory, link)
            self.caller.table.pfnSetArgumentValue2(self.graph, index, value)

    def run(self) -> None:
        commands = ze.zeCommandListCreate(self.caller.context, self.caller.device)
        self.caller.table.pfnAppendGraphExecute(commands, self.graph)
        ze.zeCommandListClose(commands)
        queue = ze.zeCommandQueueCreate(self.caller.context, self.caller.device)
        ze.zeCommandQueueExecuteCommandLists(queue, [commands])
        ze.zeCommandQueueSynchronize(queue)


def options(names: str) -> str:
    return f'--config NPU_ENABLE_STRIDES_FOR="{names}"'


def strided(caller: Caller, made: Model, names: str) -> ze.ze_graph_handle_t:
    return caller.graph(serialized(made), options(names))


@pytest.mark.parametrize("strides", CASES)
def test_tensors_are_computed_with_their_strides_and_without(caller, strides: Strides) -> None:
    graph = strided(caller, model(), ",".join(NAMES[index] for index in strides))
    for given in (strides, {}):
        arguments = Arguments(caller, graph, given)
        before = [arguments.beside(index) for index in (3, 4)]
        arguments.bind()
        arguments.run()
        a, b, c, product, total = (arguments.view(index) for index in range(5))
        assert np.array_equal(product, a * b)
        assert np.array_equal(total, a * b + c)
        for index, values in zip((3, 4), before, strict=True):
            assert np.array_equal(arguments.beside(index), values), "written beside the tensor"


@pytest.mark.parametrize("names", ["", "a", "b,Result_6", "Result_5,nothing,", ",".join(NAMES)])
def test_properties_name_the_chosen_arguments(caller, names: str) -> None:
    graph = strided(caller, model(), names)
    for index, name in enumerate(NAMES):
        found = caller.table.pfnGetArgumentProperties3(graph, index)
        assert found.pNext.supportsDynamicStrides == (name in names.split(","))
        assert found.debug_friendly_name == name


def test_strides_of_an_argument_that_was_not_chosen_are_rejected(caller) -> None:
    graph = strided(caller, model(), "a")
    arguments = Arguments(caller, graph, {1: (1, 5, 15)})
    with pytest.raises(ze.ZeError, match="compile the model with NPU_ENABLE_STRIDES_FOR"):
        arguments.bind()


def test_an_input_that_is_also_an_output_and_a_transposed_one(caller) -> None:
    made, (x,) = Model.build([("x", tensor("f16", (3, 5)))])
    g = GraphBuilder(made)
    order = g.constant(np.array([1, 0], np.int64))
    made.set_outputs([("same", x), ("turned", g.op(Transpose, x, order, name="turn"))])
    graph = strided(caller, made, "x,Result_3,Result_4")
    assert all(info.dynamic_strides for info in graph.tensors)
    arguments = Arguments(caller, graph, {0: (2, 16), 1: (3, 1), 2: (1, 7)})
    arguments.bind()
    arguments.run()
    x_, same, turned = (arguments.view(index) for index in range(3))
    assert np.array_equal(same, x_)
    assert np.array_equal(turned, x_.T)


def test_names_are_ignored_with_a_line_if_the_model_has_no_such_port(caller, caplog) -> None:
    with caplog.at_level("WARNING", logger="compiler_layer"):
        strided(caller, model(), "a,nothing")
    assert caplog.messages == [
        "NPU_ENABLE_STRIDES_FOR: the model has no parameter or result 'nothing'"
    ]


def test_elements_of_four_bits_are_rejected() -> None:
    made, (w,) = Model.build([("w", tensor("u4", (4, 8)))])
    made.set_outputs([("y", GraphBuilder(made).convert(w, "f16", "y"))])
    with pytest.raises(GraphCompilerError, match="'w': strides of 4-bit elements"):
        DriverCompiler().compile(memoryview(serialized(made)), options("w"), PLATFORMS["4000"])


def test_a_device_without_strides_rejects_the_option() -> None:
    compiler, content = DriverCompiler(), memoryview(serialized(model()))
    with pytest.raises(GraphCompilerError, match="an NPU 3720 takes dense tensors only"):
        compiler.compile(content, options("a"), PLATFORMS["3720"])
    assert compiler.compile(content, options(""), PLATFORMS["3720"])
