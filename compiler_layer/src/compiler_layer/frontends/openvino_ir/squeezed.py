"""Axes of a Squeeze without an axes input, derived from the file's declared shapes."""

from __future__ import annotations

from compiler_layer.frontends.openvino_ir.xml import IrLayer, Network, OutputPort

NAME = "Squeeze"


def declared_axes(network: Network, layer: IrLayer) -> list[int] | None:
    """Return the axes of a Squeeze without an axes input.

    The operand's shape may depend on arithmetic that is evaluated later; OpenVINO has evaluated it
    already, and declares the result in the file.

    Args:
        network: the IR.
        layer: a layer of the IR with one input.

    Returns:
        The dimensions declared as 1, if their number equals that of the removed ones; None if the
        file does not determine them.
    """
    source = _port(network, layer)
    if not source.precision or not layer.outputs or not layer.outputs[0].precision:
        return None
    axes = [axis for axis, dim in enumerate(source.dims) if dim == 1]
    removed = len(source.dims) - len(layer.outputs[0].dims)
    return axes if len(axes) == removed else None


def _port(network: Network, layer: IrLayer) -> OutputPort:
    owner, number = network.feeder(layer, 0)
    (port,) = (
        port
        for each in network.layers
        if each.id == owner
        for port in each.outputs
        if port.id == number
    )
    return port
