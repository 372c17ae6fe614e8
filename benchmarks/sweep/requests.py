"""Eight requests at once beside one."""

from __future__ import annotations

from sweep.figures import Table, beside_first
from sweep.subject import Subject

MANY, TOKENS, NEW = 8, 32, 32


def sweep(subject: Subject) -> Table:
    """Measure the ways in which several texts are requested at once."""
    rounds = range(subject.effort.rounds)
    drawn = subject.prompts(TOKENS, MANY * len(rounds))
    prompts = [drawn[MANY * at : MANY * (at + 1)] for at in rounds]
    one = [{"prompts": several[:1], "new": NEW} for several in prompts]
    all_of_them = [{"prompts": several, "new": NEW} for several in prompts]
    sequences = [{"prompt": several[0], "new": NEW, "count": MANY} for several in prompts]
    figures = [
        *subject.measure(["one request"], "requests", *one),
        *subject.measure(["eight requests"], "requests", *all_of_them),
        *subject.measure(["a list of eight prompts"], "listed", *all_of_them),
        *subject.measure(["num_return_sequences = 8"], "sequences", *sequences),
    ]
    return Table(
        "Requests at once",
        f"Time until all are complete, {TOKENS} prompt tokens and {NEW} new ones each: requests of "
        "a ContinuousBatchingPipeline, and an LLMPipeline with a scheduler_config. Neighbour: one "
        "request.",
        ("all complete",),
        beside_first(figures),
    )
