"""Registry of kinds: the folders of this package and the entry points ``npuw_layer.kinds``.

A kind is a folder with a module ``kind``, whose ``KIND`` is its record (``api.kind.Kind``). An
entry point names such a record in another package.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from pkgutil import iter_modules
from typing import TYPE_CHECKING

from npuw_layer.api.kind import Kind
from npuw_layer.kinds.split import SplitKind
from npuw_layer.options.routes import check_way

if TYPE_CHECKING:
    from npuw_layer.options import Options
    from npuw_layer.options.kinds import KindOptions

GROUP = "npuw_layer.kinds"
"""Entry-point group of other packages."""


@cache
def kinds() -> Sequence[Kind]:
    """Return all records in the order in which kinds are tried."""
    folders = [each.name for each in iter_modules([str(Path(__file__).parent)]) if each.ispkg]
    own = [import_module(f"npuw_layer.kinds.{name}.kind").KIND for name in folders]
    others = [point.load() for point in entry_points(group=GROUP)]
    return sorted([*own, *others], key=lambda kind: (kind.rank, kind.name))


def groups() -> Sequence[type[KindOptions]]:
    """Return the option groups of all kinds, in the order of the kinds."""
    return [kind.options for kind in kinds() if kind.options]


def route(path: Path, options: Options) -> tuple[Kind, Options]:
    """Return the kind of a model, and the options to compile the model with.

    An option that requests a kind decides; otherwise the first kind that recognises the model.

    Args:
        path: an IR's ``.xml``, or a Hugging Face folder.
        options: the options as given.

    Raises:
        OptionError: options contradict one another, or the kind.
    """
    requested = (kind for kind in kinds() if kind.requested(options))
    recognised = (kind for kind in kinds() if kind.recognises(path, options))
    kind = next(requested, None) or next(recognised)
    settled = kind.settle(path, options)
    check_way(settled)
    return kind, settled


def language_kind(options: Options) -> SplitKind:
    """Return the split kind that options request, or the kind of language models."""
    split = [kind for kind in kinds() if isinstance(kind, SplitKind)]
    return next((kind for kind in split if kind.requested(options)), split[-1])


def loading(blob: bytes) -> Kind:
    """Return the kind that loads a file format; the kind of split models rejects unknown files."""
    from npuw_layer.storage.container import MODEL

    return next(kind for each in (blob, MODEL) for kind in kinds() if kind.loads(each))
