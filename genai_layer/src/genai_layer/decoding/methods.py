"""Choice of the decoding method."""

from __future__ import annotations

from genai_layer.decoding.beams import search_beams
from genai_layer.decoding.drafted import generate_drafted
from genai_layer.decoding.generated_sequence import GeneratedSequence
from genai_layer.decoding.one_sequence import generate_one
from genai_layer.decoding.reads import Decoding, complete
from genai_layer.decoding.several_sequences import generate_several
from genai_layer.decoding.task import Task


def decode(task: Task) -> list[GeneratedSequence]:
    """Continue a prompt by the method that its parameters select.

    Returns:
        ``num_return_sequences`` texts, highest score first.

    Raises:
        RuntimeFailure: the runtime failed.
    """
    task.model.reset()
    return complete(start(task), task.model)


def start(task: Task) -> Decoding:
    """Begin to continue a prompt by the method that its parameters select."""
    if task.config.is_beam_search():
        return search_beams(task)
    if task.config.num_return_sequences > 1:
        return generate_several(task)
    if task.drafter is not None:
        return generate_drafted(task, task.drafter)
    return generate_one(task)
