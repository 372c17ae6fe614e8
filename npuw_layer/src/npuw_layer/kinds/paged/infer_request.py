"""Inference request of a model with paged attention, like OpenVINO's ``InferRequest``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from npuw_layer.api.given_inputs import Given, Inputs, copied
from npuw_layer.api.model_port import PortKey, find_port
from npuw_layer.api.stateless_request import AnyInput, StatelessRequest
from npuw_layer.backends.arena import ELEMENT_TYPES
from npuw_layer.backends.protocols import Array
from npuw_layer.errors import RemoteError, TensorError
from npuw_layer.execution.devices.report import devices_report
from npuw_layer.kinds.paged.compiled import CompiledPaged
from npuw_layer.kinds.paged.dispatch import checked_tables, tables_of_range
from npuw_layer.kinds.paged.lengths import TokenRun, plan_runs, sampled_rows
from npuw_layer.kinds.paged.names import SAMPLED, Role
from npuw_layer.kinds.paged.ports import PagedPort
from npuw_layer.kinds.paged.runner import VariantRunner
from npuw_layer.remote.tensor import RemoteTensor, values_of
from npuw_layer.tensors.names import IDS, vocabulary_of
from npuw_layer.tensors.token_inputs import check_ids

_BLOCKS_AXIS, _ROWS_AXIS = 0, 2
"""Axes of caches."""


class PagedInferRequest(StatelessRequest[PagedPort, PagedPort]):
    """Request of a compiled model; all state is in the caller's caches.

    An inference reads new tokens of some sequences. It takes the id (or embedding) and position of
    each token, the tables, and all caches, which are written in place; max_context_len is optional,
    as the tables determine it. It returns outputs with a row for each token, or for each sampled
    token. TensorError is raised if ids are not in the vocabulary, or tables name blocks or tokens
    that do not exist.

    Args:
        compiled: the variants.
        inputs, outputs: ports of the model.
    """

    def __init__(
        self, compiled: CompiledPaged, inputs: Sequence[PagedPort], outputs: Sequence[PagedPort]
    ) -> None:
        super().__init__(compiled.options, inputs, outputs)
        self._compiled = compiled
        self._vocabulary = vocabulary_of(port.any_name for port in compiled.parts[-1].inputs)
        self._runners: dict[int, VariantRunner] = {}
        self._ran: list[TokenRun] = []
        self._samples = bool(self._names(Role.SAMPLED))

    def _given(self, inputs: Inputs, shared: bool = True) -> Given:
        """Return inputs by name, copied unless shared; caches are never copied."""
        given = super()._given(inputs)
        caches = {*self._names(Role.CACHE)}
        rest = {name: one for name, one in given.items() if name not in caches}
        return given if shared else given | copied(rest)

    def execution_report(self) -> Mapping[str, str]:
        """Return a readable report of the last inference."""
        runs = ", ".join(f"{run.end - run.begin} of {run.size}" for run in self._ran)
        compiled = self._compiled
        report = {"blobs": str(compiled.origin), "tokens": runs or "none"}
        return report | devices_report(compiled.submodels)

    def _input(self, key: PortKey, tensor: AnyInput) -> tuple[str, AnyInput]:
        port = find_port(self._inputs, key, "input")
        port.check_tensor(tensor)
        return port.any_name, tensor

    def _compute(self, inputs: Mapping[str, AnyInput]) -> dict[str, Array]:
        needed = [port.any_name for port in self._inputs if port.role is not Role.CONTEXT]
        missing = [name for name in needed if name not in inputs]
        if missing:
            raise TensorError(f"not set: {', '.join(missing)}")
        caches = {name: _in_place(name, inputs[name]) for name in self._names(Role.CACHE)}
        rows = {name: values_of(inputs[name]) for name in self._names(Role.TOKENS)}
        tokens = _count(rows)
        if IDS in rows:
            check_ids(rows[IDS], self._vocabulary)
        shapes = [cache.shape for cache in caches.values()]
        tables = checked_tables(
            {name: values_of(inputs[name]) for name in self._names(Role.TABLE)},
            tokens,
            blocks=min(shape[_BLOCKS_AXIS] for shape in shapes),
            block_rows=shapes[0][_ROWS_AXIS],
        )
        wanted: Array = np.arange(tokens)
        if self._samples:
            wanted = _sampled(values_of(inputs[SAMPLED]), tokens)
        return self._read(rows, caches, tables, wanted)

    def _read(
        self,
        rows: Mapping[str, Array],
        caches: Mapping[str, Array],
        tables: Mapping[str, Array],
        wanted: Array,
    ) -> dict[str, Array]:
        """Run as many variants as needed, and return the outputs of the requested tokens."""
        found = {
            port.any_name: np.zeros(
                (wanted.size, *port.partial_shape[1:]), ELEMENT_TYPES[port.element_type]
            )
            for port in self._outputs
        }
        tokens = len(next(iter(rows.values())))
        self._ran = []
        for run in plan_runs(tokens, sorted(self._compiled.variants)):
            own = {name: values[run.begin : run.end] for name, values in rows.items()}
            in_place = {**tables_of_range(tables, run.begin, run.end), **caches}
            for mine in self._wanted_of(run, wanted):
                self._run.check_wanted()
                own[SAMPLED] = wanted[mine] - run.begin
                made = self._runner(run.size).run(own, in_place)
                self._ran.append(run)
                places = np.arange(mine.size) if self._samples else own[SAMPLED]
                for name, values in found.items():
                    values[mine] = made[name][places]
        return found

    def _wanted_of(self, run: TokenRun, wanted: Array) -> Iterator[Array]:
        """Yield the requested tokens of a run, in groups that one run can return.

        The run repeats for each group, and writes the same rows again.
        """
        mine: Array = np.flatnonzero((wanted >= run.begin) & (wanted < run.end))
        most = sampled_rows(run.size) if self._samples else run.size
        for begin in range(0, max(mine.size, 1), most):
            yield mine[begin : begin + most]

    def _runner(self, size: int) -> VariantRunner:
        """Return the runner of a variant, created on first use."""
        if size not in self._runners:
            self._runners[size] = VariantRunner(self._compiled.variants[size])
        return self._runners[size]

    def _names(self, role: Role) -> list[str]:
        return [port.any_name for port in self._inputs if port.role is role]


def _in_place(name: str, tensor: AnyInput) -> Array:
    """Return a cache as an array, in place.

    Raises:
        RemoteError: the cache is not host-visible.
    """
    if isinstance(tensor, RemoteTensor) and not tensor.span().memory.host_visible:
        raise RemoteError(
            f"{name!r} is written by the host, but is not host-visible; set a host-visible tensor"
        )
    return values_of(tensor)


def _count(rows: Mapping[str, Array]) -> int:
    """Return the number of tokens.

    Raises:
        TensorError: the inputs have different numbers of rows.
    """
    lengths = {name: len(values) for name, values in rows.items()}
    if len({*lengths.values()}) != 1:
        listed = ", ".join(f"{name!r} has {length}" for name, length in lengths.items())
        raise TensorError(f"inputs with a row per token differ in rows: {listed}")
    return next(iter(lengths.values()))


def _sampled(indices: Array, tokens: int) -> Array:
    """Return the checked indices of sampled tokens.

    Raises:
        TensorError: an index is out of range.
    """
    if indices.size and not 0 <= indices.min() <= indices.max() < tokens:
        raise TensorError(f"{SAMPLED!r} has an index outside of the {tokens} tokens")
    return indices
