"""Programs that say whose they are while they run."""

from __future__ import annotations

from functools import partial

from npuw_layer.backends.protocols import LoadedModel, Memory, Program
from npuw_layer.execution.profiling.recording import within
from npuw_layer.options import Options


def labelled(model: LoadedModel, name: str, options: Options) -> LoadedModel:
    """Let the programs of a static model say whose they are, if PERF_COUNT asks for their times.

    Submodels of what goes through NPUW are called subgraph0, subgraph1 … as there.

    Args:
        model: it may be one in parts.
        name: of the whole, if it is one of several.
        options: PERF_COUNT, and which way the model goes.
    """
    if not options.perf_count:
        return model
    # Imported here: who measures nothing loads nothing of it.
    from npuw_layer.execution.partition.model import LoadedParts
    from npuw_layer.execution.wrapped_model import with_programs

    if isinstance(model, LoadedParts):
        model = model.around(lambda number, program: LabelledProgram(program, _subgraph(number)))
    elif not name and options.use_npuw:
        name = _subgraph(0)
    return with_programs(model, partial(LabelledProgram, label=name)) if name else model


def _subgraph(number: int) -> str:
    return f"subgraph{number}"


class LabelledProgram:
    """A program that says whose it is; satisfies ``backends.protocols.Program``."""

    def __init__(self, program: Program, label: str) -> None:
        self._program = program
        self._label = label

    def bind(self, name: str, memory: Memory, offset: int) -> None:
        """Let an input or output lie in memory; see ``backends.protocols.Program``."""
        self._program.bind(name, memory, offset)

    def prepare(self) -> None:
        """Do now what else the first run would do."""
        self._program.prepare()

    def run(self) -> None:
        """Execute once; errors as ``backends.protocols.Program.run``."""
        with within(self._label):
            self._program.run()
