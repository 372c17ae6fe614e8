"""First token after prompts of 1 to 1,024 tokens, at default options."""

from __future__ import annotations

from sweep.figures import Table, beside_previous
from sweep.subject import PROMPT, Subject

LENGTHS = (1, 2, 8, 16, 32, 33, 64, 65, 128, 129, 256, 257, 300, 512, 513, 600, 768, 1000, PROMPT)


def sweep(subject: Subject) -> Table:
    """Measure each length."""
    figures = [
        figure
        for length in LENGTHS
        for figure in subject.measure(
            [f"{length:,}"],
            "first",
            *({"prompt": prompt} for prompt in subject.prompts(length, subject.effort.rounds)),
        )
    ]
    return Table(
        "Lengths of a prompt",
        "Time to the first token at default options. Neighbour: the previous length; compared is "
        "the time per token of the prompt, so a time that grows as the length has a ratio of 1.",
        ("first token",),
        beside_previous(figures, LENGTHS),
    )
