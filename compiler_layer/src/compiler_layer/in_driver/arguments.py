"""Arguments of a blob: names, element types and layouts that the caller allocates buffers by.

Source: docs/reference/driver_compiler.md#requests-for-ports; docs/reference/elf.md#metadata.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from compiler_layer.dialects.ov.constant import values_of
from compiler_layer.dialects.ov.elementwise import Convert
from compiler_layer.dialects.ov.op import NAME_ATTRIBUTE
from compiler_layer.dialects.ov.state import keep_type
from compiler_layer.dialects.ov.types import Shape, element_of, is_static, shape_of, tensor
from compiler_layer.elements import NUMPY
from compiler_layer.emit.metadata import MADE_PREFIX
from compiler_layer.errors import CompilerUsageError, UnsupportedModel
from compiler_layer.frontends.openvino_ir.xml import Network
from compiler_layer.in_driver.build_flags import BuildFlags
from compiler_layer.model import Model, ModelNames, Port, PortNames, PortSelection

_log = logging.getLogger(__name__)

_MAX_DIMS = 5
"""Maximum number of dimensions that Level Zero describes."""

_PRECISIONS = {
    **{f"{kind}{bits}": f"{kind.lower()}{bits}" for kind in "IU" for bits in (64, 32, 16, 8, 4, 2)},
    **{f"FP{bits}": f"f{bits}" for bits in (64, 32, 16)},
    **{f"FP8_{kind}": f"f8{kind.lower()}" for kind in ("E4M3", "E5M2", "E8M0")},
    "FP4_E2M1": "f4e2m1",
    "BF16": "bf16",
    "NF4": "nf4",
    "BIN": "u1",
    "BOOL": "boolean",
}
"""Element types by their names in build flags."""

_LAYOUTS = ("**SCALAR**", "C", "NC", "CHW", "NCHW", "NCDHW")
"""Row-major layout of each number of dimensions."""

_INDICES = "use_indices_for_io_metadata"
"""Runtime information of models whose build flags count ports instead of naming them."""


def check_shapes(model: Model) -> None:
    """Reject inputs and variables that are not static, or of more dimensions than possible.

    Raises:
        UnsupportedModel: with the reason and a remedy.
    """
    reads = [(v.name, v.read.output) for v in model.variables() if v.read is not None]
    for what, named in (
        ("input", [(port.name, port.value) for port in model.inputs]),
        ("variable", reads),
    ):
        for name, value in named:
            _check_shape(what, name, shape_of(value))
    for port in model.outputs:
        if len(shape_of(port.value)) > _MAX_DIMS:
            raise _too_many("output", port.name, shape_of(port.value))


def _check_shape(what: str, name: str, shape: Shape) -> None:
    if len(shape) > _MAX_DIMS:
        raise _too_many(what, name, shape)
    if is_static(shape):
        return
    shown = ", ".join("?" if dim < 0 else str(dim) for dim in shape)
    batch = shape[0] < 0 and is_static(shape[1:])
    raise UnsupportedModel(
        f"{what} {name!r} has {'a dynamic batch' if batch else 'dynamic dimensions'}, [{shown}]: "
        "the NPU compiles static shapes only; set them with Model.reshape before compile_model"
        + ("; or set the input's layout, and NPU_BATCH_MODE to PLUGIN" if batch else "")
    )


def _too_many(what: str, name: str, shape: Shape) -> UnsupportedModel:
    return UnsupportedModel(
        f"{what} {name!r} has {len(shape)} dimensions: Level Zero describes at most {_MAX_DIMS}; "
        "merge some with a Reshape in the model"
    )


def keep_variables(model: Model) -> None:
    """Keep the variables' types, and check their initial values, which callers set to zeros.

    Raises:
        UnsupportedModel: a variable starts with a constant other than zero.
    """
    for variable in model.variables():
        for op in (variable.read, variable.assign):
            if op is not None:
                keep_type(op)
        read = variable.read
        start = values_of(read.init) if read is not None and read.init is not None else None
        if start is not None and start.any():
            raise UnsupportedModel(
                f"variable {variable.name!r} starts with values other than zero: the NPU's "
                "variables start with zeros; add the values behind its ReadValue"
            )


def model_names(network: Network) -> ModelNames:
    """Return the names of parameters and results."""
    return ModelNames(
        tuple(
            PortNames(layer.name, layer.outputs[0].names if layer.outputs else ())
            for layer in network.ports("Parameter")
        ),
        tuple(
            PortNames(layer.name, layer.result_names or network.feeder(layer, 0)[1].names)
            for layer in network.ports("Result")
        ),
    )


def set_names(model: Model, network: Network) -> None:
    """Give inputs and outputs their argument names.

    Raises:
        UnsupportedModel: two arguments have one name, or a name has a reserved prefix.
    """
    inputs, outputs = _argument_names(network)
    for side, names in (("inputs", inputs), ("outputs", outputs)):
        _check_names(side, names)
    model.set_inputs(inputs)
    values = [port.value for port in model.outputs]
    model.set_outputs(list(zip(outputs, values, strict=True)))


def _argument_names(network: Network) -> tuple[list[str], list[str]]:
    """Return the argument names of inputs and outputs, as the public compiler makes them.

    An input has its parameter's friendly name. An output has that of the layer that produces it,
    with the port's number if the layer has several outputs; a second result of one tensor has its
    own friendly name.
    """
    outputs: list[str] = []
    for result in network.ports("Result"):
        producer, port = network.feeder(result, 0)
        several = len(producer.outputs) > 1
        name = f"{producer.name}.{producer.outputs.index(port)}" if several else producer.name
        outputs.append(result.name if name in outputs else name)
    return [layer.name for layer in network.ports("Parameter")], outputs


def select_ports(model: Model, names: ModelNames, friendly: Collection[str]) -> PortSelection:
    """Return the arguments of parameters and results with the given friendly names.

    Names of nothing are ignored, as by the public compiler, with a line in the log.
    """

    def chosen(ports: Sequence[Port], their: Sequence[PortNames]) -> frozenset[str]:
        pairs = zip(ports, their, strict=False)  # variables follow, and have no names
        return frozenset(port.name for port, each in pairs if each.friendly in friendly)

    known = {each.friendly for each in (*names.inputs, *names.outputs)}
    for name in sorted(set(friendly) - known):
        _log.warning("NPU_ENABLE_STRIDES_FOR: the model has no parameter or result %.40r", name)
    return PortSelection(chosen(model.inputs, names.inputs), chosen(model.outputs, names.outputs))


def set_elements(model: Model, network: Network, flags: BuildFlags) -> None:
    """Give inputs and outputs the requested element types.

    Args:
        model: as read from ``network``, with argument names; conversions are inserted where types
            differ.
        network: the IR's layers.
        flags: the requests.

    Raises:
        CompilerUsageError: a request names no port, or an unknown type.
        UnsupportedModel: a requested type or layout is not supported.
    """
    by_index = network.rt_info.get(_INDICES, "").upper() in ("YES", "TRUE", "1")
    _apply(model, "inputs", model.inputs, flags, by_index)
    _apply(model, "outputs", model.outputs, flags, by_index)
    model.refresh_signature()


def _apply(
    model: Model, side: str, ports: Sequence[Port], flags: BuildFlags, by_index: bool
) -> None:
    """Apply the requests for all inputs, or for all outputs."""
    convert = _convert_input if side == "inputs" else _convert_output
    keys = [str(index) if by_index else port.name for index, port in enumerate(ports)]
    layouts = _requests(flags, f"{side}_layouts", keys)
    precisions = _requests(flags, f"{side}_precisions", keys)
    for index, port in enumerate(ports):
        _check_layout(port, layouts[index])
        wanted = precisions[index]
        element = element_of(port.value) if wanted is None else _element(port, wanted)
        if element != element_of(port.value):
            convert(model, index, port, element)


def _check_names(side: str, names: Sequence[str]) -> None:
    for name, count in Counter(names).items():
        if count > 1 or name.startswith(MADE_PREFIX):
            problem = f"{count} of them have this name" if count > 1 else "the prefix is reserved"
            raise UnsupportedModel(f"{side}: {name!r}: {problem}; rename the layers in the model")


def _requests(flags: BuildFlags, flag: str, keys: Sequence[str]) -> list[str | None]:
    """Return the request for each port; None without one."""
    requests: Mapping[str, str] = flags.ports.get(flag, {})
    for key in requests:
        if key not in keys:
            known = ", ".join(keys[:8])
            raise CompilerUsageError(
                f"--{flag}: the model has no port {key[:40]!r}; it has {known}"
            )
    return [requests.get(key) for key in keys]


def _check_layout(port: Port, wanted: str | None) -> None:
    rank = len(shape_of(port.value))
    own = _LAYOUTS[rank] if rank < len(_LAYOUTS) else "BLOCKED"
    if wanted not in (None, own, "ANY"):
        raise UnsupportedModel(
            f"{port.name!r} in layout {wanted[:40]}: {rank} dimensions are stored as {own}; add a "
            "Transpose to the model (PrePostProcessor)"
        )


def _element(port: Port, precision: str) -> str:
    element = _PRECISIONS.get(precision.upper())
    if element is None:
        known = ", ".join(_PRECISIONS)
        raise CompilerUsageError(f"{port.name!r} as {precision[:40]}: unknown; choose of {known}")
    if element not in NUMPY:
        raise UnsupportedModel(
            f"{port.name!r} as {precision}: the NPU here does not support the type; convert the "
            "port in the model (PrePostProcessor)"
        )
    return element


def _convert_input(model: Model, index: int, port: Port, element: str) -> None:
    del index
    argument = port.value
    own, wanted = element_of(argument), tensor(element, shape_of(argument))
    users = list(argument.uses)
    argument = Rewriter.replace_value_with_new_type(argument, wanted)
    made = _conversion(argument, own, port.name)
    Rewriter.insert_op(made, InsertPoint.at_start(model.body))
    for use in users:
        use.operation.operands[use.index] = made.output


def _convert_output(model: Model, index: int, port: Port, element: str) -> None:
    made = _conversion(port.value, element, port.name)
    model.body.insert_op_before(made, model.terminator)
    model.terminator.operands[index] = made.output


def _conversion(value: SSAValue, element: str, name: str) -> Convert:
    made = Convert.make([value], destination_type=StringAttr(element))
    made.attributes[NAME_ATTRIBUTE] = StringAttr(name)
    return made
