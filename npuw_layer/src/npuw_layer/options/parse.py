"""From a configuration to options, with errors that say what would be right."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from npuw_layer.errors import OptionError
from npuw_layer.options.absent import ABSENT
from npuw_layer.options.describe import allowed
from npuw_layer.options.mechanisms import ALIKE
from npuw_layer.options.model import NAMES, Options
from npuw_layer.options.names import nearest
from npuw_layer.options.stages import CONFIGS, SETTABLE


def parse_options(config: Mapping[str, Any]) -> Options:
    """Check a configuration.

    Raises:
        OptionError: an option is unknown (the nearest name is suggested) or not here (the reason is
            given), a value is wrong (what is allowed is said), or options contradict one another.
    """
    if not isinstance(config, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance] (callers may err)
        raise OptionError(f"a configuration is a dict of options, not {config!r}")
    for name in config:
        if name in ABSENT:
            raise OptionError(f"{name} is not here: {ABSENT[name]}")
        if name not in NAMES:
            near = nearest(str(name), NAMES)
            hint = f"did you mean {near}?" if near else "`npuw options` lists all there are"
            raise OptionError(f"unknown option {name!r}; {hint}")
    try:
        options = Options.model_validate(dict(config))
    except ValidationError as error:
        raise OptionError(_explained(error.errors()[0], config)) from None
    for kind, name in CONFIGS.items():
        for prefix, given in zip(("", "++"), options.stage_maps(kind), strict=True):
            if given:
                _check_map(f"{prefix}{name}", given)
    return options


def _explained(error: ErrorDetails, config: Mapping[str, Any]) -> str:
    """What is wrong with which option."""
    reason = str(error.get("ctx", {}).get("error", "")) if error["type"] == "value_error" else ""
    if not error["loc"]:
        return reason
    name = str(error["loc"][0])
    field = Options.model_fields[NAMES[name]]
    return f"{name} = {config[name]!r}: {reason or f'must be {allowed(field)}'}"


def _check_map(name: str, given: Mapping[str, Any]) -> None:
    """Refuse what a stage cannot have of its own, and values that are wrong anywhere."""
    for inner in given:
        if inner in NAMES and inner not in (*SETTABLE, *ALIKE):
            raise OptionError(
                f"{name}: all stages have {inner} in common; one may have {', '.join(SETTABLE)}"
            )
    try:
        parse_options(given)
    except OptionError as error:
        raise OptionError(f"{name}: {error}") from None
