"""A model as the command line names it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from genai_layer.serve.engine.contract import Kind

_WEIGHTS = ("*.bin", "*.safetensors", "*.blob")
"""Files of a model folder that hold weights."""


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """A model of the server, loaded or not."""

    name: str
    """Name by which clients request the model."""
    kind: Kind
    folder: Path
    device: str = "NPU"
    properties: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Properties of pipeline and runtime."""
    slots: int = 4
    """Sequences that a language model generates at a time."""

    @property
    def created(self) -> int:
        """Time of the folder's last change, in Unix seconds; 0 if there is no folder."""
        return int(self.folder.stat().st_mtime) if self.folder.is_dir() else 0

    @property
    def bytes(self) -> int:
        """Bytes of the model's weights."""
        return sum(
            path.stat().st_size
            for pattern in _WEIGHTS
            for path in self.folder.glob(pattern)
            if not path.name.startswith("openvino_tokenizer")
            and not path.name.startswith("openvino_detokenizer")
        )
