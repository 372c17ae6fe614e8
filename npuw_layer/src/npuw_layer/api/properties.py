"""Properties of compiled models: options as set, and facts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from typing import Any

from npuw_layer.errors import OptionError
from npuw_layer.options import NAMES, Options, nearest

SUPPORTED_PROPERTIES = "SUPPORTED_PROPERTIES"
LOADED_FROM_CACHE = "LOADED_FROM_CACHE"
EXECUTION_DEVICES = "EXECUTION_DEVICES"
CONTINUOUS_PREFILL_SUPPORTED = "NPUW_LLM_CONTINUOUS_PREFILL_SUPPORTED"

Facts = Mapping[str, Callable[[], Any]]
"""Functions that return properties other than options, by name."""


def read_property(name: str, options: Options, facts: Facts) -> Any:
    """Return a property by OpenVINO's name.

    Args:
        name: name of an option or a fact; or SUPPORTED_PROPERTIES, a dict of all names, each with
            "RO".
        options: options of the compilation.
        facts: all other properties.

    Raises:
        OptionError: no such property exists.
    """
    known = (SUPPORTED_PROPERTIES, *facts, *NAMES)
    if name == SUPPORTED_PROPERTIES:
        return dict.fromkeys(known, "RO")
    if name in facts:
        return facts[name]()
    if name not in NAMES:
        near = nearest(str(name), known)
        hint = f"did you mean {near}?" if near else f"{SUPPORTED_PROPERTIES} lists all"
        raise OptionError(f"unknown property {name!r}; {hint}")
    if NAMES[name] == "encryption":  # functions may hold objects that cannot be copied
        return options.encryption
    return deepcopy(getattr(options, NAMES[name]))
