"""Parser of configurations, with errors that suggest corrections."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Self, cast

from pydantic import ValidationError, create_model, model_validator
from pydantic_core import ErrorDetails

from driver_layer.abi.platforms import Platform, platform_of
from driver_layer.errors import PlatformError
from npuw_layer.errors import OptionError
from npuw_layer.options.base import nearest
from npuw_layer.options.contradictions import CONTRADICTIONS, check_stage
from npuw_layer.options.describe import allowed
from npuw_layer.options.kinds import check_kinds
from npuw_layer.options.mechanisms import ABSENT
from npuw_layer.options.model import KIND_GROUPS, NAMES, OptionValues
from npuw_layer.options.stages import CONFIGS, StageKind, refusal


class Options(OptionValues):
    """All options of a compiled model, free of contradictions."""

    @model_validator(mode="after")
    def _check_all(self) -> Self:
        for check in CONTRADICTIONS:
            check(self)
        check_kinds(self, KIND_GROUPS)
        return self


_ALL = cast(type[Options], create_model("Options", __base__=(Options, *KIND_GROUPS)))
"""All options: the typed ones above, and those of kinds (``OptionValues.group``)."""


def parse_options(config: Mapping[str, Any]) -> Options:
    """Parse and check a configuration.

    Raises:
        OptionError: an option is unknown (with the nearest name) or unsupported (with the reason),
            a value is wrong (with the allowed values), or options contradict one another.
    """
    if not isinstance(config, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance] (callers may err)
        raise OptionError(f"{config!r} is not a configuration; pass a dict of options")
    check_names(config)
    try:
        options = _ALL.model_validate(dict(config))
    except ValidationError as error:
        raise OptionError(_explained(error.errors()[0], config)) from None
    try:
        platform = platform_of(options.platform)
    except PlatformError as error:
        raise OptionError(f"NPU_PLATFORM: {error}") from None
    for kind in CONFIGS:
        _check_stage(options, kind, platform)
    return options


def check_names(names: Iterable[str]) -> None:
    """Check that options exist; errors as ``parse_options``."""
    for name in names:
        if name in ABSENT:
            raise OptionError(f"{name} is not supported: {ABSENT[name]}")
        if name not in NAMES:
            near = nearest(str(name), NAMES)
            hint = f"did you mean {near}?" if near else "`npuw options` lists all options"
            raise OptionError(f"unknown option {name!r}; {hint}")


def _explained(error: ErrorDetails, config: Mapping[str, Any]) -> str:
    """Return a message that names the option and its problem."""
    reason = str(error.get("ctx", {}).get("error", "")) if error["type"] == "value_error" else ""
    if not error["loc"]:
        return reason
    name = str(error["loc"][0])
    field = _ALL.model_fields[NAMES[name]]
    return f"{name} = {config[name]!r}: {reason or f'must be {allowed(field)}'}"


def _check_stage(options: Options, kind: StageKind, platform: Platform) -> None:
    """Check the maps of a stage, and their combination with all other options."""
    name = CONFIGS[kind]
    maps = zip((name, f"++{name}"), options.stage_maps(kind), strict=True)
    given = {which: inner for which, inner in maps if inner}
    for which, inner in given.items():
        _check_map(which, inner)
    try:
        check_stage(options.of_stage(kind), kind, platform)
    except ValidationError as error:
        reason = _explained(error.errors()[0], options.model_dump(by_alias=True))
    except ValueError as error:
        reason = str(error)
    else:
        return
    raise OptionError(": ".join((*given, reason)))


def _check_map(name: str, given: Mapping[str, Any]) -> None:
    """Check that a stage may have its own values of these options, and that each is valid.

    Contradictions are not checked here, but in combination with the options of all stages.
    """
    for inner in given:
        if inner in NAMES and (why := refusal(inner)):
            raise OptionError(f"{name}: {why}")
    try:
        check_names(given)
        _ALL.model_validate(dict(given))
    except OptionError as error:
        raise OptionError(f"{name}: {error}") from None
    except ValidationError as error:
        wrong = [each for each in error.errors() if each["loc"]]
        if wrong:
            raise OptionError(f"{name}: {_explained(wrong[0], given)}") from None
