"""Draws the dialogues that the demo model trains on."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from demo_augment import definition, keywords, splice, vary
from demo_corpus import Pair
from tokenizers import Tokenizer

SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
END = SPECIAL.index("<|im_end|>")
SYSTEM = ("You are a helpful assistant.", "You answer questions about NPUs.", "Be brief.")
IGNORED = -100
"""The label of tokens that the model need not say."""

USUAL_LENGTH = 80
"""Tokens of one question and its answer, hardly ever more."""

QUESTIONS = (90, 8, 2)
"""How often a dialogue has one, two … questions, while the answers are learned."""

CONVERSATIONS = (30, 10, 10, 10, 10, 10, 10, 10)
"""The same, while keeping to the last question of a long conversation is learned."""

CUTTING = 0.06
"""The chance of a cut before each letter, in questions that are cut differently."""


@dataclass
class Batch:
    """Dialogues side by side, padded to the longest."""

    ids: torch.Tensor
    """[size, length]."""
    labels: torch.Tensor
    """[size, length]: what the model has to say itself, else IGNORED."""
    turns: torch.Tensor
    """[answers, 3]: the dialogue, the last position before the answer, the number of the pair."""


@dataclass
class _Dialogue:
    ids: list[int]
    labels: list[int]
    turns: list[tuple[int, int]]


class Dialogues:
    """Draws batches of dialogues.

    Args:
        tokenizer: of the model.
        pairs: only their trained phrasings are used.
        seed: equal seeds draw equal batches.
        turns: how often a dialogue has one, two … questions.
    """

    def __init__(
        self, tokenizer: Tokenizer, pairs: list[Pair], seed: int, turns: tuple[int, ...]
    ) -> None:
        self._tokenizer = tokenizer
        self._pairs = pairs
        self._draw = random.Random(seed)
        self._turns = turns

    def batches(self, size: int) -> Iterator[Batch]:
        """Endless batches, dialogues of like length together, so that little is padded."""
        while True:
            drawn = sorted((self._dialogue() for _ in range(size * 16)), key=lambda d: len(d.ids))
            groups = _groups(drawn, size)
            self._draw.shuffle(groups)
            for group in groups:
                yield Batch(
                    _padded([dialogue.ids for dialogue in group], 0),
                    _padded([dialogue.labels for dialogue in group], IGNORED),
                    torch.tensor([(n, *turn) for n, d in enumerate(group) for turn in d.turns]),
                )

    def _dialogue(self) -> _Dialogue:
        dialogue = _Dialogue([], [], [])
        if self._draw.random() < 0.08:
            self._say("system", self._draw.choice(SYSTEM), dialogue)
        for _ in range(self._draw.choices(range(1, len(self._turns) + 1), self._turns)[0]):
            number = self._draw.randrange(len(self._pairs))
            pair = self._pairs[number]
            self._say("user", self._question(pair), dialogue)
            begin = self._say("assistant", pair.answer, dialogue)
            dialogue.turns.append((begin - 1, number))
        return dialogue

    def _question(self, pair: Pair) -> str:
        """A phrasing of the pair's question: as written, varied, or made of its words."""
        trained, kind = pair.trained(), self._draw.random()
        if kind < 0.25:
            return self._draw.choice(trained)
        if kind < 0.4:
            defined = definition(trained, self._draw)
            return defined or vary(self._draw.choice(trained), self._draw)
        if kind < 0.73:
            return vary(self._draw.choice(trained), self._draw)
        if kind < 0.81:
            return vary(splice(trained, self._draw), self._draw)
        return keywords(trained, pair.answer, self._draw)

    def _say(self, role: str, text: str, dialogue: _Dialogue) -> int:
        """Append one turn; tell where its words begin.

        The assistant's words and its end-of-turn token are to be learned.
        """
        opening = self._tokenizer.encode(f"<|im_start|>{role}\n").ids
        cutting = role == "user" and self._draw.random() < 0.4
        words = [*(self._cut(text) if cutting else self._tokenizer.encode(text).ids), END]
        closing = self._tokenizer.encode("\n").ids
        begin = len(dialogue.ids) + len(opening)
        dialogue.ids.extend(opening + words + closing)
        learned = words if role == "assistant" else [IGNORED] * len(words)
        dialogue.labels.extend([IGNORED] * len(opening) + learned + [IGNORED] * len(closing))
        return begin

    def _cut(self, text: str) -> list[int]:
        """Encode with words cut differently each time: the model learns words, not their pieces.

        The dropout of tokenizers' BPE does the same, but draws from a generator without a seed.
        """
        cuts = [at for at in range(1, len(text)) if self._draw.random() < CUTTING]
        edges = zip([0, *cuts], [*cuts, len(text)], strict=True)
        pieces = [text[begin:end] for begin, end in edges]
        return [token for each in self._tokenizer.encode_batch(pieces) for token in each.ids]


def _groups(drawn: list[_Dialogue], size: int) -> list[list[_Dialogue]]:
    """Neighbours together: `size` dialogues, or as many as have the tokens of `size` usual ones.

    Without that bound the few batches of long dialogues would take half of the training's time.
    """
    groups: list[list[_Dialogue]] = [[]]
    for dialogue in drawn:
        tokens = len(dialogue.ids) * (len(groups[-1]) + 1)
        full = len(groups[-1]) == size or tokens > size * USUAL_LENGTH
        if full and groups[-1]:  # a dialogue beyond the bound is a batch by itself
            groups.append([])
        groups[-1].append(dialogue)
    return groups


def _padded(rows: list[list[int]], filler: int) -> torch.Tensor:
    length = max(map(len, rows))
    return torch.tensor([row + [filler] * (length - len(row)) for row in rows])
