"""Manifest of a file of programs, as JSON.

A program's bytes are of two kinds. Its constants (weights) are most of it, and are used in place in
the file from their first use. All other bytes are read by loading. So each constant has its own
digest, and the rest has one: the rest is verified at each start, constants unless they are known
to be intact.
"""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
"""A SHA-256, in hexadecimal digits."""

FileName = Annotated[str, Field(pattern=r"^[^./\\\x00][^/\\\x00]*$", max_length=255)]
"""Name of a file in the model's folder, without a path; not a hidden file."""


class Record(BaseModel):
    """A record of a file; unknown fields are rejected, and types are not converted."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Constant(Record):
    """Bytes of a program that are used in place."""

    offset: int = Field(ge=0)
    size: int = Field(ge=1)
    sha256: Digest


class ProgramEntry(Record):
    """One program."""

    name: str
    size: int = Field(ge=1)
    sha256: Digest
    """Digest of all bytes except constants, concatenated."""
    constants: tuple[Constant, ...]
    """Constants, ascending."""

    @model_validator(mode="after")
    def _check_constants(self) -> Self:
        end = 0
        for constant in self.constants:
            if constant.offset < end:
                raise ValueError(f"constants of {self.name} overlap")
            end = constant.offset + constant.size
        if end > self.size:
            raise ValueError(f"a constant of {self.name} ends at {end}; it has {self.size} bytes")
        return self


class Manifest(Record):
    """Base of all manifests."""

    parts: tuple[ProgramEntry, ...]


class EntryManifest(Manifest):
    """Manifest of a cache entry: one program, and all its dependencies."""

    key: dict[str, str]


class ModelManifest(Manifest):
    """Manifest of a complete exported model."""

    versions: dict[str, str]
    """Versions that the programs' layout depends on."""
    options: dict[str, str]
    """Options fixed by compilation, under OpenVINO's names."""
    files: dict[FileName, Digest]
    """Files of the model with its weights, and their SHA-256; empty if the blob has the weights."""
    model: Digest
    """Digest of all the model's files, which identifies the model."""
