"""The compiler's errors.

CompilerError
├── CompilerUsageError       you called it wrongly: an unknown option, a missing shape
├── CompilerInputError       the model is bad or not supported
│   ├── BadModel             a file is broken or inconsistent; names file and place
│   ├── UnsupportedOps       operations that this compiler does not know, all of them at once
│   └── UnsupportedModel     an architecture, type or shape that it does not know
└── CompilerFault            a limit of the device cannot be met
    ├── NotPeriodic          the layers of a folded model cannot be compiled as one
    └── DoesNotFit           a tensor or tile needs more memory than there is
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

_LONGEST = 2000
"""Characters of a message: names and values of a bad file may be of any length."""

RUN_ON_CPU = "run the model with OpenVINO on the CPU (npu-chat --device CPU)"
"""The remedy for models that OpenVINO computes and this compiler does not."""

_LISTED_NAMES = 5
"""How many ops of a kind a message names; the error's ``ops`` has all."""


def _clipped(text: str) -> str:
    half = _LONGEST // 2
    return text if len(text) <= _LONGEST else f"{text[:half]} … {text[-half:]}"


class CompilerError(Exception):
    """Anything that goes wrong in the compiler.

    Args:
        message: its middle is cut out where it is too long to be read.
    """

    def __init__(self, message: str) -> None:
        super().__init__(_clipped(message))


class CompilerUsageError(CompilerError):
    """The caller broke a rule of the interface."""


class CompilerInputError(CompilerError):
    """The model is bad or not supported."""


class CompilerFault(CompilerError):
    """The model cannot be laid out on the device."""


class NotPeriodic(CompilerFault):
    """The layers of a folded model have become different: they cannot be compiled as one."""


class BadModel(CompilerInputError):
    """A model file is broken or inconsistent.

    Args:
        path: the file or folder.
        message: what is wrong.
        place: where in it, e.g. a tensor or a layer.
    """

    def __init__(self, path: object, message: str, place: str | None = None) -> None:
        self.path = str(path)
        self.place = place
        where = f"{path}: " if place is None else f"{path}: {place}: "
        super().__init__(where + message)


class UnsupportedOps(CompilerInputError):
    """Operations that this compiler does not know, or that the device cannot run.

    Args:
        path: the model file, or what else has them.
        ops: for each, its type with opset and what of it is not supported, and its friendly name.
        remedies: sentences that say what to do; none if nothing is known to help.
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
    """An architecture, element type or shape that this compiler does not know."""


class DoesNotFit(CompilerFault):
    """Something needs more memory than the device has.

    Args:
        what: the operation or tensor.
        need_bytes: what it needs.
        have_bytes: what there is.
    """

    def __init__(self, what: str, need_bytes: int, have_bytes: int) -> None:
        self.need_bytes = need_bytes
        self.have_bytes = have_bytes
        super().__init__(f"{what} needs {need_bytes} bytes of CMX, a tile has {have_bytes}")
