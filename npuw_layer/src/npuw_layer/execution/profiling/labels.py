"""Programs labelled with their submodel while they run."""

from __future__ import annotations

from functools import partial

from npuw_layer.backends.protocols import LoadedModel, Memory, Program
from npuw_layer.backends.recording import within
from npuw_layer.options import Options


def labelled(model: LoadedModel, name: str, options: Options) -> LoadedModel:
    """Label the programs of a static model, if PERF_COUNT requests their times.

    Submodels of models that use NPUW are named subgraph0, subgraph1 … as in NPUW.

    Args:
        model: a static model, partitioned or not.
        name: the static model's name, if it is one of several; else "".
        options: PERF_COUNT, and whether the model uses NPUW.
    """
    if not options.perf_count:
        return model
    # Imported here: without profiling, its modules are not loaded.
    from npuw_layer.execution.decorator import ModelDecorator
    from npuw_layer.execution.partition.model import LoadedParts

    if isinstance(model, LoadedParts):
        model = model.around(lambda number, program: LabelledProgram(program, _subgraph(number)))
    elif not name and options.use_npuw:
        name = _subgraph(0)
    return ModelDecorator(model, partial(LabelledProgram, label=name)) if name else model


def _subgraph(number: int) -> str:
    return f"subgraph{number}"


class LabelledProgram:
    """A program with a label; satisfies ``protocols.Program``."""

    def __init__(self, program: Program, label: str) -> None:
        self._program = program
        self._label = label

    def bind(self, name: str, memory: Memory, offset: int) -> None:
        """Bind an input or output to memory; see ``protocols.Program``."""
        self._program.bind(name, memory, offset)

    def prepare(self) -> None:
        """Do the remaining preparations of the first run."""
        self._program.prepare()

    def run(self) -> None:
        """Execute once; errors as ``protocols.Program.run``."""
        with within(self._label):
            self._program.run()
