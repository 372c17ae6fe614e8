"""Checks that imported programs are the stages of their names, and fit one another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from npuw_layer.backends.protocols import ASSIGN_PREFIX, READ_PREFIX, LoadedModel, TensorInfo
from npuw_layer.errors import BlobError, ModelError
from npuw_layer.llm.kv.kv_layout import KVLayout
from npuw_layer.llm.kv.row_layouts import is_cache
from npuw_layer.llm.language_kind import kind_of
from npuw_layer.llm.plan.stages import Stage, StageKind, kv_layout
from npuw_layer.options import Options
from npuw_layer.tensors.names import (
    EMBED,
    LAST_TOKEN,
    LOGITS,
    MASK,
    is_transposed,
    slot_variable,
    vocabulary_of,
)
from npuw_layer.tensors.token_inputs import TOKENS, TokenInput, token_inputs
from npuw_layer.tensors.token_outputs import TokenOutput, token_outputs
from npuw_layer.tensors.traits import traits

_Row = tuple[str, tuple[int, ...]]
"""Element type, and shape of one token's row."""

_Cache = tuple[str, int, tuple[int, ...]]
"""Element type, number of rows, and shape of a row."""


def check_ports(stages: Sequence[Stage], loaded: Sequence[LoadedModel], options: Options) -> None:
    """Compare the programs' inputs and outputs with the stages and with one another.

    Args:
        stages: expected stages of the programs; all of a model's, or some.
        loaded: the programs.
        options: options that the model was compiled with.

    Raises:
        BlobError: a program is another stage, or its caches or adapters differ from the rest.
    """
    if kind_of(options).check_ports(stages, loaded, options):
        return
    _check_results(stages, loaded, options.cuts_head or options.gives_hidden_states)
    for trait in traits():
        trait.check_ports(stages, loaded, options)
    of_all, layout = dict[str, object](), kv_layout(options)

    def check_same(stage: Stage, what: str, found: object) -> None:
        if of_all.setdefault(what, found) != found:
            raise BlobError(f"{stage.name} {what} than the rest")

    for stage, program in zip(stages, loaded, strict=True):
        if stage.kind is StageKind.HEAD:
            continue
        check_same(stage, "takes other inputs", _check_tokens(stage, program))
        vocabulary = vocabulary_of(info.name for info in program.inputs)
        check_same(stage, "has another vocabulary", vocabulary)
        past = _caches(program.inputs, READ_PREFIX)
        present = _caches(program.outputs, ASSIGN_PREFIX)
        rows = {name: (element, row) for name, (element, _, row) in present.items()}
        read = _read_by(stage, rows, layout)
        counts = [(count, read[name][1]) for name, (_, count, _) in past.items() if name in read]
        counts += [(count, stage.tokens * stage.slots) for _, count, _ in present.values()]
        if any(found != expected for found, expected in counts):
            raise BlobError(f"{stage.name} has caches of another length")
        if not rows or (past and past != read):
            raise BlobError(f"{stage.name} has other caches than the rest")
        check_same(stage, "has other caches", rows)
        check_same(stage, "has other outputs", _check_given(stage, program))


def _read_by(stage: Stage, rows: Mapping[str, _Row], layout: KVLayout) -> dict[str, _Cache]:
    """Return the caches that a stage reads: those it appends to, by range and by slot."""
    found: dict[str, _Cache] = {}
    for name, (element, row) in rows.items():
        for span in layout.spans(stage.past):
            count = span.rows
            if layout.room is not None and is_transposed(name):
                count = layout.room
            every = [slot_variable(span.of(name), slot) for slot in range(stage.slots)]
            names = every if stage.slots > 1 else [span.of(name)]
            found |= {each: (element, count, row) for each in names}
    return found


def _check_results(stages: Sequence[Stage], loaded: Sequence[LoadedModel], heads: bool) -> None:
    """Check that hidden states fit the LM head, and that all logits are of one vocabulary.

    Raises:
        BlobError: hidden states or logits do not fit.
    """
    rows_of_all: dict[str, _Row] = {}
    for stage, program in zip(stages, loaded, strict=True):
        found = [(program.outputs, EMBED if heads else LOGITS)]
        if stage.kind is StageKind.HEAD:
            found = [(program.inputs, EMBED), (program.outputs, LOGITS)]
        # A prefill model with an input for the last token computes only that token's logits.
        selects = any(info.name == LAST_TOKEN for info in program.inputs)
        chosen = selects and stage.kind is StageKind.PREFILL
        count = 1 if chosen and not heads else stage.tokens
        for tensors, name in found:
            row = _row(tensors, name, (stage.slots, count))
            if row is None or row[0] != "f32":
                raise BlobError(f"{stage.name} has no {name} f32 [{stage.slots}, {count}, …]")
            if rows_of_all.setdefault(name, row) != row:
                raise BlobError(f"{stage.name} has {name} of another width than the rest")


def _row(tensors: Sequence[TensorInfo], name: str, rows: tuple[int, int]) -> _Row | None:
    """Return the row of a named tensor [*rows, width]; None if there is no such tensor."""
    for info in tensors:
        if info.name == name and info.shape[:2] == rows and len(info.shape) == 3:
            return info.element, info.shape[2:]
    return None


def _check_tokens(stage: Stage, program: LoadedModel) -> tuple[TokenInput, ...]:
    """Return the inputs that follow tokens; exactly one of them holds the tokens themselves.

    Raises:
        BlobError: the inputs are not the stage's.
    """
    inputs = {info.name: info for info in program.inputs}
    try:
        taken = token_inputs(program.inputs)
    except ModelError as error:
        raise BlobError(f"{stage.name} has {error}") from None
    if sum(port.name in TOKENS for port in taken) != 1:
        raise BlobError(f"{stage.name} has neither {' nor '.join(TOKENS)}, or both")
    expected = {port.name: port.shape(stage.slots, stage.tokens) for port in taken}
    expected[MASK] = (stage.slots, stage.past + stage.tokens)
    for name, shape in expected.items():
        if name not in inputs or inputs[name].shape != shape:
            raise BlobError(f"{stage.name} has no {name} {list(shape)}")
    if inputs[MASK].element != "i64":
        raise BlobError(f"{stage.name} has {MASK} of {inputs[MASK].element}")
    return taken


def _check_given(stage: Stage, program: LoadedModel) -> tuple[TokenOutput, ...]:
    """Return the outputs that follow tokens.

    Raises:
        BlobError: the outputs are not the stage's.
    """
    try:
        given = token_outputs(program.outputs)
    except ModelError as error:
        raise BlobError(f"{stage.name}: {error}") from None
    shapes = {info.name: info.shape for info in program.outputs}
    for port in given:
        if shapes[port.name] != port.shape(stage.slots, stage.tokens):
            raise BlobError(f"{stage.name} has {port.name} of another shape")
    return given


def _caches(tensors: Sequence[TensorInfo], prefix: str) -> dict[str, _Cache]:
    """Return the K and V variables among tensors [1, rows, heads, width], by name.

    Transposed ones are [1, heads, width, rows], and are read whole.
    """
    found: dict[str, _Cache] = {}
    for info in tensors:
        name = info.name.removeprefix(prefix)
        if info.name.startswith(prefix) and is_cache(name) and len(info.shape) > 1:
            dims = info.shape[1:]
            rows, row = (dims[-1], dims[:-1]) if is_transposed(info.name) else (dims[0], dims[1:])
            found[name] = info.element, rows, row
    return found
