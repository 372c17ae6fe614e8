"""Check the words of docstrings and comments; ``make check`` runs this.

Two rules of CONTRIBUTING.md, as far as a machine can see them:

- A docstring opens with a noun phrase or an imperative, never with a clause ("What is left").
- Words in the last table of ``docs/glossary.md`` are not used; the table names the field's terms.
"""

from __future__ import annotations

import ast
import io
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
GLOSSARY = ROOT / "docs" / "glossary.md"

_CLAUSE = re.compile(
    r"(What|Which|Who|Whose|How|Where|Whether|When|Why|That|Those|These|This|There|It|Its|They"
    r"|Their|So|Of|As|With|In|To|For|If)\b"
)
_QUOTED = re.compile(r"``.*?``|`.*?`|\".*?\"", re.DOTALL)
"""Code and quotations, which are not our words."""


class Text(NamedTuple):
    """A docstring or comment, and the line that it begins at."""

    line: int
    words: str


def replaced_words(glossary: str) -> dict[str, str]:
    """Return the field's terms by the words that they replace, in lower case.

    Args:
        glossary: its last table has the words, separated by commas, and the terms.
    """
    table = glossary.rpartition("| not | but |")[2]
    rows = re.findall(r"^\| (?!-)([^|]+) \| ([^|]+) \|$", table, re.MULTILINE)
    return {word.strip(): terms for words, terms in rows for word in words.split(",")}


def docstrings(tree: ast.Module) -> Iterator[Text]:
    """Yield the docstrings of a module, its classes, functions and attributes."""
    for node in ast.walk(tree):
        match node:
            case ast.Expr(ast.Constant(str(words))):
                yield Text(node.lineno, words)
            case _:
                pass


def comments(source: str) -> Iterator[Text]:
    """Yield the comments of a source."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield Text(token.start[0], token.string)


def findings(source: str, replaced: dict[str, str]) -> Iterator[Text]:
    """Yield a message for each breach of the rules in a source."""
    texts = list(docstrings(ast.parse(source)))
    for line, words in texts:
        if opening := _CLAUSE.match(words):
            yield Text(line, f"the docstring opens with {opening[0]!r}; name the thing or the act")
    avoided = re.compile(rf"\b({'|'.join(map(re.escape, replaced))})\b", re.IGNORECASE)
    for line, words in [*texts, *comments(source)]:
        for word in avoided.findall(_QUOTED.sub("", words)):
            yield Text(line, f"{word!r}: the glossary's terms are: {replaced[word.lower()]}")


def main() -> int:
    """Print the findings in all Python files of the repository; return 1 if there are any."""
    replaced = replaced_words(GLOSSARY.read_text())
    listed = ["git", "ls-files", "*.py"]
    files = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True)
    lines = [
        f"{name}:{line}: {message}"
        for name in files.stdout.split()
        for line, message in findings((ROOT / name).read_text(), replaced)
    ]
    print("\n".join(lines) or "words: nothing found")
    return bool(lines)


if __name__ == "__main__":
    sys.exit(main())
