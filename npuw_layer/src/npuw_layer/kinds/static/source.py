"""Source of a static model: its files, and its graph, read on demand."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from npuw_layer.backends.protocols import STATIC_MODEL

if TYPE_CHECKING:
    from compiler_layer.model import Model


@dataclass(frozen=True, slots=True)
class GraphSource:
    """A graph that is read on demand; a cached model's graph is never read.

    Attributes:
        path: an IR's ``.xml``.
        graph: reads the graph, which the compiler may modify.
        submodel: name of the submodel on devices and in logs.
        depends: facts besides the files that the graph depends on, for the cache key.
        whole_batch: whether the graph takes a whole batch, whatever NPU_BATCH_MODE says.
    """

    path: Path
    graph: Callable[[], Model]
    submodel: str = STATIC_MODEL
    depends: Mapping[str, str] = field(default_factory=dict[str, str])
    whole_batch: bool = False

    @staticmethod
    def whole(path: Path) -> GraphSource:
        """Return the source of a whole IR as one model."""
        return GraphSource(path, partial(_read, path))

    @property
    def name(self) -> str:
        """Name of the model in the cache."""
        whole = self.submodel == STATIC_MODEL
        return self.path.name if whole else f"{self.path.name} {self.submodel}"


def _read(path: Path) -> Model:
    # Imported here: a warm start, which compiles nothing, loads no graphs.
    from npuw_layer.storage.read_model import read_model

    return read_model(path)
