"""NPUW_SUBMODEL_DEVICE: the first device of a submodel.

Submodels are numbered in compilation order: prefill first, then the generate variants by capacity,
then the LM head. So ``0`` is prefill, and ``last`` the LM head; without a separate one, the
largest variant. Ours: an entry may also have a submodel's name (``generate_256``) or kind
(``prefill``, ``generate``, ``head``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from npuw_layer.errors import OptionError
from npuw_layer.options.devices import pins

OPTION = "NPUW_SUBMODEL_DEVICE"


def parse_pins(
    text: str, submodels: Sequence[str], devices: Sequence[str], kind: str = ""
) -> Mapping[str, str]:
    """Read ``0:CPU,last:NPU``; a later entry overrides an earlier one.

    Args:
        text: the option, which is well formed.
        submodels: their names, in order.
        devices: names in NPUW_DEVICES.
        kind: kind of the submodels to pin; "" pins all. Other kinds may have separate devices.

    Returns:
        Device name of each pinned submodel, by name.

    Raises:
        OptionError: an entry names an unknown submodel or device.
    """
    found: dict[str, str] = {}
    for which, device in pins(text):
        named = [name for name in _named(which, submodels) if kind in ("", kind_of(name))]
        if device not in devices and (named or not kind):
            raise OptionError(
                f"{OPTION}: {device!r} is not in NPUW_DEVICES = {','.join(devices)}; add it there"
            )
        found |= dict.fromkeys(named, device)
    return found


def _named(which: str, submodels: Sequence[str]) -> Sequence[str]:
    if which == "last":
        return submodels[-1:]
    if which.isdecimal() and int(which) < len(submodels):
        return [submodels[int(which)]]
    if which in submodels:
        return [which]
    found = [name for name in submodels if which == kind_of(name)]
    if not found:
        known = ", ".join(f"{index} {name}" for index, name in enumerate(submodels))
        kinds = ", ".join(dict.fromkeys(map(kind_of, submodels)))
        raise OptionError(f"{OPTION}: no submodel {which!r}; choose from {known}, or {kinds}")
    return found


def kind_of(submodel: str) -> str:
    """Return a submodel's kind, from its name (``llm.plan.stages.Stage.name``)."""
    return "head" if submodel.startswith("lm_head") else submodel.partition("_")[0]
