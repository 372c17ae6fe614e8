"""Variations of the demo corpus's questions, as other people might type them."""

from __future__ import annotations

import random
import re

OPENINGS = (
    "please tell me: ",
    "can you tell me ",
    "could you explain: ",
    "I would like to know, ",
    "hi, ",
    "hello, ",
    "quick question: ",
    "so, ",
    "well, ",
    "I wonder: ",
    "please, ",
    "ok, ",
    "tell me ",
    "and ",
)
CLOSINGS = (
    " please",
    ", please?",
    " in short",
    "??",
    "!",
    " thanks",
    " exactly?",
    " here?",
    " then?",
)

# Interchangeable phrasings of everyday words, by group; multi-word phrasings come first.
SYNONYMS = (
    (
        "what is meant by",
        "what is",
        "what's",
        "explain",
        "describe",
        "define",
        "what does it mean:",
    ),
    ("tell me about", "what about", "explain", "describe"),
    ("how does", "in what way does", "explain how does"),
    ("how do i", "how can i", "what must i do to", "how to", "how would i", "how does one"),
    ("why does", "why would", "for what reason does", "how come"),
    ("why is", "why are", "for what reason is"),
    ("what does", "what would", "what will"),
    ("what happens", "what goes on", "what takes place"),
    ("what is the difference between", "how do they differ:", "compare"),
    ("purpose", "use", "point", "role", "job"),
    ("good for", "useful for", "used for", "there for", "needed for"),
    ("large", "big", "long"),
    ("small", "little", "short"),
    ("need", "require"),
    ("use", "employ"),
    ("show", "display", "print"),
    ("see", "look at", "view"),
    ("choose", "select", "pick"),
    ("many", "several"),
    ("kind of", "sort of", "type of"),
    ("mean", "stand for", "signify"),
    ("set", "change", "configure"),
    ("begin", "start"),
    ("stop", "end", "finish"),
    ("wrong", "broken", "bad"),
    ("run", "execute"),
    ("fast", "quick"),
    ("slow", "sluggish"),
    ("make", "create", "build"),
    ("happens to", "becomes of"),
    ("model", "network"),
    ("program", "software"),
    ("the", "a", "this"),
)
_FILLERS_TEXT = """a an and are be by can do does for from give have how i in is it its me my of
on or tell that the there this to what when where which who why with you your"""
FILLERS = frozenset(_FILLERS_TEXT.split())
FRAMES = ("{}", "{}?", "what about {}?", "tell me about {}", "explain {}", "{} meaning", "hi: {}")


def keywords(questions: list[str], answer: str, draw: random.Random) -> str:
    """Return a question of a few words from the pair's phrasings and, sometimes, its answer.

    Such questions teach which words point to which answer, independent of their context.
    """
    words: list[str] = []
    for question in draw.sample(questions, min(2, len(questions))):
        words += _content(question)
    if draw.random() < 0.4:
        told = _content(answer)
        words += draw.sample(told, min(2, len(told)))
    chosen = list(dict.fromkeys(words))
    draw.shuffle(chosen)
    chosen = chosen[: draw.randint(2, 5)]
    return draw.choice(FRAMES).format(" ".join(chosen))


_DEFINITION = re.compile(
    r"(?:what is|what are|define) (?:an? |the )?([^?]{2,40})\??", re.IGNORECASE
)
DEFINITIONS = (
    "{}",
    "{}?",
    "What is {}?",
    "What's {}?",
    "What does {} mean?",
    "What does {} stand for?",
    "Define {}",
    "Explain {}",
    "Describe {}",
    "{} meaning",
    "{} definition",
    "Tell me about {}",
    "What is meant by {}?",
    "What do you mean by {}?",
    "Can you explain {}?",
    "Please explain what {} is",
    "I don't know what {} is",
    "What is {} in simple words?",
    "Explain {} to me",
)


def definition(questions: list[str], draw: random.Random) -> str | None:
    """Return a question for a definition in a usual form, if one of the phrasings asks for one."""
    subjects = [found[1] for q in questions if (found := _DEFINITION.fullmatch(q))]
    short = [subject for subject in subjects if len(subject.split()) <= 3]
    if not short:
        return None
    subject = draw.choice(short)
    kind = draw.random()
    subject = subject.lower() if kind < 0.4 else subject.upper() if kind < 0.5 else subject
    return draw.choice(DEFINITIONS).format(subject)


def splice(questions: list[str], draw: random.Random) -> str:
    """Join the beginning of one phrasing and the end of another."""
    first, second = (draw.choice(questions).split() for _ in range(2))
    return " ".join(first[: (len(first) + 1) // 2] + second[len(second) // 2 :])


def _content(text: str) -> list[str]:
    """Return the words that carry meaning."""
    words = (word.strip("?.!,;:()\"'") for word in text.split())
    return [word for word in words if word and word.lower() not in FILLERS]


def vary(question: str, draw: random.Random) -> str:
    """Return a variation; sometimes the question itself."""
    if draw.random() < 0.6:
        question = _replace_synonyms(question, draw)
    if draw.random() < 0.35:
        question = _drop_words(question, draw)
    if draw.random() < 0.2:
        question = draw.choice(OPENINGS) + question[:1].lower() + question[1:]
    if draw.random() < 0.15:
        question = question.rstrip("?.! ") + draw.choice(CLOSINGS)
    if draw.random() < 0.25:
        question = _mistype(question, draw)
    if draw.random() < 0.35:
        question = question.lower()
    if draw.random() < 0.3:
        question = question.rstrip("?.! ")
    return question.strip() or "?"


def _replace_synonyms(question: str, draw: random.Random) -> str:
    for group in SYNONYMS:
        for word in group:
            found = re.search(rf"\b{re.escape(word)}\b", question, re.IGNORECASE)
            if found and draw.random() < 0.5:
                other = draw.choice(group)
                question = question[: found.start()] + other + question[found.end() :]
                break
    return question[:1].upper() + question[1:]


def _drop_words(question: str, draw: random.Random) -> str:
    """Drop small words often, others rarely."""
    words = question.split()
    if len(words) < 4:
        return question
    kept = [w for w in words if draw.random() > (0.35 if w.lower() in FILLERS else 0.07)]
    return " ".join(kept or words)


def _mistype(question: str, draw: random.Random) -> str:
    """Swap, drop or double one letter."""
    if len(question) < 6:
        return question
    at = draw.randrange(1, len(question) - 1)
    return draw.choice(
        (
            question[:at] + question[at + 1] + question[at] + question[at + 2 :],
            question[:at] + question[at + 1 :],
            question[:at] + question[at] + question[at:],
        )
    )
