"""Peers by name, e.g. ``llama.cpp-q4_0`` or ``ours-int8:INFERENCE_PRECISION_HINT=bf16``."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Kind:
    """Program under test."""

    module: str
    title: str
    precisions: tuple[str, ...]


KINDS = {
    "ours": Kind("ours", "ours", ("fp16", "int8", "int4")),
    "openvino": Kind("openvino_genai", "OpenVINO GenAI CPU", ("fp16", "int8", "int4")),
    "npuw": Kind("npuw", "real NPUW on CPU", ("fp16", "int8", "int4")),
    "transformers": Kind("transformers", "transformers", ("f32", "bf16")),
    "llama.cpp": Kind("llama_cpp", "llama.cpp", ("f16", "q8_0", "q4_0")),
}

_COUNTERPARTS = {
    "fp16": ("fp16", "f16", "bf16", "f32"),
    "int8": ("int8", "q8_0"),
    "int4": ("int4", "q4_0"),
}


@dataclass(frozen=True, slots=True)
class Peer:
    """Program with weights in one precision, and a configuration."""

    kind: str
    precision: str
    config: dict[str, str] = field(default_factory=dict[str, str], hash=False)

    @property
    def name(self) -> str:
        """Name on the command line."""
        more = ",".join(f"{key}={value}" for key, value in self.config.items())
        return f"{self.kind}-{self.precision}" + (f":{more}" if more else "")

    @property
    def title(self) -> str:
        """Name in the report."""
        more = "".join(f", {key}={value}" for key, value in self.config.items())
        return f"{KINDS[self.kind].title} {self.precision}{more}"

    @property
    def module(self) -> str:
        """Name of the module in ``peers`` that runs the peer."""
        return KINDS[self.kind].module

    @property
    def is_ours(self) -> bool:
        """True for this repository's stack."""
        return self.kind == "ours"

    def answers_to(self, other: Peer) -> bool:
        """Return whether the weights have the same number of bits as those of one of ours."""
        return self.precision in _COUNTERPARTS[other.precision]

    def source(self, models: Path, model: str) -> Path:
        """Return the file or folder that the peer reads."""
        if self.kind == "llama.cpp":
            return models / "gguf" / f"{model}-{self.precision}.gguf"
        if self.kind == "transformers":
            return models / model
        return models / "ir" / f"{model}-{self.precision}"

    def properties(self) -> dict[str, str]:
        """Return the configuration for the peer's module."""
        return {"dtype": self.precision} if self.kind == "transformers" else self.config


def parse_peer(text: str) -> Peer:
    """Parse a name.

    Raises:
        ValueError: the name is unknown or malformed; the message lists the names.
    """
    name, _, options = text.partition(":")
    kind, _, precision = name.rpartition("-")
    if kind not in KINDS or precision not in KINDS[kind].precisions:
        known = " ".join(peer.name for peer in every_peer())
        raise ValueError(f"unknown peer {name!r}; known are {known}")
    config: dict[str, str] = {}
    for option in filter(None, options.split(",")):
        key, equals, value = option.partition("=")
        if not equals:
            raise ValueError(f"{text!r}: {option!r} is not KEY=VALUE")
        config[key] = value
    return Peer(kind, precision, config)


def every_peer() -> list[Peer]:
    """Return all peers in their default configuration."""
    return [Peer(name, precision) for name, kind in KINDS.items() for precision in kind.precisions]
