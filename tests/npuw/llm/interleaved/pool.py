"""Compiled models for interleaved conversations: tiny ones, in all configurations."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from interleaved.moments import Moments, WatchedDevice
from interleaved.reference import Limits
from interleaved.stateful import Stateful
from npuw_layer import CompiledModel, Core
from npuw_layer.execution.devices.make import make_device
from npuw_layer.llm.compiled import _prefixes
from npuw_layer.llm.plan.stages import plan
from npuw_layer.options import RUN_TIME, parse_options

sys.path.append(str(Path(__file__).parents[3] / "goldens"))
import families  # after sys.path is set

LENGTHS = {"NPUW_LLM_MAX_PROMPT_LEN": 64, "NPUW_LLM_MIN_RESPONSE_LEN": 64}
CACHING = {
    "NPUW_LLM_ENABLE_PREFIX_CACHING": "YES",
    "NPUW_LLM_PREFIX_CACHING_BLOCK_SIZE": 8,
    "NPUW_LLM_PREFIX_CACHING_MAX_NUM_BLOCKS": 6,
}
LADDER = {"NPUW_LLM_PREFILL_CHUNK_SIZE": 16, "NPUW_LLM_GENERATE_PYRAMID_STEPS": "24,72"}
RESUMES = {"NPUW_LLM_ENABLE_CONTINUOUS_PREFILL": "YES"}
SLOTS = {"NPUW_LLM_BATCH_SLOTS": "2,4"}
COPIES = {"NPUW_LLM_KV_SWITCHOVER": "COPY"}
TRANSPOSED = {"NPUW_LLM_OPTIMIZE_V_TENSORS": "YES"}
BLOCKS = {"NPUW_LLM_ENABLE_BLOCK_BASED_KV_CACHE": "YES"}
WIDE = {"NPUW_LLM_MAX_GENERATION_TOKEN_LEN": 3}
OWN_HEADS = {"NPUW_LLM_SHARED_HEAD": "NO"}
ON_CPU = {"NPUW_DEVICES": "CPU"}
IN_TILES = {f"NPUW_LLM_{stage}_ATTENTION_HINT": "HFA" for stage in ("PREFILL", "GENERATE")}
AS_STORED = {name: "DYNAMIC" for name in IN_TILES}


def full(policy: str, sinks: int = 4) -> dict[str, Any]:
    """Return the options for a full cache."""
    return {"NPUW_LLM_ON_FULL": policy, "NPUW_LLM_SINK_TOKENS": sinks}


@dataclass(frozen=True)
class Group:
    """A model, and configurations that can continue one another's conversations.

    Attributes:
        family: name among the families of the goldens.
        precision: INFERENCE_PRECISION_HINT and KV_CACHE_PRECISION.
        configurations: other options.
        error: tolerance, relative to the largest logit.
        layers: number of layers; 0 for the family's own number.
    """

    family: str
    configurations: tuple[Mapping[str, Any], ...]
    precision: tuple[str, str] = ("f32", "")
    error: float = 2e-5
    layers: int = 0

    def options(self, number: int) -> dict[str, Any]:
        """Return the options of a configuration."""
        precision, kv = self.precision
        kind = {"INFERENCE_PRECISION_HINT": precision, "KV_CACHE_PRECISION": kv}
        return LENGTHS | kind | dict(self.configurations[number])

    def limits(self, number: int) -> Limits:
        """Return the limits of a configuration by NPUW's rules; all lengths are multiples of 64."""
        options = self.options(number)
        prompt = options["NPUW_LLM_MAX_PROMPT_LEN"]
        return Limits(
            prompt,
            prompt + options["NPUW_LLM_MIN_RESPONSE_LEN"],
            8 if "NPUW_LLM_MAX_GENERATION_TOKEN_LEN" in options else 1,
            options.get("NPUW_LLM_ON_FULL", "ERROR"),
            options.get("NPUW_LLM_SINK_TOKENS", 4),
            plan(parse_options(options)).resumes,
        )


GROUPS = {
    "llama": Group(
        "llama_linear",
        (
            RESUMES | LADDER | CACHING | SLOTS,
            RESUMES | COPIES | full("TRUNCATE") | CACHING | SLOTS,
            LADDER | WIDE | OWN_HEADS | SLOTS | full("SLIDE") | TRANSPOSED,
            RESUMES | LADDER | CACHING | SLOTS | BLOCKS,
        ),
    ),
    "llama on both": Group(
        "llama_biased",
        (
            RESUMES | LADDER | CACHING | full("TRUNCATE", 16),
            RESUMES | ON_CPU | full("SLIDE"),
            ON_CPU | LADDER | CACHING | WIDE | SLOTS | full("TRUNCATE") | TRANSPOSED | BLOCKS,
        ),
    ),
    "softcap": Group(
        "gemma2",
        (
            RESUMES | LADDER | CACHING | full("TRUNCATE") | SLOTS,
            WIDE | COPIES | LADDER | TRANSPOSED,
            RESUMES | LADDER | OWN_HEADS | full("TRUNCATE") | BLOCKS,
        ),
    ),
    "sliding window": Group(
        "mistral",
        (
            RESUMES | LADDER | CACHING | SLOTS | OWN_HEADS | BLOCKS,
            RESUMES | WIDE | COPIES | full("TRUNCATE", 0),
        ),
    ),
    "attention by itself": Group(
        "mistral",
        (
            RESUMES | LADDER | CACHING | IN_TILES | full("TRUNCATE"),
            IN_TILES | LADDER | WIDE | COPIES | OWN_HEADS,
            RESUMES | LADDER | ON_CPU | AS_STORED | CACHING,
        ),
    ),
    "learned positions": Group(
        "gpt2",
        (RESUMES | LADDER | CACHING | full("TRUNCATE"), WIDE | SLOTS),
    ),
    "offload": Group(
        "llama_linear",
        (
            RESUMES | LADDER | CACHING | {"NPUW_WEIGHTS_OFFLOAD": "ASYNC"} | full("TRUNCATE"),
            {"NPUW_WEIGHTS_OFFLOAD": "SYNC"} | LADDER | full("SLIDE") | BLOCKS,
        ),
        layers=5,
    ),
    "i8": Group(
        "qwen3",
        (
            RESUMES | LADDER | CACHING | full("TRUNCATE") | SLOTS,
            RESUMES | COPIES | WIDE | full("SLIDE") | TRANSPOSED,
            LADDER | CACHING | SLOTS | full("TRUNCATE") | BLOCKS,
        ),
        ("f32", "i8"),
        error=0.1,
    ),
    "bf16": Group(
        "llama_biased",
        (RESUMES | LADDER | CACHING | full("SLIDE") | SLOTS, COPIES | WIDE | OWN_HEADS),
        ("bf16", ""),
        error=0.1,
    ),
}


FEW = ("llama", "llama on both", "softcap")
"""Groups of every test run; their models are compiled in seconds."""


class Pool:
    """Models of one group, compiled once into a cache on disk, and started from it.

    Args:
        name: name of the group.
        folder: folder of the models and the cache; removed with the pool.
    """

    def __init__(self, name: str, folder: tempfile.TemporaryDirectory[str]) -> None:
        self.group = GROUPS[name]
        self._keeps = folder
        self.folder = Path(folder.name)
        self.moments = Moments()
        description = deeper(families.descriptions()[self.group.family], self.group.layers)
        self._model = families.write_folder(self.folder / "model", description)
        self.stateful = Stateful(self._model)
        self._first: dict[int, CompiledModel] = {}

    def begin(self, number: int) -> CompiledModel:
        """Return a configuration's model in the state right after compilation."""
        if number not in self._first:
            self._first[number] = self.start(number)
        first = self._first[number]
        prefixes = _prefixes(first._compiled.options)
        return CompiledModel(replace(first._compiled, prefixes=prefixes))

    def start(self, number: int) -> CompiledModel:
        """Compile a model, or load it from the cache."""
        config = self._config(number)
        return self._core(config).compile_model(self._model, "NPU", config)

    def import_again(self, number: int) -> CompiledModel:
        """Export a model, and import it."""
        config = self._config(number)
        blob = self.begin(number).export_model()
        given = {name: value for name, value in config.items() if name in RUN_TIME}
        given |= {"WEIGHTS_PATH": str(self._model)}
        return self._core(config).import_model(blob, "NPU", given)

    def exports(self, number: int) -> bool:
        """Return whether a configuration can be exported."""
        options = self.group.options(number)
        return not {"NPUW_DEVICES", "NPUW_WEIGHTS_OFFLOAD"} & options.keys()

    def _config(self, number: int) -> dict[str, Any]:
        return self.group.options(number) | {"CACHE_DIR": str(self.folder / "cache")}

    def _core(self, config: Mapping[str, Any]) -> Core:
        device = make_device(parse_options(config), [], None)
        return Core(device=WatchedDevice(device, self.moments))


def deeper(description: Mapping[str, Any], layers: int) -> dict[str, Any]:
    """Return a description with more layers; 0 leaves it unchanged."""
    if not layers:
        return dict(description)
    shapes = dict(description["tensors"])
    for name, shape in description["tensors"].items():
        if ".layers.0." in name:
            for layer in range(layers):
                shapes[name.replace(".layers.0.", f".layers.{layer}.")] = shape
    config = description["config"] | {"num_hidden_layers": layers}
    return {**description, "config": config, "tensors": shapes}


@cache
def pool(name: str) -> Pool:
    """Return the pool of a group; its folder is removed with the process."""
    return Pool(name, tempfile.TemporaryDirectory(prefix="interleaved-"))
