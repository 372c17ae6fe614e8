"""Which name somebody meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The most similar of some names, whatever the case, or None if none is similar."""
    by_case = {each.upper(): each for each in known}
    found = difflib.get_close_matches(name.upper(), by_case, 1)
    return by_case[found[0]] if found else None
