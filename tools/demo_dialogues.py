"""Random dialogues that the demo model is trained on."""

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
"""Label of tokens that are not learned."""

USUAL_LENGTH = 80
"""Usual maximum number of tokens in a question and its answer."""

QUESTIONS = (90, 8, 2)
"""Frequencies of dialogues with one, two … questions in the first course, which teaches answers."""

CONVERSATIONS = (30, 10, 10, 10, 10, 10, 10, 10)
"""Frequencies in the second course, which teaches to answer the last of many questions."""

CUTTING = 0.06
"""Probability of a cut before each letter, in questions that are tokenised differently."""


@dataclass
class Batch:
    """Dialogues of one batch, padded to the longest."""

    ids: torch.Tensor
    """[size, length]."""
    labels: torch.Tensor
    """[size, length]: tokens to learn, else IGNORED."""
    turns: torch.Tensor
    """[answers, 3]: dialogue, last position before the answer, number of the pair."""


@dataclass
class _Dialogue:
    ids: list[int]
    labels: list[int]
    turns: list[tuple[int, int]]


class Dialogues:
    """Source of random batches of dialogues.

    Args:
        tokenizer: the model's tokenizer.
        pairs: the corpus; only trained phrasings are used.
        seed: equal seeds draw equal batches.
        turns: frequencies of dialogues with one, two … questions.
    """

    def __init__(
        self, tokenizer: Tokenizer, pairs: list[Pair], seed: int, turns: tuple[int, ...]
    ) -> None:
        self._tokenizer = tokenizer
        self._pairs = pairs
        self._draw = random.Random(seed)
        self._turns = turns

    def batches(self, size: int) -> Iterator[Batch]:
        """Yield endless batches; dialogues of similar length share a batch, to reduce padding."""
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
        """Return a phrasing of the pair's question: unchanged, varied, or composed of its words."""
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
        """Append one turn; return the position where its text begins.

        The assistant's text and its end-of-turn token are to be learned.
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
        """Encode text with random cuts in words, so the model learns words and not their tokens.

        The dropout of tokenizers' BPE has the same effect, but its generator has no seed.
        """
        cuts = [at for at in range(1, len(text)) if self._draw.random() < CUTTING]
        edges = zip([0, *cuts], [*cuts, len(text)], strict=True)
        pieces = [text[begin:end] for begin, end in edges]
        return [token for each in self._tokenizer.encode_batch(pieces) for token in each.ids]


def _groups(drawn: list[_Dialogue], size: int) -> list[list[_Dialogue]]:
    """Group neighbours: ``size`` dialogues, or fewer if their tokens exceed ``size`` usual ones.

    Without that bound the few batches of long dialogues would take half of the training time.
    """
    groups: list[list[_Dialogue]] = [[]]
    for dialogue in drawn:
        tokens = len(dialogue.ids) * (len(groups[-1]) + 1)
        full = len(groups[-1]) == size or tokens > size * USUAL_LENGTH
        if full and groups[-1]:  # a dialogue beyond the bound is a separate batch
            groups.append([])
        groups[-1].append(dialogue)
    return groups


def _padded(rows: list[list[int]], filler: int) -> torch.Tensor:
    length = max(map(len, rows))
    return torch.tensor([row + [filler] * (length - len(row)) for row in rows])
