"""Layers of a model that the device can run.

Layers that the frontend rejects are cut out: what they feed becomes inputs, what feeds them
becomes outputs. The graph passes then run on the rest, and each op that is left is checked.
"""

from __future__ import annotations

from collections.abc import Sequence

from compiler_layer.dialects.ov.types import is_static
from compiler_layer.errors import UnsupportedOps
from compiler_layer.frontends.openvino_ir.read import read_network
from compiler_layer.frontends.openvino_ir.supported import PRECISIONS, unsupported_layers
from compiler_layer.frontends.openvino_ir.xml import IrLayer, Network, OutputPort, PortKey
from compiler_layer.in_driver.arguments import check_shapes, set_names
from compiler_layer.in_driver.serialized_model import NAME
from compiler_layer.model import Model
from compiler_layer.passes.check_supported import CheckSupported
from compiler_layer.pipeline import Options, graph_passes, run_passes


def supported_layers(network: Network, weights: memoryview, options: Options) -> tuple[str, ...]:
    """Return the friendly names of supported layers, in an executable order.

    Raises:
        CompilerError: the model is damaged, or not static.
    """
    rejected = _rejected(network)
    supported = _without(network, rejected)
    model = read_network(supported, weights, NAME)
    check_shapes(model)
    set_names(model, supported)
    refused = _refused(model, options)
    return tuple(
        layer.name
        for layer in network.layers
        if layer.id not in rejected and layer.name not in refused
    )


def _rejected(network: Network) -> set[str]:
    """Return the ids of layers that the frontend rejects, and of those around them.

    Layers whose shapes depend on data are rejected, and so are layers that need a result of a
    rejected layer which cannot be an input.
    """
    rejected = {layer.id for layer, _ in unsupported_layers(network)}
    variables: set[str | None] = set()
    for layer in network.layers:  # each after the layers that feed it
        of_data = layer.type != "Parameter" and not all(is_static(p.dims) for p in layer.outputs)
        sources = [network.sources[layer.id, port] for port in layer.inputs]
        cut = [network.outputs[source][1] for source in sources if source[0] in rejected]
        variable = layer.data.get("variable_id")
        if of_data or not all(map(_can_be_input, cut)) or (variable and variable in variables):
            rejected.add(layer.id)
        if layer.type == "ReadValue" and layer.id in rejected:
            variables.add(variable)
    return rejected


def _can_be_input(port: OutputPort) -> bool:
    return port.precision in PRECISIONS and is_static(port.dims)


def _without(network: Network, rejected: set[str]) -> Network:
    """Cut out layers: replace their outputs by parameters, and their inputs by results."""
    kept = [layer for layer in network.layers if layer.id not in rejected]
    parameters: list[IrLayer] = []
    results: list[IrLayer] = []
    moved: dict[PortKey, PortKey] = {}
    sources: dict[PortKey, PortKey] = {}
    for layer in network.layers:
        if layer.id not in rejected:
            continue
        for port in filter(_can_be_input, layer.outputs):
            parameters.append(_parameter(layer, port))
            moved[layer.id, port.id] = (parameters[-1].id, port.id)
        for port_id in layer.inputs:
            source = network.sources[layer.id, port_id]
            if source[0] not in rejected:
                results.append(_layer(f"{layer.id} in {port_id}", "Result", inputs=[port_id]))
                sources[results[-1].id, port_id] = source
    for layer in kept:
        for port_id in layer.inputs:
            source = network.sources[layer.id, port_id]
            sources[layer.id, port_id] = moved.get(source, source)
    return Network([*parameters, *kept, *results], sources, network.rt_info)


def _parameter(layer: IrLayer, port: OutputPort) -> IrLayer:
    made = _layer(f"{layer.id} out {port.id}", "Parameter")
    shape = ",".join(map(str, port.dims))
    made.data = {"element_type": PRECISIONS[port.precision], "shape": shape}
    made.outputs = [OutputPort(port.id, (made.name,), port.precision, port.dims)]
    return made


def _layer(unique: str, kind: str, inputs: Sequence[str] = ()) -> IrLayer:
    """Make a layer; XML has no character that its id begins with."""
    name = f"\0{unique}"
    return IrLayer(name, name, kind, "opset1", position=-1, inputs=list(inputs))


def _refused(model: Model, options: Options) -> set[str]:
    """Return the names of ops that cannot be lowered to the device."""
    try:
        run_passes(model, (*graph_passes(options), CheckSupported()), options)
    except UnsupportedOps as error:
        return {name for _, name in error.ops}
    return set()
