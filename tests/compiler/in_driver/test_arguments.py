"""Arguments of blobs: names, types and layouts are what the caller asked for."""

from __future__ import annotations

import numpy as np
import pytest
from tests.compiler.in_driver.caller import COUNTED, Caller, Dense, serialized
from xdsl.dialects.builtin import StringAttr

from compiler_layer.builder import GraphBuilder
from compiler_layer.dialects.ov.elementwise import Add
from compiler_layer.dialects.ov.state import Assign, ReadValue
from compiler_layer.dialects.ov.types import tensor
from compiler_layer.model import Model
from driver_layer.errors import ZeError


def elements(graph) -> list[str]:
    return [each.element.name for each in graph.tensors]


def rejected(caller: Caller, model: bytes, flags: str = "") -> str:
    with pytest.raises(ZeError) as raised:
        caller.graph(model, flags)
    return str(raised.value)


class TestTypes:
    @pytest.mark.parametrize("wanted", ["FP32", "FP16", "BF16", "I32", "U8"])
    def test_results_have_the_requested_type(self, caller, dense, wanted: str) -> None:
        graph = caller.graph(dense.serialized(), f'--outputs_precisions="0:{wanted}"')
        (y,) = caller.infer(graph, dense.x)
        assert elements(graph)[1] == wanted.lower().replace("fp", "f")
        if wanted == "BF16":
            y = (y.astype(np.uint32) << 16).view(np.float32)
        assert np.allclose(y, dense.expected, rtol=1e-2, atol=1 if y.dtype.kind in "iu" else 1e-2)

    @pytest.mark.parametrize("hint", ["f16", "f32"])
    @pytest.mark.parametrize("element", ["f16", "f32", "bf16"])
    def test_a_conversion_before_a_result_is_kept(self, caller, dense, element, hint) -> None:
        model = serialized(dense.model(element=element))
        graph = caller.graph(model, f'--config INFERENCE_PRECISION_HINT="{hint}"')
        assert elements(graph) == ["f32", element]

    def test_parameters_are_converted_from_the_requested_type(self, caller, dense) -> None:
        graph = caller.graph(dense.serialized(), '--inputs_precisions="0:FP16"')
        (y,) = caller.infer(graph, dense.x.astype(np.float16))
        assert np.allclose(y, dense.expected, rtol=1e-2, atol=1e-2)

    def test_a_parameter_that_is_a_result_is_converted_on_both_sides(self, caller) -> None:
        model, (x,) = Model.build([("x", tensor("f32", (3,)))])
        model.set_outputs([("y", x)])
        flags = '--inputs_precisions="0:I32" --outputs_precisions="0:FP16"'
        graph = caller.graph(serialized(model), flags)
        (y,) = caller.infer(graph, np.array([1, -2, 3], np.int32))
        assert y.dtype == np.float16
        assert y.tolist() == [1, -2, 3]

    @pytest.mark.parametrize(
        ("flags", "reason"),
        [
            ('--inputs_precisions="0:FP64"', "of f64"),
            ('--inputs_precisions="0:BIN"', "'x' as BIN: the NPU here does not support the type"),
            ('--inputs_precisions="0:FP17"', "'x' as FP17: unknown"),
            ('--inputs_precisions="1:FP16"', "no port '1'; it has 0"),
            ('--outputs_layouts="0:HWC"', "in layout HWC: 3 dimensions are stored as CHW"),
        ],
    )
    def test_other_requests_are_rejected(self, caller, dense, flags, reason) -> None:
        assert reason in rejected(caller, dense.serialized(), flags)

    def test_row_major_layouts_are_accepted(self, caller, dense) -> None:
        flags = '--inputs_layouts="0:CHW" --outputs_layouts="0:ANY"'
        assert len(caller.graph(dense.serialized(), flags).tensors) == 2


class TestNames:
    @pytest.fixture
    def graph(self, caller: Caller, dense: Dense):
        """Return a graph whose tensors have other names than its layers."""
        model = dense.model()
        (y,) = model.outputs
        model.set_outputs([("y", y.value), ("again", y.value)])
        # The buffer has the size of the XML, so one letter replaces another.
        return caller.graph(serialized(model).replace(b'name="x"', b'name="p"'))

    def test_inputs_have_the_friendly_names_of_parameters(self, caller, graph) -> None:
        properties = caller.table.pfnGetArgumentProperties3(graph, 0)
        assert (properties.name, properties.debug_friendly_name) == ("p", "p")
        assert properties.associated_tensor_names == ("x",)

    def test_outputs_have_the_names_of_layers_that_produce_them(self, caller, graph) -> None:
        first, second = (caller.table.pfnGetArgumentProperties3(graph, i) for i in (1, 2))
        assert (first.name, first.debug_friendly_name) == ("relu", "Result_4")
        assert second.name == second.debug_friendly_name == "Result_5"
        assert first.associated_tensor_names == second.associated_tensor_names == ("y", "again")

    def test_metadata_has_the_layer_that_a_result_is_read_from(self, caller, graph) -> None:
        metadata = caller.table.pfnGraphGetArgumentMetadata(graph, 1)
        assert metadata.input_name == "relu"
        assert metadata.friendly_name == "Result_4"

    def test_ports_are_requested_by_name_where_the_model_says_so(self, caller, dense) -> None:
        model = serialized(dense.model(), COUNTED | {"use_indices_for_io_metadata": "NO"})
        flags = '--inputs_precisions="x:FP16" --outputs_precisions="relu:FP16"'
        assert elements(caller.graph(model, flags)) == ["f16", "f16"]
        assert "no port '0'" in rejected(caller, model, '--inputs_precisions="0:FP16"')

    def test_a_long_tensor_name_is_rejected(self, caller, dense) -> None:
        model = dense.model()
        model.set_outputs([("y" * 300, model.outputs[0].value)])
        assert "is over 255 bytes long; shorten it" in rejected(caller, serialized(model))

    def test_the_prefix_of_states_is_reserved(self, caller) -> None:
        name = "vpux_ie_read_value_s"
        model, (x,) = Model.build([(name, tensor("f32", (3,)))])
        model.set_outputs([("y", x)])
        assert "the prefix is reserved" in rejected(caller, serialized(model))


class TestShapes:
    def test_a_dynamic_batch_is_rejected_with_a_remedy(self, caller, dense) -> None:
        message = rejected(caller, serialized(dense.model(batch=-1)))
        assert "input 'x' has a dynamic batch, [?, 4, 32]" in message
        assert "Model.reshape" in message

    def test_any_dynamic_dimension_is_rejected(self, caller) -> None:
        model, (x,) = Model.build([("x", tensor("f32", (2, -1)))])
        model.set_outputs([("y", x)])
        assert "has dynamic dimensions, [2, ?]" in rejected(caller, serialized(model))

    def test_more_dimensions_than_level_zero_describes_are_rejected(self, caller) -> None:
        model, (x,) = Model.build([("x", tensor("f32", (1,) * 6))])
        model.set_outputs([("y", x)])
        assert "Level Zero describes at most 5" in rejected(caller, serialized(model))


class TestStates:
    @staticmethod
    def counting(start: float | None = 0.0) -> bytes:
        """Return a model that adds x to a variable, and returns the sum."""
        kind = tensor("f32", (2,))
        model, (x,) = Model.build([("x", kind)])
        g = GraphBuilder(model)
        init = [] if start is None else [g.constant(np.full(2, start, np.float32))]
        read = g.add(
            ReadValue(
                operands=[init], properties={"variable_id": StringAttr("s")}, result_types=[kind]
            )
        )
        total = g.op(Add, read.output, x, name="total")
        g.add(Assign.make([total], variable_id=StringAttr("s")))
        model.set_outputs([("y", total)])
        return serialized(model)

    def test_variables_are_arguments_of_their_own_type(self, caller) -> None:
        graph = caller.graph(self.counting())
        assert [each.name for each in graph.tensors] == [
            "x",
            "vpux_ie_read_value_s",
            "total",
            "vpux_ie_assign_s",
        ]
        assert elements(graph) == ["f32"] * 4
        x, state = np.array([1, 2], np.float32), np.zeros(2, np.float32)
        for turn in (1, 2, 3):
            y, state = caller.infer(graph, x, state)
            assert y.tolist() == state.tolist() == [turn, 2 * turn]

    def test_a_start_other_than_zero_is_rejected(self, caller) -> None:
        message = rejected(caller, self.counting(1.0))
        assert "variable 's' starts with values other than zero" in message
