"""The check of words in docstrings and comments, and the glossary that it reads."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]

ASKED = (
    "CMX",
    "DPU",
    "SHAVE",
    "invariant, variant (DPU)",
    "variant (generate)",
    "prefill",
    "blob",
    "host-parsed inference (HPI)",
    "JIT relocation",
    "bank, weights bank",
    "head (attention)",
    "head (LM head)",
    "trait",
    "kind",
    "part",
    "tile (hardware)",
    "tile (of an op)",
)


@pytest.fixture(scope="module")
def tool(load_module: Callable[[Path], Any]) -> Any:
    return load_module(ROOT / "tools" / "check_words.py")


@pytest.fixture(scope="module")
def find(tool: Any) -> Callable[[str], list[str]]:
    """A function that returns the messages about a source."""
    replaced = tool.replaced_words((ROOT / "docs" / "glossary.md").read_text())
    return lambda source: [message for _, message in tool.findings(source, replaced)]


@pytest.mark.parametrize("term", ASKED)
def test_the_glossary_defines_the_terms_that_a_newcomer_asks_for(term: str) -> None:
    row = re.search(rf"^\| {re.escape(term)} \| .+\. \|$", _glossary(), re.MULTILINE)
    assert row is not None


def test_terms_of_the_glossary_are_unique() -> None:
    terms = re.findall(r"^\| ([^|]+) \| .+\. \|$", _glossary(), re.MULTILINE)
    assert len(terms) > 50
    assert len(set(terms)) == len(terms)


@pytest.mark.parametrize(
    "docstring", ["What is left.", "Whether it fits.", "Of two heads.", "As many as fit."]
)
def test_a_docstring_that_opens_with_a_clause_is_found(find: Any, docstring: str) -> None:
    (message,) = find(f'def f():\n    """{docstring}"""\n')
    assert "opens with" in message


def test_the_docstring_of_an_attribute_is_checked(find: Any) -> None:
    (message,) = find('class C:\n    size: int\n    """How large it is."""\n')
    assert "opens with 'How'" in message


@pytest.mark.parametrize("docstring", ["Whatever-typed values.", "Information.", "Return a head."])
def test_other_openings_pass(find: Any, docstring: str) -> None:
    assert find(f'class C:\n    """{docstring}"""\n') == []


@pytest.mark.parametrize("source", ["x = 1  # matrix products\n", '"""Matrix products."""\n'])
def test_a_replaced_word_is_found_with_the_terms_of_the_field(find: Any, source: str) -> None:
    (message,) = find(source)
    assert "matmuls" in message


@pytest.mark.parametrize("source", ["angles = 1\n", '"""Values of ``angles``."""\n'])
def test_names_of_code_are_not_words(find: Any, source: str) -> None:
    assert find(source) == []


def _glossary() -> str:
    return (ROOT / "docs" / "glossary.md").read_text()
