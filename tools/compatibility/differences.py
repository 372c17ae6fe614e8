"""Differences between the public names of openvino_genai and those of genai_layer.

A difference is what a script written for openvino_genai may notice: a name, member, value,
operation or form of a call that genai_layer lacks or has otherwise, or an exception of another
type. Additions of genai_layer are no differences, but for members of enumerations.
"""

from __future__ import annotations

import copy
import inspect
import operator
import pickle
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from types import ModuleType
from typing import Any

from compatibility.forms import ABSENT, Function, functions
from compatibility.pairs import PACKAGES, Pair, outcome, pairs, public
from compatibility.refusals import REFUSALS


@dataclass(frozen=True, order=True, slots=True)
class Difference:
    """A name with what it is in each package."""

    path: str
    there: str
    here: str


def differences() -> list[Difference]:
    """Return all differences, by name."""
    aspects = (_members, _integers, _values, _setters, _getters, _bases, _operations)
    found = [*_names(), *_refusals()]
    found += [each for pair in pairs() for aspect in aspects for each in aspect(pair)]
    found += [each for function in functions() for each in _forms(function)]
    return sorted({*found})


def _names() -> Iterator[Difference]:
    """Compare the packages' namespaces."""
    there, here = PACKAGES
    for name in public(there):
        if not hasattr(here, name):
            yield Difference(name, _kind(getattr(there, name)), ABSENT)


def _kind(value: object) -> str:
    kinds = {type: "class", ModuleType: "module"}
    return next((noun for kind, noun in kinds.items() if isinstance(value, kind)), "function")


def _members(pair: Pair) -> Iterator[Difference]:
    """Compare the names of members; here, some exist only in objects."""
    samples = pair.samples()
    here = {*dir(pair.here), *dir(samples and samples[1])}
    for name in public(pair.there):
        if not pair.is_enumeration and name not in here:
            yield Difference(f"{pair.path}.{name}", "member", ABSENT)


def _integers(pair: Pair) -> Iterator[Difference]:
    """Compare the members of enumerations by value, in both directions."""
    there, here = (
        {name: str(member.value) for name, member in getattr(each, "__members__", {}).items()}
        for each in (pair.there, pair.here)
    )
    for name in {**there, **here}:
        values = there.get(name, ABSENT), here.get(name, ABSENT)
        if values[0] != values[1]:
            yield Difference(f"{pair.path}.{name}", *values)


def _values(pair: Pair) -> Iterator[Difference]:
    """Compare the values of new objects."""
    samples = pair.samples()
    if samples is None or pair.is_enumeration:
        return
    for name in public(pair.there):
        kind = getattr(pair.there, name)
        if not isinstance(kind, property) or not hasattr(samples[1], name):
            continue
        there, here = (getattr(each, name) for each in samples)
        if plain(there) != plain(here):
            yield Difference(f"{pair.path}.{name}", plain(there), plain(here))


def _setters(pair: Pair) -> Iterator[Difference]:
    """Compare the properties that can be set, also of classes that nobody makes objects of."""
    samples = pair.samples()
    for name in public(pair.there):
        kind = getattr(pair.there, name)
        if not isinstance(kind, property) or kind.fset is None:
            continue
        if samples is None or not hasattr(samples[1], name):
            settable = _is_settable(pair.here, name)
        else:
            again = partial(setattr, samples[1], name, getattr(samples[1], name))
            settable = not isinstance(outcome(again), Exception)
        if not settable:
            yield Difference(f"{pair.path}.{name}", "can be set", "cannot be set")


def _is_settable(owner: type, name: str) -> bool:
    """Return whether objects of a class accept a value for an attribute, as the class states it."""
    attribute = inspect.getattr_static(owner, name, None)
    frozen = getattr(getattr(owner, "__dataclass_params__", None), "frozen", False)
    return attribute.fset is not None if isinstance(attribute, property) else not frozen


def _getters(pair: Pair) -> Iterator[Difference]:
    """Compare what the getters of new objects return."""
    samples = pair.samples()
    if samples is None:
        return
    for name in public(pair.there):
        if _GETTER.match(name) and hasattr(pair.here, name):
            there, here = (outcome(getattr(each, name)) for each in samples)
            if plain(there) != plain(here) and not isinstance(there, TypeError):
                yield Difference(f"{pair.path}.{name}()", plain(there), plain(here))


_GETTER = re.compile("(as|get|is|to)_")


def plain(value: Any) -> str:
    """Return a value as a text that is the same for equal values of both packages."""
    match value:
        case None | bool() | int() | str():
            return repr(value)
        case float():
            return f"{value:.7g}"
        case list() | tuple():
            return f"[{', '.join(map(plain, value))}]"
        case set():
            return f"{{{', '.join(sorted(map(plain, value)))}}}"
        case dict():
            return f"{{{', '.join(f'{plain(key)}: {plain(each)}' for key, each in value.items())}}}"
        case type():
            return value.__name__
        case Exception():
            return type(value).__name__
        case _ if hasattr(value, "mean"):
            return plain([getattr(value, name, 0.0) for name in ("mean", "std", "min", "max")])
        case _:
            return str(value) if hasattr(value, "value") else type(value).__name__


def _bases(pair: Pair) -> Iterator[Difference]:
    """Compare the classes' bases."""
    here = {each.__name__ for each in pair.here.__mro__}
    for base in pair.there.__mro__[1:]:
        if base.__module__.startswith("openvino_genai") and base.__name__ not in here:
            yield Difference(f"{pair.path} is a {base.__name__}", "yes", "no")


def _operations(pair: Pair) -> Iterator[Difference]:
    """Compare what Python's operators and functions do with an object."""
    samples = pair.samples()
    if samples is None:
        return
    acts = OPERATIONS | INTEGERS if pair.is_enumeration else OPERATIONS
    for name, act in acts.items():
        there, here = (outcome(partial(act, each)) for each in samples)
        addition = isinstance(there, Exception) and not pair.is_enumeration
        if not addition and plain(there) != plain(here):
            yield Difference(f"{name} of {pair.path}", plain(there), plain(here))


def _own(method: str, function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return an operation that fails for classes without the method."""

    def act(sample: Any) -> Any:
        if getattr(type(sample), method, None) in (None, getattr(object, method, None)):
            raise TypeError(method)
        return function(sample)

    return act


OPERATIONS: dict[str, Callable[[Any], Any]] = {
    "bool": bool,
    "hash": lambda sample: type(hash(sample)),
    "iter": list,
    "len": len,
    "repr": _own("__repr__", repr),
    "str": _own("__str__", str),
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": lambda sample: pickle.loads(pickle.dumps(sample)),
    "+": _own("__add__", lambda sample: sample + sample),
    "+=": _own("__iadd__", lambda sample: operator.iadd(sample, sample)),
    "|": _own("__or__", lambda sample: sample | sample),
}
INTEGERS: dict[str, Callable[[Any], Any]] = {
    "int": int,
    "index": operator.index,
    "==": lambda sample: sample == copy.copy(sample),
    "== integer": lambda sample: sample == int(sample),
    "<": lambda sample: sample < sample,
    "member by integer": lambda sample: type(sample)(int(sample)),
    "member by keyword": lambda sample: type(sample)(value=int(sample)),
    "member by unknown integer": lambda sample: int(type(sample)(99)),
    "member by text": lambda sample: type(sample)(sample.name),
    "name and value": lambda sample: [sample.name, sample.value],
}
"""Operations of members of enumerations."""


def _refusals() -> Iterator[Difference]:
    """Compare the exceptions of wrong calls: those here have to be of the type there."""
    for name, act in REFUSALS.items():
        there, here = (outcome(partial(act, package)) for package in PACKAGES)
        if isinstance(there, Exception) != isinstance(here, Exception) or (
            isinstance(there, Exception) and not isinstance(here, type(there))
        ):
            yield Difference(name, plain(there), plain(here))


def _forms(function: Function) -> Iterator[Difference]:
    """Compare the forms in which a function or method can be called."""
    for form in function.forms:
        if not function.accepts(form):
            yield Difference(f"{function.path}{form}", "a form of the call", function.here)
