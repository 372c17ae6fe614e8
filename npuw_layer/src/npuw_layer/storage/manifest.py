"""What a file of programs says of itself, as JSON.

A program's bytes are of two kinds. Its constants (weights) are most of it, and are used where the
file has them, when they are first needed. All else is read by whoever loads it. So each constant
has a digest of its own, and the rest has one: what is read is verified on each start, constants
when nobody knows yet that they are whole.
"""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
"""A SHA-256, in hexadecimal digits."""

FileName = Annotated[str, Field(pattern=r"^[^./\\\x00][^/\\\x00]*$", max_length=255)]
"""Of a file in the model's folder, wherever that is: no path, and no hidden file."""


class _Record(BaseModel):
    """A part of the manifest; what it does not know it refuses."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Constant(_Record):
    """Bytes of a program that are used in place."""

    offset: int = Field(ge=0)
    size: int = Field(ge=1)
    sha256: Digest


class Part(_Record):
    """One program."""

    name: str
    size: int = Field(ge=1)
    sha256: Digest
    """Of all but the constants, end to end."""
    constants: tuple[Constant, ...]
    """In ascending order."""

    @model_validator(mode="after")
    def _check_constants(self) -> Self:
        end = 0
        for constant in self.constants:
            if constant.offset < end:
                raise ValueError(f"constants of {self.name} overlap")
            end = constant.offset + constant.size
        if end > self.size:
            raise ValueError(f"a constant of {self.name} ends at {end} of {self.size} bytes")
        return self


class Manifest(_Record):
    """What every file of programs has."""

    parts: tuple[Part, ...]


class EntryManifest(Manifest):
    """An entry of the cache: one program, and all that it depends on."""

    key: dict[str, str]


class ModelManifest(Manifest):
    """A whole model that was exported."""

    versions: dict[str, str]
    """Of whatever the programs' layout depends on."""
    options: dict[str, str]
    """What was fixed when it was compiled, by OpenVINO's names."""
    files: dict[FileName, Digest]
    """Those of the model that have its weights, and their SHA-256; empty if the programs do."""
    model: Digest
    """Tells the model from others: of all its files, whoever has them now."""
