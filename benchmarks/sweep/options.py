"""Options of compiled models, one at a time, beside their defaults."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Generator, Iterable, Iterator
from contextlib import chdir, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from textwrap import shorten

from bench_npuw import tell

from npuw_layer import Core
from npuw_layer.errors import NpuwError
from npuw_layer.kinds.llm.compiled_model import CompiledModel
from npuw_layer.llm.request.infer_request import InferRequest
from sweep.figures import Figure, Table
from sweep.option_values import every_option
from sweep.subject import Effort, Subject

_STEPS = 8

_OF_THE_PROCESS = {"LOG_LEVEL"}
"""Options that the last compiled model sets for all: none can be measured in turns with another."""

_SLOW = 2.0
"""Seconds of a round from which one is enough."""


def sweep(subject: Subject) -> Table:
    """Measure every value beside the defaults; dumps and logs go to a folder that is removed."""
    folder = subject.folder.resolve()
    with TemporaryDirectory() as scratch, chdir(scratch), _logs_in(Path(scratch, "log")):
        figures = list(_figures(folder, subject.place.cache / "blobs", subject.effort))
    texts = sum(not option.values for option in every_option())
    base = ", ".join(f"{name}={value}" for name, value in subject.effort.options.items())
    return Table(
        "Options",
        f"First token after {subject.effort.prompt} tokens, and a token after it, with one option "
        f"changed; all others at their defaults{base and f', but {base}'}. Neighbour: the default, "
        f"measured in turns. Left out: {texts} options whose declarations have no other value "
        "(free text, lists, maps, functions), and those of the whole process "
        f"({', '.join(sorted(_OF_THE_PROCESS))}).",
        ("first token", "a token"),
        figures,
    )


def _figures(model: Path, cache: Path, effort: Effort) -> Iterator[Figure]:
    base = {**effort.options, "CACHE_DIR": str(cache)}
    default = _Reader(model, base, effort.prompt)
    yield Figure("defaults", default.shortest(effort.rounds))
    for option in every_option():
        for value in () if option.name in _OF_THE_PROCESS else option.values:
            yield _figure(f"{option.name}={value}", default, {**base, option.name: value}, effort)


def _figure(setting: str, default: _Reader, options: dict[str, str], effort: Effort) -> Figure:
    """Measure one setting, in turns with the defaults; a marked one again, unless it is slow."""
    try:
        changed = _Reader(default.model, options, effort.prompt)
        found: list[tuple[tuple[float, float], tuple[float, float]]] = []
        while True:
            began = time.perf_counter()
            found.append((changed.times(), default.times()))
            mine, theirs = map(_shortest, zip(*found, strict=True))
            figure = Figure(setting, mine, (mine[0] / theirs[0], mine[1] / theirs[1]))
            slow = time.perf_counter() - began > _SLOW
            if slow or len(found) >= effort.rounds * (effort.again if figure.marked else 1):
                return figure
    except NpuwError as error:
        reason = str(error).replace(f"{default.model.parent}{os.sep}", "")
        return Figure(setting, refused=shorten(reason, 160, placeholder=" …"))


class _Reader:
    """Request that reads one prompt again and again, opened and warm.

    Raises:
        NpuwError: the options are refused, or the model does not generate with them.
    """

    def __init__(self, model: Path, options: dict[str, str], prompt: int) -> None:
        self.model = model
        self._tokens = [5 + number % 900 for number in range(prompt)]
        made = Core().compile_model(model, "NPU", options)
        if not isinstance(made, CompiledModel):
            raise NpuwError(f"compiled as {type(made).__name__}, which generates no tokens")
        self._request: InferRequest = made.create_infer_request()
        self.times()

    def times(self) -> tuple[float, float]:
        """Return the seconds of the prompt, and of the shortest step after it."""
        self._request.reset_state()
        first = tell(self._request, self._tokens, 0)
        stored = len(self._tokens)
        return first, min(tell(self._request, [7], stored + step) for step in range(_STEPS))

    def shortest(self, rounds: int) -> tuple[float, float]:
        """Return the shortest times of some rounds."""
        return _shortest([self.times() for _ in range(rounds)])


def _shortest(times: Iterable[tuple[float, float]]) -> tuple[float, float]:
    firsts, steps = zip(*times, strict=True)
    return min(firsts), min(steps)


@contextmanager
def _logs_in(path: Path) -> Generator[None]:
    """Write what the stack logs to a file."""
    logger, handler = logging.getLogger("npuw_layer"), logging.FileHandler(path)
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        handler.close()
