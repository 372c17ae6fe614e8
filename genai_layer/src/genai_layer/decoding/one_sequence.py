"""Greedy decoding, or sampling of one text: infer, sample, decode, check for the end."""

from __future__ import annotations

from genai_layer.decoding.generated_sequence import GeneratedSequence
from genai_layer.decoding.reads import Decoding, Read, Task
from genai_layer.decoding.stopwatch import Stopwatch
from genai_layer.sampling.processors import TokenHistory


def generate_one(task: Task) -> Decoding:
    """Generate one text, and pass it to the sink as it grows."""
    sequence, sampler = task.new_sequence(), task.new_sampler()
    history = TokenHistory(task.prompt, sequence.tokens)
    echo(task, sequence)
    new, past = task.prompt, 0
    prepare = None if task.constraint is None else sampler.prepare
    while not sequence.ended:
        logits = (yield Read([new], past, meanwhile=prepare))[0, -1]
        past += len(new)
        watch = Stopwatch()
        token = sampler.next_token(logits, history)
        task.raw.sampling_durations.append(watch.microseconds())
        task.times.note()
        text = sequence.add(token, sampler.score, sampler.alternatives)
        sequence.heed(task.sink.write(token, text))
        new = [token]
    task.sink.end(sequence.flush())
    task.finish([sequence])
    return [sequence]


def echo(task: Task, sequence: GeneratedSequence) -> None:
    """Begin a text with the prompt, if the parameters request it."""
    if task.config.echo:
        for token in task.prompt:
            task.sink.write(token, sequence.echo(token))
