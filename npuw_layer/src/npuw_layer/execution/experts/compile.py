"""Compilation of a mixture's experts; those that differ only in weights are compiled once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from xdsl.ir import SSAValue

from compiler_layer.dialects.ov.constant import Constant
from compiler_layer.model import Model
from compiler_layer.partition.compiled import LITERAL_PREFIX
from compiler_layer.partition.functions import find_functions
from compiler_layer.partition.mixtures.expert import expert_model
from compiler_layer.partition.mixtures.find import find_mixtures
from compiler_layer.partition.mixtures.mixture import Mixture
from compiler_layer.partition.parts import Part
from npuw_layer.backends.interpreter import port_info
from npuw_layer.backends.protocols import CompilesFunctions, Device, ability
from npuw_layer.errors import ModelError
from npuw_layer.execution.experts.container import ExpertEntry, PortEntry, Routed

FEWEST = 16
"""Minimum rows of a program, if the model has as many tokens."""


def rows_at_once(tokens: int, slots: int, experts: int, asked: int) -> int:
    """Return the number of rows of an expert's program.

    Args:
        tokens: T.
        slots: K, number of experts of a token.
        experts: E.
        asked: NPUW_MOE_TOKEN_CHUNK_SIZE; 0 chooses the average rows of an expert, rounded up to a
            power of two, and at least FEWEST.
    """
    if asked:
        return min(asked, tokens)
    average = max(1, -(-tokens * slots // experts))
    return min(tokens, max(FEWEST, 1 << (average - 1).bit_length()))


def compile_experts(
    model: Model, device: Device, config: Mapping[str, str], asked: int
) -> tuple[Routed, ExpertPrograms]:
    """Compile a model that consists of one mixture of experts.

    Args:
        model: static and lowered, with the hidden rows, the router's ids and weights as inputs, and
            the sum as its output; its constants may have a value for each of several calls.
        device: device of the experts.
        config: as for ``protocols.Compiler.compile``.
        asked: see ``rows_at_once``.

    Returns:
        The mixture, with the names of its first call; and the programs of its experts.

    Raises:
        ModelError: the model is not a single mixture, or is not supported.
    """
    mixture = _the_mixture(model)
    numbers = list(mixture.terms)
    count = rows_at_once(mixture.tokens, mixture.slots, len(numbers), asked)
    models = [expert_model(mixture, number, count) for number in numbers]
    calls = max(op.repetitions for one in models for op in _constants(one))
    made = ExpertPrograms(device, {**config, "ENABLE_WEIGHTLESS": "YES"}, calls)
    firsts = [Part("", _of_first_call(one)) for one in models]
    for function in find_functions(firsts):
        made.add([numbers[n] for n in function.calls], [models[n] for n in function.calls])
    (output,) = model.outputs
    routed = Routed(
        rows=_entry(model, mixture.rows),
        ids=_entry(model, mixture.ids),
        weights=_entry(model, mixture.weights),
        output=PortEntry.of(port_info(output)),
        count=count,
        experts=tuple(made.entries[number] for number in numbers),
    )
    return routed, made


def _the_mixture(model: Model) -> Mixture:
    found = find_mixtures(model)
    inputs = {port.value for port in model.inputs}
    if len(found) != 1 or [port.value for port in model.outputs] != [found[0].output]:
        raise ModelError(f"HOST_ROUTED: the model has {len(found)} mixtures of experts, not one")
    if not {found[0].rows, found[0].ids, found[0].weights} <= inputs:
        raise ModelError("HOST_ROUTED: hidden rows, expert ids and weights must be inputs")
    return found[0]


class ExpertPrograms:
    """Programs of a mixture's experts, and their weights in each of its calls.

    If the device compiles functions, equal experts share one program. Otherwise each expert has its
    own program, with its own weights: then the mixture has one call.
    """

    def __init__(self, device: Device, config: Mapping[str, str], calls: int) -> None:
        self._device = device
        self._config = config
        self._calls = calls
        self.programs: list[bytes | memoryview] = []
        self.entries: dict[int, ExpertEntry] = {}
        self.weights: dict[str, tuple[str, ...]] = {}
        """Names in each call by the name in the first call, if they differ."""
        self.literals: dict[str, tuple[bytes, ...]] = {}
        """Bytes in each call of a weight that is in no file, by name."""

    def add(self, numbers: Sequence[int], models: Sequence[Model]) -> None:
        """Compile experts that are equal but for their weights.

        Raises:
            RuntimeError: the experts are not supported, or do not fit.
        """
        merged = _merged(models, self._calls)
        differ = any(op.is_repeated for op in _constants(merged))
        functions = ability(self._device, CompilesFunctions)
        if differ and functions is not None:
            self._compile_function(functions, numbers, merged)
            return
        for number, model in zip(numbers, models, strict=True):
            self.entries[number] = ExpertEntry(number=number, program=len(self.programs), names={})
            self.programs.append(self._device.compile(model, self._config))

    def _compile_function(
        self, device: CompilesFunctions, numbers: Sequence[int], merged: Model
    ) -> None:
        made = device.compile_function(merged, self._config)
        for place, number in enumerate(numbers):
            # Values are ordered by calls, then by experts.
            of_calls = slice(place, None, len(numbers))
            names: dict[str, str] = {}
            for own, each in made.weights.items():
                its = each[of_calls]
                names[own] = its[0]
                self.weights[its[0]] = its
            for own, values in made.literals.items():
                names[own] = f"{LITERAL_PREFIX}{len(self.literals)}"
                self.literals[names[own]] = values[of_calls]
            self.entries[number] = ExpertEntry(
                number=number, program=len(self.programs), names=names
            )
        self.programs.append(made.blob)


def _merged(models: Sequence[Model], calls: int) -> Model:
    """Return the first of equal models, with the weights of all of them in all calls."""
    merged = models[0].clone()
    rows = zip(*(_constants(one) for one in models), strict=True)
    for op, row in zip(list(_constants(merged)), rows, strict=True):
        values = [one.of_repetition(call) for call in range(calls) for one in row]
        if len({value.value for value in values}) > 1:
            op.properties["value"] = Constant.repeated(0, values).value
    return merged


def _of_first_call(model: Model) -> Model:
    first = model.clone()
    for op in _constants(first):
        op.properties["value"] = op.of_repetition(0).value
    return first


def _constants(model: Model) -> Iterator[Constant]:
    return (op for op in model.body.ops if isinstance(op, Constant))


def _entry(model: Model, value: SSAValue) -> PortEntry:
    (port,) = (port for port in model.inputs if port.value is value)
    return PortEntry.of(port_info(port))
