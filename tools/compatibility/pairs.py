"""Classes that both packages have, and objects of each that are made alike."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from importlib import import_module
from typing import Any

import numpy as np
import openvino
import openvino_genai
from openvino_genai import py_openvino_genai

import genai_layer

PACKAGES = openvino_genai, genai_layer
HOMES = {
    "AdaptiveRKVConfig": "scheduler",
    "EncodedGenerationResult": "batching.results",
    "GenerationHandle": "batching.request",
    "GenerationOutput": "batching.outputs",
    "MeanStdPair": "perf_metrics",
    "PipelineMetrics": "batching.scheduler",
    "SDPerModelsPerfMetrics": "speculation.perf_metrics",
    "SDPerfMetrics": "speculation.perf_metrics",
    "SummaryStats": "perf_metrics",
    "VLMPerfMetrics": "vision.results",
    "VLMRawPerfMetrics": "vision.results",
    "WhisperDecodedResultChunk": "whisper.results",
    "WhisperDecodedResults": "whisper.results",
}
"""Modules here of classes that calls return, and that the namespace of openvino_genai lacks."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A class of both packages."""

    path: str
    there: type
    here: type

    @property
    def is_enumeration(self) -> bool:
        """True if the class has members with integer values."""
        return hasattr(self.there, "__members__")

    def samples(self) -> tuple[Any, Any] | None:
        """Return an object of each class, made alike; None if openvino_genai makes none so."""
        make = _first_member if self.is_enumeration else SAMPLES.get(self.path, _without_arguments)
        there = outcome(partial(make, openvino_genai, self.there))
        return None if isinstance(there, Exception) else (there, make(genai_layer, self.here))


def _first_member(_: Any, kind: Any) -> Any:
    return next(iter(kind.__members__.values()))


def _without_arguments(_: Any, kind: Any) -> Any:
    return kind()


_IDS = openvino.Tensor(np.array([[1, 2]]))
SAMPLES: dict[str, Callable[[Any, Any], Any]] = {
    "CacheEvictionConfig": lambda package, kind: kind(8, 8, 32, package.AggregationMode.SUM),
    "EmbedResult": lambda package, kind: kind(_IDS),
    "StructuredOutputConfig.Concat": lambda package, kind: kind("a", "b"),
    "StructuredOutputConfig.ConstString": lambda package, kind: kind("a"),
    "StructuredOutputConfig.EBNF": lambda package, kind: kind("a"),
    "StructuredOutputConfig.JSONSchema": lambda package, kind: kind("{}"),
    "StructuredOutputConfig.QwenXMLParametersFormat": lambda package, kind: kind("{}"),
    "StructuredOutputConfig.Regex": lambda package, kind: kind("a"),
    "StructuredOutputConfig.Tag": lambda package, kind: kind("<", "a", ">"),
    "StructuredOutputConfig.TagsWithSeparator": lambda package, kind: kind([], ","),
    "StructuredOutputConfig.TriggeredTags": lambda package, kind: kind(["<"], []),
    "StructuredOutputConfig.Union": lambda package, kind: kind("a", "b"),
    "TokenizedInputs": lambda package, kind: kind(_IDS, _IDS),
}
"""Makers of objects whose class needs arguments, from package and class."""


@cache
def pairs() -> list[Pair]:
    """Return the classes that both packages have, nested ones and those of ``HOMES`` included."""
    found = [*_pairs("", *PACKAGES)]
    for name, home in HOMES.items():
        here = getattr(import_module(f"genai_layer.{home}"), name)
        found.append(Pair(name, getattr(py_openvino_genai, name), here))
    return found


def _pairs(prefix: str, there: object, here: object) -> Iterator[Pair]:
    for name in public(there):
        pair = getattr(there, name), getattr(here, name, None)
        if all(isinstance(each, type) for each in pair):
            yield Pair(prefix + name, *pair)
            yield from _pairs(f"{prefix}{name}.", *pair)


def public(owner: object) -> list[str]:
    """Return the names of a module or a class that scripts use."""
    return [name for name in dir(owner) if not name.startswith("_")]


def outcome(act: Callable[[], Any]) -> Any:
    """Return the result of a call, or its exception."""
    try:
        return act()
    except Exception as error:  # any
        return error
