"""Golden files tests/goldens/configs: transformers' reading of config.json, by family and key.

For each case of ``config_cases.py``, the golden has what the model computes with: it is built from
the config and run on a few tokens, and heads, windows, frequencies and others are taken from the
calls that its layers make. A case holds only differences to its family's first one, or null if
transformers fails. Rotary embeddings are recorded for texts of several lengths.

Needs PyTorch and transformers, in both major versions, each of which writes a file of its own:

    pip install torch==2.13.0 "transformers==4.57.6"    # and again with 5.24.0
    python tools/make_config_goldens.py                 # from the checkout, two minutes
"""

from __future__ import annotations

import importlib
import json
import lzma
import math
import sys
import tempfile
import warnings
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
import transformers
from config_cases import BASES, apply, cases
from torch.nn import functional

GOLDENS = Path(__file__).resolve().parent.parent / "tests" / "goldens" / "configs"

LENGTHS = (3, 15, 16, 17, 31, 32, 33, 63, 64, 65, 100)
"""Lengths of texts, about the original contexts of the cases: 16, 32 and 64 tokens."""

ACTIVATIONS = {
    "SILU": functional.silu,
    "GELU": functional.gelu,
    "GELU_TANH": lambda x: functional.gelu(x, approximate="tanh"),
}


class Calls:
    """Recorder of the calls of a running model's attention layers."""

    def __init__(self) -> None:
        self.windows: list[int | None] = []
        self.rotary: list[list[float] | None] = []
        self.attention: dict[str, Any] = {}

    def full_mask(self, config: Any = None, **_: Any) -> tuple[bool, None]:
        """Stand for the mask of full attention."""
        return getattr(config, "is_causal", True), None

    def sliding_mask(self, config: Any = None, **_: Any) -> tuple[bool, int]:
        """Stand for the mask of a sliding window."""
        if config.sliding_window is None:
            raise ValueError("sliding attention without a window")
        return getattr(config, "is_causal", True), config.sliding_window

    def attend(self, module: Any, q: Any, k: Any, v: Any, mask: Any, *_: Any, **given: Any) -> Any:
        """Record an attention instead of computing it; the result is zero."""
        causal, window = mask
        if not causal or getattr(module, "is_causal", True) is False:
            raise ValueError("attention in both directions")
        self.windows.append(window)
        scale = given.get("scaling")
        self.attention = {
            "heads": q.shape[1],
            "key_heads": k.shape[1],
            "head_dim": q.shape[3],
            "scale": q.shape[3] ** -0.5 if scale is None else scale,
            "softcap": given.get("softcap"),
        }
        return v.new_zeros(q.shape).transpose(1, 2), None

    def before(self, module: Any, _: Any, given: dict[str, Any]) -> None:
        """Record the cos and sin of position 1 as factor and frequencies."""
        turn = given.get("position_embeddings")
        if turn is None or not getattr(module, "use_rope", True):
            self.rotary.append(None)
            return
        cos, sin = (each[0, 1].double() for each in turn)
        pairs = cos.shape[-1] // 2
        factor = math.hypot(float(cos[0]), float(sin[0]))
        values = torch.atan2(sin, cos)[:pairs].tolist()
        self.rotary.append([_round(factor), *map(_round, values)])


def _round(value: float) -> float:
    return float(f"{value:.7g}")


@contextmanager
def patched(module: Any, calls: Calls) -> Any:
    """Replace masks and attention of a modeling module by those that record."""
    replaced = {
        "create_causal_mask": calls.full_mask,
        "create_sliding_window_causal_mask": calls.sliding_mask,
        "eager_attention_forward": calls.attend,
    }
    saved = {name: getattr(module, name) for name in replaced if hasattr(module, name)}
    for name in saved:
        setattr(module, name, replaced[name])
    try:
        yield
    finally:
        for name, value in saved.items():
            setattr(module, name, value)


def build(config: dict[str, Any]) -> Any:
    """Build the model of a config.json, with arbitrary weights."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "config.json").write_text(json.dumps(config))
        read = transformers.AutoConfig.from_pretrained(folder)
    return transformers.AutoModelForCausalLM.from_config(read, attn_implementation="eager").eval()


def run(model: Any) -> Calls:
    """Run a model on texts of several lengths; their rotary embeddings are in order of length."""
    calls = Calls()
    for layer in parts(model)["layers"]:
        inner = next(
            part
            for name, part in layer.named_children()
            if ("attn" in name.lower() and "norm" not in name.lower()) or name == "attention"
        )
        inner.register_forward_pre_hook(calls.before, with_kwargs=True)
    module = importlib.import_module(type(model).__module__)
    with torch.inference_mode(), patched(module, calls):
        for length in LENGTHS:
            positions = torch.tensor([[0, 1, min(length, limit(model)) - 1]])
            model(torch.tensor([[1, 2, 3]]), position_ids=positions, use_cache=False)
    return calls


def limit(model: Any) -> int:
    """Return the number of learned position embeddings, or a large number."""
    return model.transformer.wpe.weight.shape[0] if hasattr(model, "transformer") else 1 << 20


def parts(model: Any) -> dict[str, Any]:
    """Return the modules of a model by their roles."""
    body = getattr(model, model.base_model_prefix, None) or model.model
    head = model.get_output_embeddings()
    layers = body.h if hasattr(body, "h") else body.layers
    return {
        "embedding": model.get_input_embeddings(),
        "layers": layers,
        "head": head,
        "mlp": layers[0].mlp,
        "norm": body.ln_f
        if hasattr(body, "ln_f")
        else getattr(body, "norm", None) or body.final_layer_norm,
    }


def describe(model: Any) -> dict[str, Any]:
    """Return what a model computes with, in the terms of the compiler's Decoder."""
    calls, found = run(model), parts(model)
    count = len(found["layers"])
    biases = {
        name.rsplit(".", 2)[-2]
        for name, _ in found["layers"][0].named_parameters()
        if name.endswith(".bias")
    }
    config, mlp = model.config, found["mlp"]
    act = next(
        getattr(mlp, name) for name in ("act_fn", "act", "activation_fn") if hasattr(mlp, name)
    )
    norm = found["norm"]
    return {
        "vocab_size": found["embedding"].weight.shape[0],
        "hidden_size": found["embedding"].weight.shape[1],
        "windows": calls.windows[:count],
        "rotary": [by_length(calls.rotary[layer::count]) for layer in range(count)],
        **calls.attention,
        "epsilon": next(
            getattr(norm, name) for name in ("variance_epsilon", "eps") if hasattr(norm, name)
        ),
        "bias": bool(biases & {"q_proj", "query_key_value", "c_attn", "qkv_proj"}),
        "output_bias": any(
            name.endswith(".bias")
            for name, _ in attention_output(found["layers"][0]).named_parameters(prefix="out")
        ),
        "mlp_bias": any(name.endswith(".bias") for name, _ in mlp.named_parameters()),
        "inner_size": inner_size(mlp),
        "activation": activation(act),
        "positions": limit(model) if limit(model) < 1 << 20 else 0,
        "embedding_scale": embedding_scale(model),
        "residual_scale": getattr(found["layers"][0], "residual_multiplier", 1.0),
        "parallel": bool(getattr(found["layers"][0], "use_parallel_residual", False)),
        "tied": found["head"].weight is found["embedding"].weight,
        "head_bias": found["head"].bias is not None,
        "logit_scale": 1 / getattr(config, "logits_scaling", 1.0)
        if model.config.model_type == "granite"
        else 1.0,
        "logit_softcap": getattr(config, "final_logit_softcapping", None)
        if "gemma" in config.model_type
        else None,
    }


def attention_output(layer: Any) -> Any:
    """Return the projection of an attention's result."""
    for path in ("self_attn.o_proj", "self_attn.dense", "attention.dense", "attn.c_proj"):
        try:
            return layer.get_submodule(path)
        except AttributeError:
            continue
    raise LookupError("no output projection")


def inner_size(mlp: Any) -> int:
    """Return the width of a feed-forward block."""
    down = next(
        part
        for name, part in mlp.named_children()
        if name in ("down_proj", "c_proj", "dense_4h_to_h")
    )
    return down.weight.shape[0] if hasattr(down, "nf") else down.weight.shape[1]


def activation(act: Any) -> str:
    """Return the name of the function that an activation computes."""
    x = torch.linspace(-4, 4, 33)
    return next(
        (
            name
            for name, function in ACTIVATIONS.items()
            if torch.allclose(act(x), function(x), atol=1e-6)
        ),
        "other",
    )


def embedding_scale(model: Any) -> float:
    """Return the factor of embeddings, from the hidden state of a token."""
    seen: list[torch.Tensor] = []
    layer = parts(model)["layers"][0]
    hook = layer.register_forward_pre_hook(
        lambda _, given, named: seen.append(given[0] if given else named["hidden_states"]),
        with_kwargs=True,
    )
    if hasattr(model, "transformer"):
        return 1.0
    with torch.inference_mode():
        model(torch.tensor([[1, 2, 3]]), use_cache=False)
    hook.remove()
    return _round(float((seen[0] / model.get_input_embeddings().weight.detach()[1:4]).mean()))


def by_length(rotary: list[list[float] | None]) -> list[Any] | None:
    """Return [length, factor, frequencies …] of each length that differs from the one before."""
    if rotary[0] is None:
        return None
    changes: list[Any] = []
    for length, values in zip(LENGTHS, rotary, strict=True):
        if not changes or changes[-1][1:] != values:
            changes.append([length, *(values or [])])
    return changes


def record(family: str) -> dict[str, Any]:
    """Return a family's base, its description, and [change, differences] of each case."""
    base = {"model_type": family} | BASES[family]
    first: dict[str, Any] = {}
    rows: list[Any] = []
    for change in cases(family):
        torch.manual_seed(0)
        try:
            found = json.loads(json.dumps(describe(build(apply(base, change)))))
        except Exception as error:  # transformers' own, of any kind
            if not first:
                raise
            print(f"{family} {change}: {type(error).__name__} {error}"[:200], file=sys.stderr)
            rows.append([change, None])
            continue
        first = first or found
        rows.append([change, {key: value for key, value in found.items() if value != first[key]}])
    return {"base": base, "description": first, "cases": rows}


def main() -> None:
    """Write the file of the installed version."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    transformers.logging.set_verbosity(transformers.logging.CRITICAL)
    GOLDENS.mkdir(exist_ok=True)
    version = transformers.__version__
    lines = [
        f"{json.dumps(family)}: {json.dumps(record(family))}" for family in (sys.argv[1:] or BASES)
    ]
    text = f'{{"transformers": "{version}",\n"lengths": {list(LENGTHS)},\n' + ",\n".join(lines)
    path = GOLDENS / f"transformers_{version.partition('.')[0]}.json.xz"
    path.write_bytes(lzma.compress((text + "}\n").encode(), preset=9))


if __name__ == "__main__":
    main()
