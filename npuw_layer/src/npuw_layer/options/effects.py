"""What options do, in the words that stand below each in its group.

pydantic would read them (``use_attribute_docstrings``), but while groups are made: a fifth of what
it takes to load them, at every start, for what few starts show.
"""

from __future__ import annotations

import ast
import inspect
from functools import cache
from itertools import pairwise
from textwrap import dedent

from npuw_layer.options.base import OptionGroup


@cache
def effects(group: type[OptionGroup]) -> dict[str, str]:
    """Give the text of each field of a group, as one line."""
    (parsed,) = ast.parse(dedent(inspect.getsource(group))).body
    found: dict[str, str] = {}
    for field, below in pairwise(parsed.body if isinstance(parsed, ast.ClassDef) else ()):
        match field, below:
            case (
                ast.AnnAssign(target=ast.Name(id=name)),
                ast.Expr(value=ast.Constant(value=str(text))),
            ):
                found[name] = " ".join(text.split())
            case _:
                pass
    return found
