"""Citations, links and sources: each names a page and a heading that exist."""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TEXTS = subprocess.run(
    ["git", "ls-files", "*.py", "*.md", "*.toml", "Makefile"],
    cwd=ROOT,
    capture_output=True,
    text=True,
    check=True,
).stdout.split()
PAGES = [name for name in TEXTS if name.endswith(".md")]
REFERENCE = [name for name in PAGES if name.startswith("docs/reference/")]

_CITATION = re.compile(r"\b(docs/[\w/-]+\.md)(?:#([\w-]+))?")
_LINK = re.compile(r"\]\((?!https?:|mailto:)([^)#\s]*)(?:#([^)\s]+))?\)")
_FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


def read(name: str) -> str:
    return (ROOT / name).read_text()


@cache
def anchors(page: Path) -> list[str]:
    """The anchors that GitHub gives the headings of a page."""
    headings = _HEADING.findall(_FENCE.sub("", page.read_text()))
    return [re.sub(r"[^\w\- ]", "", each.lower()).replace(" ", "-") for each in headings]


def dangling(page: Path, anchor: str) -> bool:
    return not page.exists() or (bool(anchor) and anchor not in anchors(page))


def test_every_citation_of_a_page_resolves() -> None:
    """``docs/reference/elf.md#relocations`` in a source, a test, a tool or a document."""
    missing = [
        f"{name}: {page}#{anchor}"
        for name in TEXTS
        for page, anchor in _CITATION.findall(read(name))
        if dangling(ROOT / page, anchor)
    ]
    assert missing == []


@pytest.mark.parametrize("name", PAGES)
def test_every_relative_link_of_a_page_resolves(name: str) -> None:
    page = ROOT / name
    missing = [
        f"{target}#{anchor}"
        for target, anchor in _LINK.findall(_FENCE.sub("", read(name)))
        if dangling((page.parent / target) if target else page, anchor)
    ]
    assert missing == []


@pytest.mark.parametrize("name", REFERENCE)
def test_every_section_of_the_reference_names_a_source(name: str) -> None:
    _, *sections = re.split(r"^#{2,} ", read(name), flags=re.MULTILINE)
    without = [section.partition("\n")[0] for section in sections if "\nSource: " not in section]
    assert sections
    assert without == []


@pytest.mark.parametrize("name", REFERENCE)
def test_no_heading_of_the_reference_occurs_twice(name: str) -> None:
    """GitHub numbers the anchors of equal headings, so citations would depend on their order."""
    twice = [anchor for anchor, count in Counter(anchors(ROOT / name)).items() if count > 1]
    assert twice == []
