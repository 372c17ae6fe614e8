"""Runs what a step has chosen: a piece of a prompt, and a token of each of some conversations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from npuw_layer.batching.conversation import Submission, infer, piece
from npuw_layer.batching.schedule import fitting
from npuw_layer.batching.slots import SlotModel, SlotToken
from npuw_layer.errors import NpuwError
from npuw_layer.llm.compiled import CompiledLLM
from npuw_layer.llm.infer_request import InferRequest
from npuw_layer.ports import Array

Speaker = tuple[InferRequest, Submission]
"""Where a conversation's caches are, and what it has to say."""

Outcome = Array | NpuwError
"""Logits f32 [V], which the next run may overwrite, or why there are none."""


@dataclass(frozen=True, slots=True)
class Generated:
    """What became of each one's token, and the slots and positions of the model that ran.

    Both are 0 if none did; positions are also 0 if conversations ran one by one.
    """

    outcomes: Sequence[Outcome] = ()
    slots: int = 0
    capacity: int = 0


class Runner:
    """The models for several conversations, each made when it is first needed.

    Args:
        compiled: the static models.
    """

    def __init__(self, compiled: CompiledLLM) -> None:
        self._compiled = compiled
        self._models: dict[tuple[int, int], SlotModel] = {}
        self.sizes = sorted({1, *compiled.slots})
        """For how many conversations at once there are models, ascending."""

    def read(self, speaker: Speaker) -> tuple[int, Outcome]:
        """Read the next piece of a prompt; give its tokens and the last one's logits."""
        place, submission = speaker
        count = piece(submission, self._compiled.lengths)
        return count, _tried(lambda: infer(place, submission, count))

    def generate(self, everyone: Sequence[Speaker]) -> Generated:
        """Run a token of each, at most as many as the largest model takes.

        Who is full runs alone, and is told so there, or whatever is done about it happens.
        """
        if not everyone:
            return Generated()
        room = self._compiled.capacities[-1] - 1
        together = [each for each in everyone if each[1].position < room]
        slots = fitting(self.sizes, len(together)) or self.sizes[-1]
        if slots == 1:
            return Generated([_alone(each) for each in everyone], 1)
        capacity = fitting(
            self._compiled.capacities, max(each.position for _, each in together) + 1
        )
        assert capacity is not None  # who is full is not among them
        found = iter(self._run(together, slots, capacity))
        outcomes = [next(found) if each in together else _alone(each) for each in everyone]
        return Generated(outcomes, slots, capacity)

    def free(self) -> None:
        """Give the memory back."""
        for model in self._models.values():
            model.free()
        self._models.clear()

    def _run(self, speakers: Sequence[Speaker], slots: int, capacity: int) -> list[Outcome]:
        tokens: list[SlotToken] = []
        for place, submission in speakers:
            place.cache.truncate(submission.position)
            token = int(submission.ids[submission.read])
            tokens.append(SlotToken(place.cache, token, submission.position))
        try:
            return [*self._model(slots, capacity, speakers[0][0]).run(tokens)]
        except NpuwError as error:
            return [error] * len(speakers)

    def _model(self, slots: int, capacity: int, like: InferRequest) -> SlotModel:
        key = slots, capacity
        if key not in self._models:
            compiled = self._compiled
            loaded = compiled.slots[slots][compiled.capacities.index(capacity)]
            self._models[key] = SlotModel(compiled.device, loaded, compiled.bank, like.cache)
        return self._models[key]


def _alone(speaker: Speaker) -> Outcome:
    """Run a token of one conversation."""
    return _tried(lambda: infer(*speaker, 1))


def _tried(compute: Callable[[], Array]) -> Outcome:
    try:
        return compute()
    except NpuwError as error:
        return error
