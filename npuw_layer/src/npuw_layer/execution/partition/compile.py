"""Compilation of one model's parts to programs."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from compiler_layer.partition.compiled import LINK_PREFIX
from compiler_layer.partition.functions import Function, find_functions
from compiler_layer.partition.parts import Part
from npuw_layer.backends.interpreter import port_info
from npuw_layer.backends.protocols import (
    SUBMODEL,
    CompilesFunctions,
    Device,
    TensorInfo,
    ability,
)
from npuw_layer.execution.partition.container import Call, FunctionProgram, PartPrograms

if TYPE_CHECKING:
    from compiler_layer.model import Model


def compile_parts(
    parts: Sequence[Part],
    device_of: Mapping[str, Device],
    config: Mapping[str, str],
    no_fold: Collection[str] = (),
    inputs: Sequence[TensorInfo] = (),
    outputs: Sequence[str] = (),
) -> PartPrograms:
    """Compile the parts of a model, equal ones once.

    Args:
        parts: in execution order.
        device_of: device of each tag's parts.
        config: compiler configuration; with NPUW_FOLD = NO, each part is compiled separately.
        no_fold: tags whose parts are always compiled separately.
        inputs: inputs of the model, in its order.
        outputs: names of the model's outputs, in its order.

    Raises:
        RuntimeError: a part is not supported, or does not fit.
    """
    compiled: list[FunctionProgram] = []
    calls: dict[int, Call] = {}
    name = config.get(SUBMODEL, "model")
    alone = {**config, "NPUW_FOLD": "NO"}  # equal parts are already found
    one_by_one = {*device_of} if config.get("NPUW_FOLD") == "NO" else {*no_fold}
    for function in _functions(parts, device_of, one_by_one):
        number = len(compiled)
        config = {**alone, SUBMODEL: f"{name}/{function.tag or 'part'}{function.calls[0]}"}
        program, weights = _compile(function, device_of[function.tag], config)
        compiled.append(program)
        for place, part in enumerate(function.parts):
            names = _names(function.parts[0].model, part.model)
            names |= {own: each[place] for own, each in weights.items()}
            kept = {own: its for own, its in names.items() if own != its}
            calls[function.calls[place]] = Call(function=number, names=kept)
    in_order = [calls[number] for number in range(len(parts))]
    read = {port.name for part in parts for port in part.model.inputs}
    return PartPrograms(
        functions=compiled,
        calls=in_order,
        links=_links(parts),
        ports=[*(info.name for info in inputs), *outputs],
        unread={info.name: info for info in inputs if info.name not in read},
    )


def _functions(
    parts: Sequence[Part], device_of: Mapping[str, Device], one_by_one: Collection[str]
) -> Iterator[Function]:
    """Yield the functions; without CompilesFunctions, parts with their own weights are separate."""
    for function in find_functions(parts):
        functions = ability(device_of[function.tag], CompilesFunctions)
        separate = function.has_weights_of_calls and functions is None
        if function.tag in one_by_one or separate:
            for number, part in zip(function.calls, function.parts, strict=True):
                yield replace(function, calls=[number], parts=[part])
        else:
            yield function


def _compile(
    function: Function, device: Device, config: Mapping[str, str]
) -> tuple[FunctionProgram, Mapping[str, Sequence[str]]]:
    """Compile a function; return its program, and its weights in each call."""
    functions = ability(device, CompilesFunctions)
    if function.has_weights_of_calls and functions is not None:
        made = functions.compile_function(function.merged(), config)
        return FunctionProgram(function.tag, made.blob, made.literals), made.weights
    program = device.compile(function.parts[0].model.clone(), config)
    return FunctionProgram(function.tag, program, {}), {}


def _names(function: Model, call: Model) -> dict[str, str]:
    """Return the names of a function's ports in one of its calls."""
    own = (*function.inputs, *function.outputs)
    its = (*call.inputs, *call.outputs)
    return {a.name: b.name for a, b in zip(own, its, strict=True)}


def _links(parts: Sequence[Part]) -> dict[str, TensorInfo]:
    return {
        port.name: port_info(port)
        for part in parts
        for port in part.model.outputs
        if port.name.startswith(LINK_PREFIX)
    }
