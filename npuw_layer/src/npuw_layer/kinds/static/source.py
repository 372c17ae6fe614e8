"""Source of a static model: its files, and the graph that is read from them when needed."""

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
    """A graph that is read when it is needed; of one that is in the cache nothing is.

    Attributes:
        path: an IR's ``.xml``.
        graph: reads it; whoever compiles it may change it.
        submodel: what devices and logs call it.
        depends: what the graph depends on besides the files, for the cache's key.
    """

    path: Path
    graph: Callable[[], Model]
    submodel: str = STATIC_MODEL
    depends: Mapping[str, str] = field(default_factory=dict[str, str])

    @staticmethod
    def whole(path: Path) -> GraphSource:
        """Give all that an IR has, as one model."""
        return GraphSource(path, partial(_read, path))

    @property
    def name(self) -> str:
        """What it is called in the cache."""
        whole = self.submodel == STATIC_MODEL
        return self.path.name if whole else f"{self.path.name} {self.submodel}"


def _read(path: Path) -> Model:
    # Imported here: a warm start, which compiles nothing, loads no graphs.
    from npuw_layer.storage.read_model import read_model

    return read_model(path)
