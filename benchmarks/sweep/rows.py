"""Generate steps of 1 to 16 rows."""

from __future__ import annotations

import time

from bench_batching import measure

from npuw_layer import Core
from npuw_layer.batching import ContinuousBatching
from npuw_layer.kinds.llm.compiled_model import CompiledModel
from sweep.figures import Figure, Table, beside_previous
from sweep.subject import Subject

ROWS = (1, 2, 3, 4, 6, 8, 12, 16)
_PROMPT, _STEPS = 100, 16


def sweep(subject: Subject) -> Table:
    """Measure steps of generate models with as many slots as there are conversations."""
    options = {
        "NPUW_LLM_BATCH_SLOTS": ",".join(map(str, ROWS)),
        "NPUW_LLM_MAX_PROMPT_LEN": "128",
        "CACHE_DIR": str(subject.place.cache / "blobs"),
    }
    made = Core().compile_model(subject.folder, "NPU", options)
    assert isinstance(made, CompiledModel)  # static models have no batching
    engine = made.create_batching()
    rounds = range(subject.effort.rounds)
    figures = [
        Figure(f"{rows}", (min(_step_seconds(engine, rows) for _ in rounds),)) for rows in ROWS
    ]
    return Table(
        "Rows of a step",
        "Time of one generate step for as many conversations (`NPUW_LLM_BATCH_SLOTS`). Neighbour: "
        "the previous number of rows.",
        ("a step",),
        beside_previous(figures),
    )


def _step_seconds(engine: ContinuousBatching, rows: int) -> float:
    begin, end = measure(engine, time.perf_counter, rows, _PROMPT, _STEPS)
    return (end - begin) / _STEPS
