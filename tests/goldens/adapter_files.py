"""LoRA adapter files for the demo model, and the generations that use them.

tools/make_lora_goldens.py runs them in the real openvino_genai, tests in ours.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

PREFIX = "base_model.model."
LAYERS = 4
ATTENTION = {
    "self_attn.q_proj": (256, 256),
    "self_attn.k_proj": (256, 128),
    "self_attn.v_proj": (256, 128),
    "self_attn.o_proj": (256, 256),
}
MLP = {"mlp.gate_proj": (256, 704), "mlp.up_proj": (256, 704), "mlp.down_proj": (704, 256)}

Tensors = dict[str, np.ndarray]


def write_tensors(path: Path, tensors: Mapping[str, np.ndarray]) -> Path:
    """Write a safetensors file; 16-bit integers are the raw bits of bf16."""
    kinds = {"float32": "F32", "float16": "F16", "uint16": "BF16", "int64": "I64"}
    header: dict[str, object] = {"__metadata__": {"format": "pt"}}
    content = b""
    for name, values in tensors.items():
        header[name] = {
            "dtype": kinds[values.dtype.name],
            "shape": list(values.shape),
            "data_offsets": [len(content), len(content) + values.nbytes],
        }
        content += values.tobytes()
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + content)
    return path


def draw(
    layers: Mapping[str, tuple[int, int]], rank: int, seed: int, scale: float = 1.4
) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Draw A and B f32 of each layer, large enough to change the generated text."""
    random, found = np.random.RandomState(seed), {}
    for name, (inputs, outputs) in layers.items():
        a = random.standard_normal((rank, inputs)) / np.sqrt(inputs)
        b = random.standard_normal((outputs, rank)) * (scale / np.sqrt(rank))
        found[name] = a.astype(np.float32), b.astype(np.float32)
    return found


def every(parts: Mapping[str, tuple[int, int]]) -> dict[str, tuple[int, int]]:
    """Return the names of these parts in all layers of the demo model, with their widths."""
    return {f"model.layers.{n}.{part}": w for n in range(LAYERS) for part, w in parts.items()}


def peft(pairs: Mapping[str, tuple[np.ndarray, np.ndarray]]) -> Tensors:
    """Name tensors as PEFT does."""
    named = {}
    for layer, (a, b) in pairs.items():
        named[f"{PREFIX}{layer}.lora_A.weight"] = a
        named[f"{PREFIX}{layer}.lora_B.weight"] = b
    return named


def kohya(pairs: Mapping[str, tuple[np.ndarray, np.ndarray]]) -> Tensors:
    """Name tensors as kohya does, in f16, with an alpha that is ignored."""
    named = {}
    for layer, (a, b) in pairs.items():
        name = PREFIX + layer.replace(".", "_")
        named[f"{name}.lora_down.weight"] = a.astype(np.float16)
        named[f"{name}.lora_up.weight"] = b.astype(np.float16)
        named[f"{name}.alpha"] = np.array(64, np.float16)
    return named


def bf16(pairs: Mapping[str, tuple[np.ndarray, np.ndarray]]) -> Tensors:
    """Name tensors as PEFT does, in bf16."""
    return {name: (v.view(np.uint32) >> 16).astype(np.uint16) for name, v in peft(pairs).items()}


FILES: Mapping[str, Callable[[], Tensors]] = {
    "all": lambda: peft(draw(every(ATTENTION | MLP), 8, 1)),
    "attention": lambda: peft(draw(every(ATTENTION), 4, 2)),
    "kohya": lambda: kohya(draw(every(MLP), 3, 3)),
    "head": lambda: peft(draw({"lm_head": (256, 2048)}, 2, 4, 3.0)),
    "bf16": lambda: bf16(draw(every(ATTENTION), 5, 5)),
}


def write_files(folder: Path) -> dict[str, Path]:
    """Write all adapters into a folder."""
    return {
        name: write_tensors(folder / f"{name}.safetensors", make()) for name, make in FILES.items()
    }


Pairs = Sequence[tuple[str, float]]


@dataclass(frozen=True, slots=True)
class Step:
    """One generation: the adapters that it names, or None to keep the current ones."""

    adapters: Pairs | None = None
    defaults: bool = False
    """True to use the pipeline's configuration, instead of one without adapters."""


FIRST: Pairs = [("all", 1.0), ("attention", 0.5), ("kohya", 0.0), ("head", 0.0), ("bf16", 0.0)]
"""Adapters at construction of the pipeline."""

STEPS = {
    "as it was made": Step(),
    "other alphas": Step(
        [("all", 0.8), ("attention", 0.5), ("kohya", 0.0), ("head", 0.2), ("bf16", 0.1)]
    ),
    "one": Step([("all", 1.0)]),
    "as before": Step(),
    "none": Step([]),
    "still none": Step(),
    "another alpha": Step([("all", 0.8)]),
    "and another": Step([("attention", 1.0)]),
    "a negative alpha": Step([("all", -0.9)]),
    "another": Step([("attention", 1.25)]),
    "names of kohya": Step([("kohya", 2.0)]),
    "the head": Step([("head", 1.5)]),
    "bf16": Step([("bf16", 1.5)]),
    "two at once": Step([("attention", 0.7), ("kohya", 1.7)]),
    "two in another order": Step([("kohya", 1.7), ("attention", 0.7)]),
    "four at once": Step([("all", 0.3), ("attention", 0.7), ("kohya", 1.0), ("head", 0.9)]),
    "the pipeline's own": Step(defaults=True),
    "none at last": Step([]),
}
"""Generations of one pipeline, in order.

Alphas alone change only if the adapters cover all adapted layers and the last alpha changes, too;
otherwise openvino_genai 2026.4.1 fails ("Tensor was not initialized"), or ignores the change.
"""

FIXED: Pairs = [("all", 0.8), ("kohya", 0.5)]
"""Adapters of pipelines in the other modes."""

MODES = ("MODE_AUTO", "MODE_DYNAMIC", "MODE_STATIC_RANK", "MODE_STATIC", "MODE_FUSE")
PROMPTS = ("What is an NPU?", "How does the driver load a blob?")
NEW_TOKENS = 24
EXACT = {"INFERENCE_PRECISION_HINT": "f32"}


def ask(genai: object, pipeline: object, step: Step, adapters: Mapping[str, object]) -> list[str]:
    """Generate for the prompts, in our pipeline or the real one; adapters change at the first."""
    if step.defaults:
        return [pipeline.generate(each, max_new_tokens=NEW_TOKENS) for each in PROMPTS]
    said = []
    for number, prompt in enumerate(PROMPTS):
        config = genai.GenerationConfig(max_new_tokens=NEW_TOKENS)
        if step.adapters is not None and number == 0:
            config.adapters = config_of(genai, step.adapters, adapters)
        said.append(pipeline.generate(prompt, config))
    return said


def config_of(genai: object, pairs: Pairs, adapters: Mapping[str, object]) -> object:
    """Return an AdapterConfig of adapters by name."""
    return genai.AdapterConfig([(adapters[name], alpha) for name, alpha in pairs])


def facts(genai: object, adapters: Mapping[str, object]) -> dict[str, object]:
    """Return properties of AdapterConfig and Adapter, ours or the real ones, as plain values."""
    kind, (one, two, *_) = genai.AdapterConfig, adapters.values()
    made = kind(one, 0.1)
    return {
        "modes": {name: getattr(kind.Mode, name).value for name in MODES},
        "alphas": [made.get_alpha(one), kind(one).get_alpha(one), kind([one]).get_alpha(one)],
        "truth": [bool(kind()), bool(made), bool(genai.Adapter()), bool(one), bool(kind([]))],
        "equal": [one == one, one == two],
        "chained": [made.add(two) is made, made.set_alpha(two, 3) is made],
        "both": [alpha for _, alpha in made.get_adapters_and_alphas()],
        "left": [len(made.get_adapters()), len(made.remove(one).get_adapters())],
        "twice": len(kind([one, one]).get_adapters()),
        "replaced": [
            made.set_adapters_and_alphas([(one, 0.3), (two, 2)]),
            *(alpha for _, alpha in made.get_adapters_and_alphas()),
        ],
        "by name": [
            kind(adapter=one, alpha=0.5, mode=kind.Mode.MODE_FUSE).get_alpha(one),
            len(kind(adapters=[one, two]).get_adapters()),
            len(kind(adapters=[(one, 1.0)], mode=kind.Mode.MODE_STATIC).get_adapters()),
        ],
        "copied": _copied(genai, one),
    }


def _copied(genai: object, one: object) -> float:
    """Return an alpha after the adapters of a generation's configuration have changed."""
    adapters, config = genai.AdapterConfig(one, 0.5), genai.GenerationConfig(max_new_tokens=1)
    config.adapters = adapters
    adapters.set_alpha(one, 2)
    return config.adapters.get_alpha(one)
