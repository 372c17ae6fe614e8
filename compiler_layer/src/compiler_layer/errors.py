"""Errors of the compiler.

CompilerError
├── CompilerUsageError       incorrect call: an unknown option, a missing shape
├── CompilerInputError       the model is invalid or not supported
│   ├── BadModel             a file is damaged or inconsistent; names file and place
│   ├── UnsupportedOps       all operations of the model that this compiler does not support
│   └── UnsupportedModel     an architecture, type or shape that is not supported
└── CompilerFault            the model exceeds a limit of the device
    ├── NotPeriodic          the layers of a folded model cannot be compiled as one
    └── DoesNotFit           a tensor or tile needs more memory than the device has
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

_LONGEST = 2000
"""Maximum characters of a message: names and values of a bad file may be of any length."""

RUN_ON_CPU = "run the model with OpenVINO on the CPU (npu-chat --device CPU)"
"""Remedy for models that OpenVINO computes and this compiler does not."""

_LISTED_NAMES = 5
"""Maximum ops per kind that a message names; the error's ``ops`` lists all."""


def _clipped(text: str) -> str:
    half = _LONGEST // 2
    return text if len(text) <= _LONGEST else f"{text[:half]} … {text[-half:]}"


class CompilerError(Exception):
    """Base of all errors of the compiler.

    Args:
        message: the text; the middle of a long text is cut out.
    """

    def __init__(self, message: str) -> None:
        super().__init__(_clipped(message))


class CompilerUsageError(CompilerError):
    """Violation of a rule of the interface by the caller."""


class CompilerInputError(CompilerError):
    """Invalid or unsupported model."""


class CompilerFault(CompilerError):
    """Model that cannot be laid out on the device."""


class NotPeriodic(CompilerFault):
    """Layers of a folded model that differ after the passes, and cannot be compiled as one."""


class BadModel(CompilerInputError):
    """Damaged or inconsistent model file.

    Args:
        path: the file or folder.
        message: the problem.
        place: its place in the file, e.g. a tensor or a layer.
    """

    def __init__(self, path: object, message: str, place: str | None = None) -> None:
        self.path = str(path)
        self.place = place
        where = f"{path}: " if place is None else f"{path}: {place}: "
        super().__init__(where + message)


class UnsupportedOps(CompilerInputError):
    """Operations that this compiler does not support, or that the device cannot run.

    Args:
        path: the model file, or another source of the operations.
        ops: for each, its type with opset and its unsupported feature, and its friendly name.
        remedies: sentences that name a remedy; empty if none is known.
    """

    def __init__(
        self, path: object, ops: Sequence[tuple[str, str]], remedies: Iterable[str] = ()
    ) -> None:
        self.ops = tuple(ops)
        kinds: dict[str, list[str]] = {}
        for kind, name in ops:
            kinds.setdefault(kind, []).append(name)
        listed = "; ".join(
            f"{kind} ({len(names)}: {_listed(names)})" for kind, names in sorted(kinds.items())
        )
        super().__init__("; ".join((f"{path}: operations not supported: {listed}", *remedies)))


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(repr(name[:200]) for name in names[:_LISTED_NAMES])
    more = len(names) - _LISTED_NAMES
    return f"{shown} and {more} more" if more > 0 else shown


class UnsupportedModel(CompilerInputError):
    """Architecture, element type or shape that this compiler does not support."""


class DoesNotFit(CompilerFault):
    """Need of more memory than the device has.

    Args:
        what: the operation or tensor.
        need_bytes: the bytes it needs.
        have_bytes: the bytes available.
    """

    def __init__(self, what: str, need_bytes: int, have_bytes: int) -> None:
        self.need_bytes = need_bytes
        self.have_bytes = have_bytes
        super().__init__(f"{what} needs {need_bytes} bytes of CMX, but a tile has {have_bytes}")
