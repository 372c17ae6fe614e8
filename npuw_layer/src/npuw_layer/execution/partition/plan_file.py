"""Writing of partitions to a file (NPUW_ONLINE_DUMP_PLAN).

    <!--sha256 …-->
    <ensemble>
      <partitioning>
        <group id="1" tag="attn" function="1"> <layer name="…" type="…"/> … </group>

The comment has the digest of the rest, which detects damage. Plans of other tools have no digest;
remove the comment after an edit.

Source: the names of elements are NPUW's.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from driver_layer.support.files import content_digest
from npuw_layer.errors import NpuwFault
from npuw_layer.execution.partition.ports import AVOIDS, Listener
from npuw_layer.storage.cache.replace import replacing

if TYPE_CHECKING:
    from compiler_layer.partition.parts import Part
    from npuw_layer.execution.partition.container import Call


_DECLARATION = b"<?xml version='1.0' encoding='utf-8'?>\n"
_DIGEST = re.compile(rb"<!--sha256 ([0-9a-f]{64})-->\n")


class PlanFile(Listener):
    """Listener that writes the plan of each compiled static model.

    Args:
        target: the option's file.
    """

    def __init__(self, target: Path) -> None:
        self._target = target

    def cut(self, submodel: str, parts: Sequence[Part], calls: Sequence[Call]) -> None:
        """Write the parts and their ops to the static model's own file.

        Its name is that of the option's file, with the submodel before its suffix.

        Raises:
            NpuwFault: the file cannot be written.
        """
        from compiler_layer.dialects.ov.op import OvOp

        root = ET.Element("ensemble")
        groups = ET.SubElement(root, "partitioning")
        for number, (part, call) in enumerate(zip(parts, calls, strict=True)):
            group = ET.SubElement(groups, "group", id=str(number), function=str(call.function))
            if part.tag:
                group.set("tag", part.tag)
            if part.tag.startswith(AVOIDS):
                group.set("avoid", part.tag.removeprefix(AVOIDS))
            for side, ports in (("input", part.model.inputs), ("output", part.model.outputs)):
                for port in ports:
                    ET.SubElement(group, side, name=port.name)
            for op in part.model.body.ops:
                if isinstance(op, OvOp) and op.friendly_name:  # ops made by passes have no name
                    kind = op.name.removeprefix("ov.")
                    ET.SubElement(group, "layer", name=op.friendly_name, type=kind)
        ET.indent(root)
        target = self._target
        path = target.expanduser().with_name(f"{target.stem}.{submodel}{target.suffix}")
        try:
            with replacing(path) as file:
                file.write(_with_digest(ET.tostring(root, encoding="utf-8")))
        except OSError as error:
            raise NpuwFault(f"NPUW_ONLINE_DUMP_PLAN: {path}: {error.strerror}") from None


def check_digest(content: bytes) -> None:
    """Verify a plan that has a digest.

    Raises:
        ValueError: the content does not match the digest.
    """
    found = _DIGEST.search(content)
    if found is None:
        whole = not content.startswith(_DECLARATION + b"<!--")
    else:
        rest = content[: found.start()], content[found.end() :]
        whole = content_digest(rest).hex() == found[1].decode()
    if not whole:
        raise ValueError(
            "its content does not match its digest; write it again with NPUW_ONLINE_DUMP_PLAN, or "
            "remove the comment <!--sha256 …--> if it was edited on purpose"
        )


def _with_digest(text: bytes) -> bytes:
    digest = content_digest([_DECLARATION, text]).hex()
    return _DECLARATION + f"<!--sha256 {digest}-->\n".encode() + text
