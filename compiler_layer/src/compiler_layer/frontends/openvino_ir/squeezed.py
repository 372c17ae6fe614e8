"""Which dimensions a Squeeze without axes removes, where only the file's declarations tell."""

from __future__ import annotations

from compiler_layer.frontends.openvino_ir.xml import Layer, Network, OutputPort

NAME = "Squeeze"


def declared_axes(network: Network, layer: Layer) -> list[int] | None:
    """Give the axes of a Squeeze that names none.

    Its operand's shape may follow from arithmetic that is done later, while OpenVINO has done it
    already, and wrote down what it found.

    Args:
        network: the IR.
        layer: of it, with one input.

    Returns:
        The dimensions that are declared to be 1, if as many are missing in what comes out; None if
        the file does not tell.
    """
    source = _port(network, layer)
    if not source.precision or not layer.outputs or not layer.outputs[0].precision:
        return None
    axes = [axis for axis, dim in enumerate(source.dims) if dim == 1]
    removed = len(source.dims) - len(layer.outputs[0].dims)
    return axes if len(axes) == removed else None


def _port(network: Network, layer: Layer) -> OutputPort:
    owner, number = network.feeder(layer, 0)
    (port,) = (
        port
        for each in network.layers
        if each.id == owner
        for port in each.outputs
        if port.id == number
    )
    return port
