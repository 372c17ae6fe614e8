"""The graph compiler: the Protocol of a compiler in the driver, and its discovery.

The driver imports no compiler. A distribution that has one names a callable without parameters that
returns it, usually its class, as an entry point of the group ``driver_layer.graph_compilers``. A
driver without a compiler creates graphs from native blobs only.

Source: docs/reference/level_zero.md#graph-extension (graphs of format NGRAPH_LITE).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import cache
from importlib.metadata import entry_points
from typing import Protocol, cast

from driver_layer.abi.platforms import Platform
from driver_layer.errors import GraphCompilerError, ZeError
from driver_layer.ze import errors
from driver_layer.ze.result import ze_result_t

GROUP = "driver_layer.graph_compilers"

MAX_OPSET = 11
"""Newest opset that the device properties report: callers use it in the models they pass."""

_LOG = logging.getLogger(__name__)


class GraphCompiler(Protocol):
    """A compiler of serialized models; used by several threads at the same time.

    A ``model`` has the version that the caller took from the device properties, and the XML and
    the weights of an OpenVINO model. ``build_flags`` is the text of the graph's descriptor.
    """

    version: tuple[int, int]
    """Version that the device properties report."""

    @property
    def identity(self) -> str:
        """Text that changes whenever the compiler may make other blobs; a part of cache keys."""
        ...

    def supported_options(self) -> tuple[str, ...]:
        """Return the names of the options that ``build_flags`` may contain."""
        ...

    def is_option_supported(self, option: str, value: str | None) -> bool:
        """Return whether an option, or an option with this value, is supported."""
        ...

    def compile(self, model: memoryview, build_flags: str, platform: Platform) -> bytes:
        """Compile a model to a blob; raises GraphCompilerError with the reason."""
        ...

    def query(self, model: memoryview, build_flags: str, platform: Platform) -> tuple[str, ...]:
        """Return the friendly names of the layers that ``compile`` supports.

        Raises GraphCompilerError if the model cannot be read.
        """
        ...


@cache
def installed_compiler() -> GraphCompiler | None:
    """Return the installed compiler; None if there is none.

    Raises:
        ZeError: DEPENDENCY_UNAVAILABLE: the compiler cannot be imported.
    """
    for entry in entry_points(group=GROUP):
        try:
            make = cast("Callable[[], GraphCompiler]", entry.load())
            return make()
        except Exception as error:  # arbitrary code of another distribution
            message = f"the graph compiler {entry.value} cannot be imported: {error!r}"
            code = ze_result_t.ZE_RESULT_ERROR_DEPENDENCY_UNAVAILABLE
            raise errors.failed(code, message) from error
    return None


def needed_compiler() -> GraphCompiler:
    """Return the installed compiler.

    Raises:
        ZeError: UNSUPPORTED_FEATURE: there is none; else as ``installed_compiler``.
    """
    compiler = installed_compiler()
    if compiler is None:
        message = (
            "this driver has no graph compiler; compile the model and pass its blob, or install"
            " compiler_layer"
        )
        raise errors.unsupported_feature(message)
    return compiler


@contextmanager
def compiling() -> Generator[None, None, None]:
    """Convert the errors of a compiler to ZeError.

    Raises:
        ZeError: UNSUPPORTED_FEATURE: the model or a build flag is not supported, as in the public
            driver; UNKNOWN: the compiler failed.
    """
    try:
        yield
    except ZeError:
        raise
    except GraphCompilerError as error:
        raise errors.unsupported_feature(str(error)) from error
    except Exception as error:  # arbitrary code of another distribution, with untrusted input
        _LOG.exception("the graph compiler failed")
        code = ze_result_t.ZE_RESULT_ERROR_UNKNOWN
        raise errors.failed(code, f"the graph compiler failed: {error!r}") from error
