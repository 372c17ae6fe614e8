"""Groups that a file names (NPUW_PLAN), in a plan of this project or of NPUW.

    <ensemble>
      <partitioning>
        <group id="0" avoid="NPU"> <layer name="…" type="…"/> … </group>

Only groups and their layers are used; inputs and outputs follow from them. Layers that are missing
in the lowered graph (constants, fused ops) are ignored, as a plan may be of another version.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from xml.parsers import expat

from driver_layer.support.files import open_regular
from npuw_layer.backends.protocols import Device
from npuw_layer.errors import OptionError
from npuw_layer.execution.partition.plan_file import check_digest
from npuw_layer.execution.partition.ports import AVOIDS, Isolation
from npuw_layer.options import Options

if TYPE_CHECKING:
    from xdsl.ir import Operation

    from compiler_layer.dialects.ov.op import OvOp
    from compiler_layer.model import Model
    from compiler_layer.partition.parts import PartOps

_log = logging.getLogger(__name__)

PLANNED = "planned"
"""Tag of groups that avoid no device."""

_OPTION = "NPUW_PLAN"
_MOST_BYTES = 256 << 20


@dataclass(slots=True)
class PlannedGroup:
    """A group of the file.

    Attributes:
        avoid: the device to avoid; "" for none.
        layers: names and types of its ops; "" for a missing type.
    """

    avoid: str
    layers: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])


def _groups(model: Model, plan: Sequence[PlannedGroup], tag: str) -> Sequence[PartOps]:
    """Find the ops of each group with a tag, including the ops between them.

    Args:
        model: lowered.
        plan: all groups: ops enclosed by one group must not be in another.
        tag: tag of the groups to return.
    """
    from compiler_layer.dialects.ov.op import OvOp
    from compiler_layer.partition.parts import PartOps, add_enclosed, fixed_ops

    fixed = fixed_ops(model)
    moving = [op for op in model.body.ops if isinstance(op, OvOp) and op not in fixed]
    number_of = _numbers(plan, moving)
    if not number_of:
        _log.warning("%s: a static model has none of the plan's layers; it is not cut", _OPTION)
    members: list[set[Operation]] = [set() for _ in plan]
    for op, number in number_of.items():
        members[number].add(op)
    pairs = zip(plan, members, strict=True)
    groups = [PartOps(_tag(group.avoid), frozenset(ops)) for group, ops in pairs if ops]
    return [group for group in add_enclosed(model, groups) if group.tag == tag]


def _tag(avoid: str) -> str:
    return AVOIDS + avoid if avoid else PLANNED


def _numbers(plan: Sequence[PlannedGroup], ops: Iterable[OvOp]) -> dict[Operation, int]:
    """Return the number of each op's group; if two groups name an op, the first counts.

    Ops made by passes have no name: they join the group of their operands, or else that of their
    users.
    """
    from xdsl.ir import OpResult

    by_layer: dict[tuple[str, str], int] = {}
    for number, group in enumerate(plan):
        for layer in group.layers:
            by_layer.setdefault(layer, number)
    known: dict[Operation, int] = {}
    unnamed: list[OvOp] = []
    for op in ops:
        name, kind = op.friendly_name, op.name.removeprefix("ov.")
        number = by_layer.get((name, kind), by_layer.get((name, "")))
        if not name:
            unnamed.append(op)
        elif number is not None:
            known[op] = number
    for op in unnamed:
        makers = (value.op for value in op.operands if isinstance(value, OpResult))
        numbers = {known[maker] for maker in makers if maker in known}
        if len(numbers) == 1:
            known[op] = numbers.pop()
    for op in reversed(unnamed):
        numbers = {known.get(use.operation, -1) for result in op.results for use in result.uses}
        if op not in known and len(numbers) == 1 and -1 not in numbers:
            known[op] = numbers.pop()
    return known


def planned_rules(
    device: Device, options: Options, without: Callable[[str], Device]
) -> Mapping[str, Isolation]:
    """Return the isolations of NPUW_PLAN, by tag.

    Args:
        device: runs the groups that avoid no device.
        options: NPUW_PLAN.
        without: returns the devices of NPUW_DEVICES without one.

    Raises:
        OptionError: the file cannot be read; or a device to avoid is missing, or the only one.
    """
    plan = read_plan(Path(options.plan).expanduser())
    return {
        _tag(name): Isolation(
            without(name) if name else device, partial(_groups, plan=plan, tag=_tag(name))
        )
        for name in dict.fromkeys(group.avoid for group in plan)
    }


def read_plan(path: Path) -> list[PlannedGroup]:
    """Read the groups of a plan that have layers.

    Raises:
        OptionError: the file cannot be read, or is not a plan.
    """
    try:
        with open_regular(path) as file:
            content = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise OptionError(f"{_OPTION} {path}: {error.strerror}") from None
    if len(content) > _MOST_BYTES:
        raise OptionError(f"{_OPTION} {path}: the file has more than {_MOST_BYTES} bytes")
    try:
        check_digest(content)
    except ValueError as error:
        raise OptionError(f"{_OPTION} {path}: {error}") from None
    reader = _Reader()
    try:
        reader.parser.Parse(content, True)
    except (expat.ExpatError, LookupError, ValueError) as error:
        raise OptionError(
            f"{_OPTION} {path}: not a plan: {error}; NPUW_ONLINE_DUMP_PLAN writes one"
        ) from None
    groups = [group for group in reader.groups if group.layers]
    if not groups:
        raise OptionError(f"{_OPTION} {path}: not a plan: it has no <group> with a <layer name=…>")
    return groups


class _Reader:
    """XML reader of groups; a document type, which may refer to other files, is rejected."""

    def __init__(self) -> None:
        self.groups: list[PlannedGroup] = []
        self._path: list[str] = []
        self.parser = expat.ParserCreate()
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.StartDoctypeDeclHandler = self._refuse

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        if self._path == ["ensemble", "partitioning"] and tag == "group":
            self.groups.append(PlannedGroup(attributes.get("avoid", "")))
        elif self._path == ["ensemble", "partitioning", "group"] and tag == "layer":
            layer = attributes.get("name", ""), attributes.get("type", "")
            self.groups[-1].layers.append(layer)
        self._path.append(tag)

    def _end(self, _: str) -> None:
        self._path.pop()

    def _refuse(self, *_: object) -> None:
        raise ValueError("it has a document type, which plans do not have")
