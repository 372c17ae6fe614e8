"""A model as the command line names it, and the settings of a server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from genai_layer.errors import ModelError
from genai_layer.files import is_file, read_object
from genai_layer.serve.engine.contract import Kind
from genai_layer.serve.limits import Limits

_WEIGHTS = ("*.bin", "*.blob")
"""Files of a model folder that hold weights, besides a checkpoint."""

_CHECKPOINT = "model.safetensors"


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
        named = (path for pattern in _WEIGHTS for path in self.folder.glob(pattern))
        tokenizers = ("openvino_tokenizer", "openvino_detokenizer")
        files = {path for path in named if not path.name.startswith(tokenizers)}
        return sum(path.stat().st_size for path in files | _checkpoint(self.folder))


def _checkpoint(folder: Path) -> set[Path]:
    """Return the weight files of a Hugging Face folder: one, or the shards of its index.

    A broken index has none: the runtime names its problem when it loads the model.
    """
    whole = folder / _CHECKPOINT
    if whole.is_file():
        return {whole}
    try:
        shards = read_object(folder / f"{_CHECKPOINT}.index.json").get("weight_map")
        names = cast(dict[str, object], shards).values() if isinstance(shards, dict) else ()
        return {path for path in (folder / str(name) for name in names) if is_file(path)}
    except ModelError:
        return set()


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of a server, as the command line has them."""

    models: Sequence[ModelSpec]
    """Models of different names; the first one is loaded at the start."""
    limits: Limits
    max_bytes: int | None = None
    """Upper bound of the weights of loaded models; None for no bound."""
    host: str = "127.0.0.1"
    port: int = 8000
    """Port; 0 for a free one."""
    api_key: str | None = None
    """Key that requests must have; None for none."""
    cors_origins: Sequence[str] = ()
    """Origins whose pages may send requests."""
    allowed_hosts: Sequence[str] = ()
    """Further names by which the server is called; see ``Hosts``."""
    grace: float = 30.0
    """Seconds that requests in progress have at the shutdown."""
