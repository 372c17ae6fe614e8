"""Walk over the arguments and settable fields of genai_layer's public names, by introspection.

A new class, method, argument or field is found by itself; a call needs an example of the other
required arguments.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from functools import partial
from operator import attrgetter
from types import NoneType, SimpleNamespace, UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    Union,
    get_args,
    get_origin,
    get_overloads,
    get_type_hints,
)

import numpy as np
from pydantic import BaseModel

import genai_layer
from genai_layer import GenAIError

_LISTS = {list, tuple, set, Sequence, Iterable, AbstractSet}
_ANY_LIST = "a list of anything"

KINDS: dict[str, tuple[Callable[[], Any], set[Any]]] = {
    "None": (lambda: None, {NoneType}),
    "int": (lambda: 3, {int, float, bool}),
    "huge": (lambda: 10**400, {bool}),
    "float": (lambda: 1.5, {float, bool}),
    "NaN": (lambda: float("nan"), {bool}),
    "infinity": (lambda: float("inf"), {bool}),
    "str": (lambda: "ab\nc", {str, Literal}),
    "bytes": (lambda: b"ab", {str, bytes}),
    "dict": (lambda: {"role": "user", "content": "ab"}, {dict, Mapping}),
    "list of str": (lambda: ["a", "b"], _LISTS),
    "list of int": (lambda: [1, 2], _LISTS),
    "list of NaN": (lambda: [float("nan")] * 9, {_ANY_LIST}),
    "tuple": (lambda: ("a", "b"), _LISTS),
    "set": (lambda: {"a", "b"}, _LISTS),
    "generator": (lambda: (each for each in ("a", "b")), _LISTS),
    "array": (lambda: np.array([1, 2]), {*_LISTS, np.ndarray}),
    "array of NaN": (lambda: np.full(400, np.nan, np.float32), {_ANY_LIST, np.ndarray}),
    "object": (object, set()),
}
"""Values of each kind, and the alternatives of an annotation that may accept them."""

_NOUNS = {
    **dict.fromkeys(("inputs", "prompt", "prompts", "input_ids"), "token ids"),
    **dict.fromkeys(("audio_inputs", "raw_speech_input"), "the audio"),
}
"""Names of arguments in messages, if they are not those of the signature."""

_MORE = {
    "stop_strings": {"str"},
    "Tokenizer.encode.prompt": {"list of str", "tuple", "set", "generator"},
    "Tokenizer.encode.prompts": {"str", "bytes"},
    "Tokenizer.encode.prompts_2": {"None"},
    "input_ids": {"array", "array of NaN"},
    "attention_mask": {"array", "array of NaN"},
}
"""Kinds that an argument's documentation adds to its annotation."""

Examples = Mapping[str, Mapping[str, Any]]
"""Arguments of a valid call, by the function's qualified name."""


@dataclass(frozen=True)
class Place:
    """An argument of a function, or a field of an object."""

    name: str
    argument: str
    accepts: frozenset[Any]
    """Alternatives of the annotation."""
    use: Callable[[Any], Any]
    """Pass a value there."""


def outcome(place: Place, value: Any) -> str:
    """Return "accepted", or the message of a typed error; other errors are raised."""
    try:
        place.use(value)
    except NotImplementedError:
        return "abstract"
    except (TypeError, GenAIError) as error:
        return str(error)
    return "accepted"


def complaint(place: Place, kind: str) -> str:
    """Return what is wrong with the outcome of one kind of value; empty if nothing is."""
    make, alternatives = KINDS[kind]
    if kind == "None" and NoneType in place.accepts:
        return ""  # the default, of which a call may do much
    try:
        found = outcome(place, make())
    except Exception as error:  # any other error is the finding
        return f"{place.name}({place.argument}: {kind}) raises {error!r}"
    more = _MORE.get(place.argument) or _MORE.get(f"{place.name}.{place.argument}", ())
    allowed = place.accepts & {*alternatives, Any, object} or kind in more
    if found == "abstract" or (found == "accepted" and allowed):
        return ""
    if found != "accepted" and (allowed or _is_good(found, place.argument)):
        return ""
    return f"{place.name}({place.argument}: {kind}): {found}"


def _is_good(message: str, argument: str) -> bool:
    """Return whether a message is one line that names the argument and a remedy."""
    named = argument.rstrip("s") in message or _NOUNS.get(argument, argument) in message
    return named and "\n" not in message and bool(re.search(r"[;:] \w+", message))


def public_names() -> set[str]:
    """Return the public names, and those of classes in public classes, e.g. "A.Config"."""
    found = {*genai_layer.__all__}
    for name in genai_layer.__all__:
        owner = getattr(genai_layer, name)
        if isinstance(owner, type):
            nested = inspect.getmembers(owner, inspect.isclass)
            found |= {f"{name}.{each}" for each, _ in nested if not each.startswith("_")}
    return found


def places(name: str, examples: Examples, make: Callable[[], Any]) -> Iterator[Place]:
    """Yield the places of a public name.

    Args:
        name: the public name.
        examples: of its constructor and methods.
        make: returns an object of the class.
    """
    thing = attrgetter(name)(genai_layer)
    if not isinstance(thing, type):
        yield from _of_function(name, thing, thing, examples)
        return
    if issubclass(thing, Enum | Exception):
        return
    if inspect.isfunction(thing.__init__):
        yield from _of_function(name, thing.__init__, thing, examples)
    for method in _methods(thing):
        owner = f"{name}.{method}"

        call = partial(_call_method, make, method)
        yield from _of_function(owner, getattr(thing, method), call, examples)
    yield from _of_fields(name, thing, make)


def _call_method(make: Callable[[], Any], method: str, *args: Any, **named: Any) -> Any:
    return getattr(make(), method)(*args, **named)


def _methods(owner: type) -> Iterator[str]:
    for name, member in inspect.getmembers(owner, inspect.isfunction):
        if not name.startswith("_") and member.__module__.startswith("genai_layer"):
            yield name


def _of_function(
    name: str, function: Any, call: Callable[..., Any], examples: Examples
) -> Iterator[Place]:
    source = inspect.unwrap(function)
    forms = [(form, _parameters(form)) for form in get_overloads(source) or [source]]
    accepts: dict[str, frozenset[Any]] = {}
    for form, parameters in forms:
        for argument, hint in _hints(form, parameters).items():
            accepts[argument] = accepts.get(argument, frozenset()) | _alternatives(hint)
    known = examples.get(name, {})
    for _, parameters in forms:
        for argument, each in parameters.items():
            by_name = each.kind is not each.POSITIONAL_ONLY
            others = {
                other: known[other]
                for other, one in parameters.items()
                if other != argument and (one.default is one.empty or other in known)
            }
            use = partial(_call, call, others if by_name else {}, argument if by_name else None)
            yield Place(name, argument, accepts[argument], use)


def _parameters(form: Any) -> dict[str, inspect.Parameter]:
    found = inspect.signature(form).parameters
    return {
        name: each
        for name, each in found.items()
        if name != "self" and each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)
    }


def _call(
    call: Callable[..., Any], others: Mapping[str, Any], argument: str | None, value: Any
) -> Any:
    return call(value) if argument is None else call(**{**others, argument: value})


def _hints(function: Any, parameters: Mapping[str, inspect.Parameter]) -> dict[str, Any]:
    annotations = {name: each.annotation for name, each in parameters.items()}
    owner = SimpleNamespace(__annotations__=annotations)
    return get_type_hints(owner, getattr(function, "__globals__", None))


def _of_fields(name: str, owner: type, make: Callable[[], Any]) -> Iterator[Place]:
    if issubclass(owner, BaseModel):
        hints = {field: each.annotation for field, each in owner.model_fields.items()}
    elif is_dataclass(owner):
        known = get_type_hints(owner)
        hints = {each.name: known[each.name] for each in fields(owner)}
    else:
        return
    for field, hint in hints.items():
        yield Place(f"{name}.{field}", field, _alternatives(hint), partial(_set, make, field))


def _set(make: Callable[[], Any], field: str, value: Any) -> None:
    setattr(make(), field, value)


def _alternatives(hint: Any) -> frozenset[Any]:
    if get_origin(hint) in (Union, UnionType):
        return frozenset().union(*map(_alternatives, get_args(hint)))
    if get_origin(hint) is Annotated:
        return _alternatives(get_args(hint)[0])
    more = {_ANY_LIST} if get_args(hint) == (Any,) else set[str]()
    return frozenset({get_origin(hint) or hint, *more})
