"""Names of an IR's inputs and outputs, and the arguments that the public compiler makes of them.

Source: docs/reference/elf.md#metadata.
"""

from __future__ import annotations

from compiler_layer.frontends.openvino_ir.xml import IrLayer, Network
from compiler_layer.model import ModelNames, PortNames


def model_names(network: Network) -> ModelNames:
    """Return the names of parameters and results."""
    producers = _producers(network)
    return ModelNames(
        tuple(
            PortNames(layer.name, layer.outputs[0].names if layer.outputs else ())
            for layer in network.ports("Parameter")
        ),
        tuple(
            PortNames(layer.name, layer.result_names or producer.outputs[index].names)
            for layer, (producer, index) in zip(network.ports("Result"), producers, strict=True)
        ),
    )


def argument_names(network: Network) -> tuple[list[str], list[str]]:
    """Return the argument names of inputs and outputs.

    An input has its parameter's friendly name. An output has that of the layer that produces it,
    with the port's number if the layer has several outputs; a second result of one tensor has its
    own friendly name.
    """
    outputs: list[str] = []
    for result, (producer, index) in zip(network.ports("Result"), _producers(network), strict=True):
        several = len(producer.outputs) > 1
        name = f"{producer.name}.{index}" if several else producer.name
        outputs.append(result.name if name in outputs else name)
    return [layer.name for layer in network.ports("Parameter")], outputs


def _producers(network: Network) -> list[tuple[IrLayer, int]]:
    """Return the layer that feeds each result, and the index of its output port."""
    layers = {layer.id: layer for layer in network.layers}
    found: list[tuple[IrLayer, int]] = []
    for result in network.ports("Result"):
        layer, port = network.feeder(result, 0)
        ports = [each.id for each in layers[layer].outputs]
        found.append((layers[layer], ports.index(port)))
    return found
