"""Names of variables that are states of fixed size.

E.g. ``cache_params.past.conv.0cache_params.present.conv.0``: exporters join the names of the read
and the assigned tensor.
"""

from __future__ import annotations

import re

_STATE = re.compile(r"cache_params\.past\.(?:conv|ssm)\.\d+(?:cache_params\.present\..*)?")


def is_linear_cache(variable: str) -> bool:
    """Return whether a variable is a state of fixed size, by its id."""
    return _STATE.fullmatch(variable) is not None


def is_convolution(variable: str) -> bool:
    """Return whether a state of fixed size belongs to a short convolution."""
    return ".past.conv." in variable
