"""Reports of placement and accuracy of static models, whole or in parts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from npuw_layer.backends.protocols import (
    LoadedModel,
    abilities,
    ability,
)
from npuw_layer.execution.devices.accuracy import Findings
from npuw_layer.execution.devices.pins import kind_of
from npuw_layer.options import Options
from npuw_layer.options.devices import device_names
from npuw_layer.options.stages import KINDS


@dataclass(frozen=True, slots=True)
class Placement:
    """A submodel's device, and the reasons for it."""

    submodel: str
    device: str
    notes: tuple[str, ...]
    """Reasons why it left earlier devices, in the order of events."""
    checked: Findings | None = None
    """Findings of NPUW_ACC_CHECK; None without it."""

    @property
    def accuracy(self) -> str:
        """Findings in words; empty without them."""
        return "" if self.checked is None else str(self.checked)

    def __str__(self) -> str:
        parts = [self.device, *self.notes, *filter(None, [self.accuracy])]
        return "; ".join(parts)


@runtime_checkable
class ReportsPlacement(Protocol):
    """Ability of a loaded model: it reports its current device among several."""

    @property
    def placement(self) -> Placement:
        """Current device, and the reasons for it."""
        ...


@runtime_checkable
class MadeOfOthers(Protocol):
    """Ability of a loaded model: it is made of other loaded models."""

    @property
    def members(self) -> Sequence[tuple[str, LoadedModel]]:
        """Tag (may be "") and model of each member, in order, repeated for each of its runs."""
        ...


def devices_report(models: Mapping[str, LoadedModel]) -> dict[str, str]:
    """Describe the placement of static models.

    Args:
        models: by name.

    Returns:
        For each model with a choice of devices, as ``device of prefill_64``: its device, the
        reasons why it left earlier devices, and the findings of NPUW_ACC_CHECK. For a partitioned
        model the same for each kind of part: ``part ×8: NPU | attn ×7: NPU ×6, CPU ×1; NPU …``.
    """
    found = {f"device of {name}": _described(model) for name, model in models.items()}
    return {name: text for name, text in found.items() if text}


def placements(model: LoadedModel) -> Sequence[Placement]:
    """Return the placements of a model, or of all its members; empty if one has no choice."""
    every = {id(each): each for each in _innermost(model)}.values()
    placements = [each.placement for each in abilities(every, ReportsPlacement)]
    return placements if len(placements) == len(every) else []


def _innermost(model: LoadedModel) -> Iterator[LoadedModel]:
    whole = ability(model, MadeOfOthers)
    if whole is None:
        yield model
        return
    for _, member in whole.members:
        yield from _innermost(member)


def _described(model: LoadedModel) -> str:
    placed, whole = ability(model, ReportsPlacement), ability(model, MadeOfOthers)
    if placed is not None:
        return str(placed.placement)
    if whole is None or not placements(model):
        return ""
    by_tag: dict[str, list[LoadedModel]] = {}
    for tag, member in whole.members:
        by_tag.setdefault(tag or "part", []).append(member)
    return " | ".join(f"{tag} ×{len(each)}: {_together(each)}" for tag, each in by_tag.items())


def _together(models: Sequence[LoadedModel]) -> str:
    """Describe the placement of models of one kind, in short."""
    devices = Counter(_devices(placements(each)) for each in models)
    counted = [f"{name} ×{count}" for name, count in devices.items()]
    where = ", ".join(counted) if len(counted) > 1 else next(iter(devices))
    # Equal models are one object; count its runs once.
    once = {id(each): each for each in models}.values()
    every = [placement for each in once for placement in placements(each)]
    return "; ".join(filter(None, [where, _notes(every), _accuracy(every)]))


def _devices(found: Iterable[Placement]) -> str:
    return "+".join(dict.fromkeys(placement.device for placement in found))


def _notes(found: Iterable[Placement]) -> str:
    notes = [*dict.fromkeys(note for placement in found for note in placement.notes)]
    return f"{notes[0]} (and {len(notes) - 1} more notes)" if len(notes) > 1 else "".join(notes)


def _accuracy(found: Iterable[Placement]) -> str:
    """Describe the runs of all models, and their least accurate output."""
    checked = [(each.submodel, each.checked) for each in found if each.checked is not None]
    errors = [
        (error, f"{output} of {submodel}")
        for submodel, findings in checked
        for output, error in findings.worst.items()
    ]
    if not errors:
        return "no run checked" if checked else ""
    runs, (error, where) = sum(findings.runs for _, findings in checked), max(errors)
    return f"{runs} runs checked, largest NRMSE {error:.2e} ({where})"


def execution_devices(models: Mapping[str, LoadedModel], options: Options) -> list[str]:
    """Return the devices that run static models, in the order of NPUW_DEVICES; others last.

    Args:
        models: all static models, by name; their members may run on several devices.
        options: NPUW_DEVICES of all or of single stages.
    """
    by_kind: dict[str, set[str]] = {}
    for name, model in models.items():
        used = by_kind.setdefault(kind_of(name), set())
        used |= {placement.device for placement in placements(model)}
    named = [*device_names(options.devices)]
    everywhere: set[str] = set()
    for kind, used in by_kind.items():
        own = next((options.of_stage(each) for each in KINDS if each == kind), options)
        named += device_names(own.devices)
        everywhere |= used or {*device_names(own.devices)}
    in_order = [name for name in dict.fromkeys(named) if name in everywhere]
    return [*in_order, *sorted(everywhere.difference(in_order))]
