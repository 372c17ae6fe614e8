"""Reader of tools/demo_corpus, which also selects the phrasings held back from training.

A corpus file is a list of pairs, an answer first and then the questions it answers::

    A: A tokenizer turns text into token IDs and token IDs back into text.
    Q: What is a tokenizer?
    Q: What does a tokenizer do?

Lines that start with ``#`` are comments. The module needs only Python, so that tests can import it.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from pathlib import Path

FOLDER = Path(__file__).resolve().parent / "demo_corpus"
HELD_BACK = 0.1
ALWAYS_TRAINED = "What is an NPU?"  # the question of `make demo`


@dataclass
class Pair:
    """An answer, and phrasings of its question."""

    answer: str
    questions: list[str] = field(default_factory=list[str])

    def held_back(self) -> list[str]:
        """Return the phrasings that are never trained on: at most half of a pair's."""
        chosen = [q for q in self.questions if q != ALWAYS_TRAINED and _draw(q) < HELD_BACK]
        return chosen[: len(self.questions) // 2]

    def trained(self) -> list[str]:
        """Return the phrasings that are trained on."""
        held = set(self.held_back())
        return [question for question in self.questions if question not in held]


def read(folder: Path = FOLDER) -> list[Pair]:
    """Read all pairs, in the order of file names and lines.

    Raises:
        ValueError: a line is neither answer, question, comment nor blank, or a phrasing occurs
            twice; the message names file and line.
    """
    pairs: list[Pair] = []
    seen: set[str] = set()
    for path in sorted(folder.glob("*.txt")):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            kind, text = line[:2], line[2:].strip()
            if not line.strip() or line.startswith("#"):
                continue
            if kind == "A:":
                pairs.append(Pair(text))
            elif kind == "Q:" and pairs and text.casefold() not in seen:
                seen.add(text.casefold())
                pairs[-1].questions.append(text)
            else:
                raise ValueError(f"{path.name}:{number}: not 'A: …', or a new 'Q: …': {line!r}")
    return pairs


def f1(answer: str, reference: str) -> float:
    """Return the word overlap of two answers, 0 to 1 (token-overlap F1, as in SQuAD)."""
    said, meant = _words(answer), _words(reference)
    left = list(meant)
    common = 0
    for word in said:
        if word in left:
            left.remove(word)
            common += 1
    return 2 * common / (len(said) + len(meant)) if common else 0.0


def _words(text: str) -> list[str]:
    kept = (c if c.isalnum() or c == "_" else " " for c in text.casefold())
    return "".join(kept).split()


def _draw(question: str) -> float:
    """Return a number in [0, 1) from the phrasing alone, so new pairs do not change others."""
    digest = hashlib.sha256(question.encode()).digest()
    return int.from_bytes(digest[:8], "little") / 2**64
