"""Forms in which functions and methods can be called, by place and by name.

Those of openvino_genai are read from the stubs that it ships. Here they are signatures and
overloads, or the functions of ``readers`` that sort arguments at run time.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from inspect import Parameter, Signature
from pathlib import Path
from typing import Any, get_overloads

from openvino_genai import py_openvino_genai

import genai_layer
from compatibility.pairs import outcome, pairs
from compatibility.readers import READERS, is_read

_NAMELESS = re.compile(r"arg\d")
"""Parameters that the stubs name by their place alone."""
_EMPTY = ("None", "[]", "{}", "()", "<factory>")
ABSENT = "absent"
_UNKNOWN = "..."
"""Default that the stubs leave out."""


@dataclass(frozen=True, slots=True)
class Form:
    """Parameters of a call, with the texts of defaults; empty without one."""

    parameters: dict[str, str] = field(default_factory=dict[str, str])
    more: bool = False
    """True if further arguments may be given by name."""

    def __str__(self) -> str:
        shown = [f"{name}={text}" if text else name for name, text in self.parameters.items()]
        return f"({', '.join([*shown, *['**'] * self.more])})"


@dataclass(frozen=True, slots=True)
class Function:
    """A function or method of both packages."""

    path: str
    forms: list[Form]
    """Forms there."""
    call: Any
    """The function here."""
    is_method: bool
    settable: list[str]
    """Properties there that can be set, which the constructors of configurations take by name."""

    @property
    def here(self) -> str:
        """Forms here, as a text."""
        return " or ".join(map(_shown, self.signatures())) or ABSENT

    def signatures(self) -> list[Signature]:
        """Return the signatures here, without self."""
        if self.call is None:
            return []
        found = map(inspect.signature, _overloads(self.call) or [self.call])
        return [_without_self(each) for each in found] if self.is_method else [*found]

    def accepts(self, form: Form) -> bool:
        """Return whether the function here can be called in a form."""
        if self.path in READERS:
            return is_read(self.path, [*form.parameters])
        signatures = self.signatures()
        return all(
            any(takes(signature, form) for signature in signatures)
            for takes in (_by_place, self._by_name)
        )

    def _by_name(self, signature: Signature, form: Form) -> bool:
        if any(map(_NAMELESS.fullmatch, form.parameters)):
            return True
        parameters = signature.parameters
        if isinstance(outcome(partial(signature.bind, **_named(form))), Exception):
            return False
        kinds = {each.kind for each in parameters.values()}
        more = Parameter.VAR_KEYWORD in kinds or {*self.settable} <= {*parameters}
        return (more or not form.more) and all(
            name in parameters and _same(text, parameters[name].default)
            for name, text in form.parameters.items()
        )


def _by_place(signature: Signature, form: Form) -> bool:
    """Return whether arguments by place get the names of the form; a single one may get any."""
    bound = outcome(partial(signature.bind, *form.parameters))
    if isinstance(bound, Exception):
        return False
    alone = len(form.parameters) == 1
    return alone or bound.arguments == _named(form)


def _named(form: Form) -> dict[str, str]:
    return {name: name for name in form.parameters}


def _same(there: str, default: object) -> bool:
    """Return whether a default here is that of the stubs, or both are missing or empty."""
    if not there or default is Parameter.empty:
        return not there
    here = repr(default)
    return there == _UNKNOWN or default is ... or here == there or {here, there} <= {*_EMPTY}


def _shown(signature: Signature) -> str:
    bare = [each.replace(annotation=Parameter.empty) for each in signature.parameters.values()]
    return str(Signature(bare)).replace("Ellipsis", "...")


def _overloads(call: Any) -> Sequence[Callable[..., Any]]:
    return get_overloads(call) if hasattr(call, "__module__") else []


def _without_self(signature: Signature) -> Signature:
    return signature.replace(parameters=[*signature.parameters.values()][1:])


def functions() -> Iterator[Function]:
    """Yield the functions and methods that openvino_genai's stubs have, of pairs of classes."""
    stubs = ast.parse(
        Path(py_openvino_genai.__file__).with_name("py_openvino_genai.pyi").read_text()
    )
    for name, forms in _forms(stubs).items():
        if hasattr(genai_layer, name):
            yield Function(name, forms, getattr(genai_layer, name), False, [])
    for pair in pairs():
        settable = [
            name
            for name, value in vars(pair.there).items()
            if isinstance(value, property) and value.fset is not None
        ]
        for name, forms in _forms(_find(stubs, pair.path)).items():
            if not pair.is_enumeration and not (name.startswith("__") and name not in _CALLED):
                call = getattr(pair.here, name, None)
                yield Function(f"{pair.path}.{name}", forms, call, True, settable)


_CALLED = ("__init__", "__call__")


def _find(stubs: ast.Module, path: str) -> ast.ClassDef:
    found: Any = stubs
    for name in path.split("."):
        found = next(
            each for each in found.body if isinstance(each, ast.ClassDef) and each.name == name
        )
    return found


def _forms(owner: ast.Module | ast.ClassDef) -> dict[str, list[Form]]:
    """Return the forms of the functions in a part of the stubs, by name."""
    found: dict[str, list[Form]] = {}
    for each in owner.body:
        if isinstance(each, ast.FunctionDef) and not any(map(_is_property, each.decorator_list)):
            found.setdefault(each.name, []).append(_form(each))
    return found


def _is_property(decorator: ast.expr) -> bool:
    return ast.unparse(decorator).endswith(("property", ".setter"))


def _form(function: ast.FunctionDef) -> Form:
    names = [each.arg for each in function.args.args]
    defaults = [ast.unparse(each) for each in function.args.defaults]
    texts = [""] * (len(names) - len(defaults)) + defaults
    parameters = dict(zip(names, texts, strict=True))
    parameters.pop("self", None)
    return Form(parameters, function.args.kwarg is not None)
