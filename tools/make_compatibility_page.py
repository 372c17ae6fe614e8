"""Write the names and differences of docs/openvino-genai-compatibility.md, from both packages.

    .venv/bin/python tools/make_compatibility_page.py [--check]

The part of the page after ``## Names`` is replaced; what precedes it is written by hand. The script
fails if a difference has no reason in ``compatibility/reasons.py``, or a reason no difference; with
--check, which writes nothing, also if the page is another one. It needs openvino-genai 2026.4.1.
"""

from __future__ import annotations

import argparse
import sys
from fnmatch import fnmatchcase
from pathlib import Path

from compatibility.differences import Difference, differences
from compatibility.forms import functions
from compatibility.pairs import PACKAGES, pairs, public
from compatibility.reasons import REASONS

PAGE = Path(__file__).resolve().parents[1] / "docs" / "openvino-genai-compatibility.md"
HEADING = "## Names\n"
TEXT = """
`tools/make_compatibility_page.py` writes this part. It compares names, members, values of new
objects, bases, operations, parameters of calls with their order and defaults, and exceptions of
wrong calls.

Of the {all_names} names of openvino_genai, {names} exist here. With the classes of results, {pairs}
classes have {members} members and {forms} forms of calls, all as there, but for these:

| name | there | here | reason |
|---|---|---|---|
"""


def matches(found: list[Difference], patterns: tuple[str, ...]) -> list[Difference]:
    """Return the differences whose names match a pattern."""
    return [each for each in found if any(fnmatchcase(each.path, one) for one in patterns)]


def faults(found: list[Difference]) -> list[str]:
    """Return differences without a reason, and patterns of reasons without a difference."""
    explained = {each for patterns in REASONS for each in matches(found, patterns)}
    missing = [
        f"{each.path}: {each.there!r} there, {each.here!r} here"
        for each in found
        if each not in explained
    ]
    unused = [one for patterns in REASONS for one in patterns if not matches(found, (one,))]
    return [
        *(f"no reason: {each}" for each in missing),
        *(f"no difference: {one}" for one in unused),
    ]


def section(found: list[Difference]) -> str:
    """Return the part of the page that the packages decide."""
    there, here = PACKAGES
    named = public(there)
    text = TEXT.format(
        names=sum(hasattr(here, name) for name in named),
        all_names=len(named),
        pairs=len(pairs()),
        members=sum(len(public(pair.there)) for pair in pairs()),
        forms=sum(len(function.forms) for function in functions()),
    )
    return text + "".join(
        row(patterns, matches(found, patterns), reason) for patterns, reason in REASONS.items()
    )


def row(patterns: tuple[str, ...], found: list[Difference], reason: str) -> str:
    """Return the row of a reason."""
    names = ", ".join(f"`{one}`" for one in patterns)
    values = (
        dict.fromkeys(values) for values in ([d.there for d in found], [d.here for d in found])
    )
    return f"| {names} | {' | '.join(', '.join(each) for each in values)} | {reason} |\n"


def main() -> int:
    """Write the page, or check it."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--check", action="store_true", help="write nothing")
    check = options.parse_args().check
    found = differences()
    wrong = faults(found)
    before = PAGE.read_text()
    page = before.partition(HEADING)[0] + HEADING + section(found)
    if check and page != before:
        wrong.append(f"{PAGE.name} is out of date; run tools/make_compatibility_page.py")
    elif not check:
        PAGE.write_text(page)
    print(*wrong, sep="\n", end="\n" * bool(wrong), file=sys.stderr)
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
