"""Format of a program for OpenVINO: an IR, and settings of its plugin."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

from pydantic import BaseModel, ConfigDict, ValidationError

from npuw_layer.errors import DeviceError

if TYPE_CHECKING:
    from xdsl.ir import SSAValue

    from compiler_layer.model import Model

_MAGIC = b"NPUWOVIR"
_HEADER = struct.Struct("<8sIQ")
"""Magic, and the lengths of the head (JSON) and of the XML, which the weights follow."""

Setting = Literal["INFERENCE_PRECISION_HINT", "DYNAMIC_QUANTIZATION_GROUP_SIZE"]
"""Settings from the compiler's configuration that the plugin gets."""


class Output(BaseModel):
    """An output of a program: a result of the graph, or an input that is returned.

    In OpenVINO, results of the same tensor share its names and memory, and a result that is a
    parameter takes the parameter's place. So the graph's results are unique and no parameters.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    of: Literal["results", "inputs"]
    index: int


class ProgramHeader(BaseModel):
    """Description of a program, in addition to its IR."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    settings: dict[Setting, str]
    inputs: tuple[str, ...]
    """Names by position."""
    outputs: tuple[Output, ...]


def settings_of(config: Mapping[str, str]) -> dict[Setting, str]:
    """Return the plugin's settings in a compiler's configuration."""
    return {name: config[name] for name in get_args(Setting) if name in config}


def separate_outputs(model: Model) -> Sequence[Output]:
    """Deduplicate the outputs of a graph; return the source of each former output."""
    inputs = [port.value for port in model.inputs]
    results: list[SSAValue] = []
    outputs: list[Output] = []
    for port in model.outputs:
        if port.value in inputs:
            outputs.append(Output(name=port.name, of="inputs", index=inputs.index(port.value)))
            continue
        if port.value not in results:
            results.append(port.value)
        outputs.append(Output(name=port.name, of="results", index=results.index(port.value)))
    model.set_outputs([(f"result{number}", value) for number, value in enumerate(results)])
    return outputs


@dataclass(frozen=True, slots=True)
class ProgramIR:
    """An IR in memory."""

    head: ProgramHeader
    xml: bytes
    weights: bytes

    def to_bytes(self) -> bytes:
        """Return all bytes; ``parse`` reads them."""
        head = self.head.model_dump_json().encode()
        header = _HEADER.pack(_MAGIC, len(head), len(self.xml))
        return b"".join((header, head, self.xml, self.weights))

    @staticmethod
    def parse(program: bytes | memoryview) -> ProgramIR:
        """Parse the format of ``to_bytes``; OpenVINO reads the IR itself later.

        Raises:
            DeviceError: the bytes have another format.
        """
        bad = DeviceError("not a program of OPENVINO_CPU; compile it again")
        if len(program) < _HEADER.size:
            raise bad
        mark, length, xml_length = _HEADER.unpack_from(program)
        begin = _HEADER.size + length
        end = begin + xml_length
        if mark != _MAGIC or end > len(program):
            raise bad
        try:
            head = ProgramHeader.model_validate_json(bytes(program[_HEADER.size : begin]))
        except ValidationError:
            raise bad from None
        return ProgramIR(head, bytes(program[begin:end]), bytes(program[end:]))
