"""Separation of weights: a main blob without weights, and an init blob that prepares them.

The plugin compiles a model repeatedly, with the number of the call among the options, until it
receives the main blob. It runs an init blob once, on the constants of the model's file, and gives
the results to the main blob. A cached model then needs no copy of the weights.

    init   vpux_ow_OFFSET, as stored  ->  vpux_tw_OFFSET_TYPE, as the main blob reads it
    main   parameters, vpux_tw_OFFSET_TYPE  ->  results

Source: docs/reference/driver_compiler.md#separated-weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from xdsl.ir import SSAValue

from compiler_layer.builder import GraphBuilder
from compiler_layer.compile import compile_model
from compiler_layer.dialects.ov.types import element_of, shape_of, tensor
from compiler_layer.elements import FOUR_BIT
from compiler_layer.errors import CompilerUsageError
from compiler_layer.files import FileView
from compiler_layer.frontends.openvino_ir.xml import Network
from compiler_layer.model import Model, ModelNames, Port
from compiler_layer.pipeline import Options, lower

_ORIGINAL = "vpux_ow_"
"""Prefix of an init blob's inputs; a constant's offset in the model's file follows."""

_PREPARED = "vpux_tw_"
"""Prefix of an init blob's outputs, and of the main blob's inputs that receive them."""

_MOST_DIGITS = 20
"""Number of digits that no offset in a file has."""

_INIT, _MAIN = 0, 1
"""Numbers of the calls."""


@dataclass(frozen=True, slots=True)
class _Original:
    """A constant in the model's file, which the plugin can supply."""

    offset: int
    element: str

    def prepared(self, element: str) -> str | None:
        """Name the constant as the main blob reads it; None if no init blob can prepare it."""
        converted = element != self.element
        if converted and FOUR_BIT & {element, self.element}:
            return None
        return f"{_PREPARED}{self.offset}_{element}"


def compile_separated(
    model: Model, network: Network, call: int, options: Options, names: ModelNames
) -> bytes:
    """Compile the init blob or the main blob of a model.

    Args:
        model: consumed.
        network: the IR that the model was read from; its runtime information has the places of
            constants in the model's file.
        call: the number of the call, 0 or 1; the first returns the main blob if no weight can be
            separated.
        options: options of both blobs.
        names: names of the model's parameters and results.

    Raises:
        CompilerUsageError: there is no such call.
        CompilerError: as ``compile_model``.
    """
    if call > _MAIN:
        raise CompilerUsageError(f"WS_COMPILE_CALL_NUMBER={call}: call {_MAIN} was the last")
    originals = _originals(network)
    prepared: dict[str, _Original] = {}

    def name_weight(view: FileView, element: str) -> str | None:
        original = originals.get((view.offset, view.size))
        name = None if original is None else original.prepared(element)
        if original is not None and name is not None:
            prepared[name] = original
        return name

    separated = replace(options, weightless=True, name_weight=name_weight)
    if call == _INIT:
        lowered = model.clone()
        lower(lowered, replace(separated, fold=False))
        weights = [(prepared[p.name], p) for p in lowered.inputs if p.name in prepared]
        if weights:
            return compile_model(_init_model(weights), options)
    return compile_model(model, separated, names=names)


def _originals(network: Network) -> dict[tuple[int, int], _Original]:
    """Return the constants that are as in the model's file, by offset and size in its buffer."""
    found: dict[tuple[int, int], _Original] = {}
    constants = [layer for layer in network.layers if layer.type == "Const"]
    constants.sort(key=lambda layer: layer.position)
    info = network.rt_info
    for number, layer in enumerate(constants):
        offset = info.get(f"ws_bin_offset_{number}", "")
        size, element = layer.data.get("size", ""), layer.data.get("element_type", "")
        same = (info.get(f"ws_original_size_{number}"), info.get(f"ws_original_dtype_{number}"))
        if offset.isdecimal() and len(offset) < _MOST_DIGITS and same == (size, element):
            place = int(layer.data["offset"]), int(size)
            found[place] = _Original(int(offset), element)
    return found


def _init_model(weights: Sequence[tuple[_Original, Port]]) -> Model:
    """Build the model that converts constants to the inputs of a main blob."""
    stored = {
        original: tensor(original.element, shape_of(port.value)) for original, port in weights
    }
    ports = [(f"{_ORIGINAL}{original.offset}", kind) for original, kind in stored.items()]
    model, arguments = Model.build(ports)
    values = dict(zip(stored, arguments, strict=True))
    g = GraphBuilder(model)
    outputs: list[tuple[str, SSAValue]] = []
    for original, port in weights:
        value, element = values[original], element_of(port.value)
        if element != original.element:
            value = g.convert(value, element)
        outputs.append((port.name, value))
    model.set_outputs(outputs)
    return model
