"""Which of a model's variables are states of fixed size: the exporter says so by their names.

E.g. ``cache_params.past.conv.0cache_params.present.conv.0``: what is read, and what is assigned.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from npuw_layer.backends.protocols import READ_PREFIX, TensorInfo

_STATE = re.compile(r"cache_params\.past\.(?:conv|ssm)\.\d+(?:cache_params\.present\..*)?")


def is_linear_cache(variable: str) -> bool:
    """Whether a variable is such a state, by its id."""
    return _STATE.fullmatch(variable) is not None


def is_convolution(variable: str) -> bool:
    """Whether such a state is one of a short convolution."""
    return ".past.conv." in variable


def linear_inputs(inputs: Iterable[TensorInfo]) -> list[TensorInfo]:
    """The inputs of a static model that read one."""
    return [
        info
        for info in inputs
        if info.name.startswith(READ_PREFIX)
        and is_linear_cache(info.name.removeprefix(READ_PREFIX))
    ]
