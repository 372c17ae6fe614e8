"""Names of an IR's inputs and outputs, and the arguments that the public compiler makes of them.

Source: docs/reference/elf.md#metadata.
"""

from __future__ import annotations

from compiler_layer.frontends.openvino_ir.xml import Network
from compiler_layer.model import ModelNames, PortNames


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


def argument_names(network: Network) -> tuple[list[str], list[str]]:
    """Return the argument names of inputs and outputs.

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
