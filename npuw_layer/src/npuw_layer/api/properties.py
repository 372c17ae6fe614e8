"""Properties of a Core and of compiled models: options as set, and facts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from functools import partial
from typing import Any, cast

from npuw_layer.backends.protocols import DEVICE_FACTS, Device, ReportsFacts, required
from npuw_layer.backends.versions import compiler_number
from npuw_layer.errors import OptionError
from npuw_layer.options import NAMES, RUN_TIME, Options, nearest, parse_options

SUPPORTED_PROPERTIES = "SUPPORTED_PROPERTIES"
LOADED_FROM_CACHE = "LOADED_FROM_CACHE"
EXECUTION_DEVICES = "EXECUTION_DEVICES"
CONTINUOUS_PREFILL_SUPPORTED = "NPUW_LLM_CONTINUOUS_PREFILL_SUPPORTED"

Properties = Mapping[str, Any] | tuple[str, Any]
"""Properties by name, or a pair of one name and its value, as in OpenVINO."""

_COMPILER = "NPU_COMPILER_VERSION"
_READ_ONLY = (SUPPORTED_PROPERTIES, _COMPILER, *DEVICE_FACTS)

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


class CoreProperties:
    """Default options of models, which their call overrides, and facts about the device.

    Args:
        npu: returns the NPU that options name.
    """

    def __init__(self, npu: Callable[[Options], Device]) -> None:
        self._npu = npu
        self._set: dict[str, Any] = {}

    def update(self, properties: object) -> None:
        """Set default options of later models: all of them or, if one is wrong, none.

        Raises:
            OptionError: as ``parse_options``; or a property is read-only.
        """
        given = _mapped(properties)
        for name in given:
            if name in _READ_ONLY:
                raise OptionError(f"{name} is read-only: the device determines it")
        together = {**self._set, **given}
        parse_options(together).set_log_level()
        self._set = together

    def read(self, name: str) -> Any:
        """Return an option as set, or its default; or a fact.

        Raises:
            OptionError: no such property exists.
        """
        if name == SUPPORTED_PROPERTIES:
            return {**dict.fromkeys(_READ_ONLY, "RO"), **dict.fromkeys(NAMES, "RW")}
        return read_property(name, parse_options(self._set), self._facts())

    def to_compile(self, config: Mapping[str, Any] | None) -> dict[str, Any]:
        """Return the options of a compilation; those of the call take precedence."""
        return {**self._set, **_checked(config)}

    def to_import(self, config: Mapping[str, Any] | None) -> dict[str, Any]:
        """Return the options of an import; of the defaults, only options of a run apply."""
        of_run = RUN_TIME | {"NPU_PLATFORM"}
        kept = {name: value for name, value in self._set.items() if name in of_run}
        return {**kept, **_checked(config)}

    def _facts(self) -> Facts:
        def ask(name: str) -> Any:
            device = self._npu(parse_options(self._set))
            return required(device, ReportsFacts, "read-only properties").fact(name)

        return {_COMPILER: compiler_number, **{name: partial(ask, name) for name in DEVICE_FACTS}}


def _mapped(properties: object) -> Mapping[str, Any]:
    if isinstance(properties, tuple):
        pair = cast("tuple[Any, ...]", properties)
        if len(pair) != 2:
            raise OptionError(f"{properties!r} is not a property; pass its name and its value")
        return {pair[0]: pair[1]}
    return _checked(properties)


def _checked(config: object) -> Mapping[str, Any]:
    """Check that a configuration is a mapping, and return it; None is empty."""
    if config is None:
        return {}
    if not isinstance(config, Mapping):
        raise OptionError(f"{config!r} is not a configuration; pass a dict of options")
    return cast("Mapping[str, Any]", config)
