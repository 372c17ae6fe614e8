"""Parser of configurations, whose errors say what would be right."""

from __future__ import annotations

from collections.abc import Mapping
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
    """All options of a compiled model; they do not contradict one another."""

    @model_validator(mode="after")
    def _check_all(self) -> Self:
        for check in CONTRADICTIONS:
            check(self)
        check_kinds(self, KIND_GROUPS)
        return self


_ALL = cast(type[Options], create_model("Options", __base__=(Options, *KIND_GROUPS)))
"""All options: those that are typed here, and those of kinds (``OptionValues.group``)."""


def parse_options(config: Mapping[str, Any]) -> Options:
    """Check a configuration.

    Raises:
        OptionError: an option is unknown (the nearest name is suggested) or not here (the reason is
            given), a value is wrong (what is allowed is said), or options contradict one another.
    """
    if not isinstance(config, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance] (callers may err)
        raise OptionError(f"a configuration is a dict of options, not {config!r}")
    _check_names(config)
    try:
        options = _ALL.model_validate(dict(config))
    except ValidationError as error:
        raise OptionError(_explained(error.errors()[0], config)) from None
    platform = _platform(options)
    for kind in CONFIGS:
        _check_stage(options, kind, platform)
    return options


def _platform(options: Options) -> Platform:
    """Give the platform; of one of your own, see that its file can be read."""
    try:
        return platform_of(options.platform)
    except PlatformError as error:
        raise OptionError(f"NPU_PLATFORM: {error}") from None


def _check_names(config: Mapping[str, Any]) -> None:
    """See that all options are there; errors as ``parse_options``."""
    for name in config:
        if name in ABSENT:
            raise OptionError(f"{name} is not here: {ABSENT[name]}")
        if name not in NAMES:
            near = nearest(str(name), NAMES)
            hint = f"did you mean {near}?" if near else "`npuw options` lists all there are"
            raise OptionError(f"unknown option {name!r}; {hint}")


def _explained(error: ErrorDetails, config: Mapping[str, Any]) -> str:
    """What is wrong with which option."""
    reason = str(error.get("ctx", {}).get("error", "")) if error["type"] == "value_error" else ""
    if not error["loc"]:
        return reason
    name = str(error["loc"][0])
    field = _ALL.model_fields[NAMES[name]]
    return f"{name} = {config[name]!r}: {reason or f'must be {allowed(field)}'}"


def _check_stage(options: Options, kind: StageKind, platform: Platform) -> None:
    """Check the maps of a stage, and what follows of them and all other options together."""
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
    """Refuse what a stage cannot have of its own, and values that are wrong anywhere.

    Values that contradict one another may not do so beside the options of all stages.
    """
    for inner in given:
        if inner in NAMES and (why := refusal(inner)):
            raise OptionError(f"{name}: {why}")
    try:
        _check_names(given)
        _ALL.model_validate(dict(given))
    except OptionError as error:
        raise OptionError(f"{name}: {error}") from None
    except ValidationError as error:
        wrong = [each for each in error.errors() if each["loc"]]
        if wrong:
            raise OptionError(f"{name}: {_explained(wrong[0], given)}") from None
