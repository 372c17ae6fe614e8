"""Golden files of vision models that this version of the exporter does not support.

Their language parts are transformers' own; the exporter traces them, makes them stateful and writes
them. This script adds only the required descriptions of the models: their inputs, and the called
part. Qwen 3 VL's image features are added as in transformers' code, or by exporters since 2.2 in
another way, so both forms are written.

    pip install torch==2.13.0 "transformers==4.57.6" "optimum-intel[openvino]==1.27.0"
    python tools/make_newer_vlm_goldens.py qwen3_vl qwen3_vl_gathered gemma3n

Source: optimum-intel 2.0 to 2.2 for the inputs' names, shapes and types.
"""

from __future__ import annotations

import copy
import inspect
import sys
import tempfile
import types
from pathlib import Path
from typing import Any

import numpy as np
from golden_ir import keep
from make_vlm_goldens import SMALL, TARGET, oracle

LAYERS, LEVELS, LAYER_WIDTH = 4, 3, 16
TOKENS = {0: "batch_size", 1: "sequence_length"}
OF_IMAGES = {
    "visual_pos_masks": TOKENS,
    "deepstack_visual_embeds": {0: "num_layers", 1: "visual_seqlen"},
}
OF_LAYERS = {"per_layer_inputs": {**TOKENS, 2: "num_hidden_layers"}}


def qwen3_vl(gathered: bool) -> Any:
    """Return a model whose image features are added in three layers."""
    import transformers as t

    turns = {"rope_type": "default", "mrope_section": [4, 2, 2], "mrope_interleaved": True}
    text = {**SMALL, "num_hidden_layers": LAYERS, "head_dim": 16, "rope_scaling": turns}
    vision = {"depth": 1, "hidden_size": 32, "num_heads": 2, "out_hidden_size": 96}
    vision |= {"intermediate_size": 64, "deepstack_visual_indexes": [0]}
    model = t.Qwen3VLForConditionalGeneration(
        t.Qwen3VLConfig(text_config=text, vision_config=vision)
    )
    if gathered:
        part = model.model.language_model
        part._deepstack_process = types.MethodType(_gathered, part)
    return model


def _gathered(self: Any, hidden: Any, marks: Any, features: Any) -> Any:
    """Add to each marked token its row of the features, as newer exporters do."""
    import torch

    del self
    flat = marks.reshape(-1)
    place = torch.clamp(torch.cumsum(flat.long(), 0) - 1, min=0)
    rows = torch.index_select(features, 0, place) * flat[:, None].to(hidden.dtype)
    return hidden + rows.reshape(hidden.shape)


def gemma3n() -> Any:
    """Return a model whose last two of four layers share K and V; every other has a window."""
    import torch
    import transformers as t

    kinds = ["sliding_attention", "full_attention"] * (LAYERS // 2)
    config = t.Gemma3nTextConfig(
        **{**SMALL, "num_hidden_layers": LAYERS, "head_dim": 16},
        layer_types=kinds,
        sliding_window=64,
        num_kv_shared_layers=2,
        hidden_size_per_layer_input=LAYER_WIDTH,
        vocab_size_per_layer_input=SMALL["vocab_size"],
        laurel_rank=8,
        altup_num_inputs=2,
        activation_sparsity_pattern=[0.5, 0.0, 0.0, 0.0],
    )
    model = t.Gemma3nForCausalLM(config)
    for layer in model.model.layers:  # zeros in a new model: inputs of layers would be ignored
        torch.nn.init.normal_(layer.altup.correct_output_scale)
    return model


def export(name: str, target: Path) -> None:
    """Write the IR of a language part with the exporter."""
    import torch
    from optimum.exporters.openvino import model_configs
    from optimum.exporters.openvino.convert import export as write
    from optimum.intel.openvino.configuration import OVConfig

    torch.manual_seed(7)
    sees = name.startswith("qwen3_vl")
    model = (qwen3_vl(name.endswith("gathered")) if sees else gemma3n()).eval()
    text = copy.deepcopy(model.config.text_config if sees else model.config)
    # Layers that share the K and V of others have no cache.
    text.num_hidden_layers -= 0 if sees else text.num_kv_shared_layers
    places = {"position_ids": {1: "batch_size", 2: "sequence_length"}}
    known = model_configs.get_vlm_internal_text_generation_config(
        "qwen3" if sees else "gemma3_text", text, "int64", "fp32"
    )
    several = model_configs.DummyQwen2VLLMInputGenerator if sees else None
    inputs = OF_IMAGES | places if sees else OF_LAYERS
    config = _config()(known, _patcher(), dummy_input_generator=several, inputs_update=inputs)
    config._normalized_config = known._normalized_config
    write(model, config, target, stateful=True, ov_config=OVConfig(dtype="fp16"))


def _config() -> Any:
    """Return the exporter's class for language parts, extended with example inputs."""
    import torch
    from optimum.exporters.openvino.model_configs import LMInputEmbedsConfigHelper

    class Config(LMInputEmbedsConfigHelper):
        def generate_dummy_inputs(self, framework: str = "pt", **kwargs: Any) -> Any:
            found = super().generate_dummy_inputs(framework, **kwargs)
            batch, tokens, width = found["inputs_embeds"].shape
            examples = {
                "visual_pos_masks": torch.ones(batch, tokens, dtype=torch.bool),
                "deepstack_visual_embeds": torch.randn(LEVELS, batch * tokens, width),
                "per_layer_inputs": torch.randn(batch, tokens, LAYERS, LAYER_WIDTH),
            }
            return found | {name: value for name, value in examples.items() if name in self.inputs}

    return Config


def _patcher() -> Any:
    """Return the exporter's class that patches a model for the export: only its text part runs."""
    from optimum.exporters.openvino.model_patcher import OVDecoderModelPatcher
    from transformers.cache_utils import DynamicCache

    class Patcher(OVDecoderModelPatcher):
        def __init__(self, config: Any, model: Any, model_kwargs: Any = None) -> None:
            part = getattr(model.model, "language_model", model.model)

            def forward(self: Any, past_key_values: Any, **given: Any) -> dict[str, Any]:
                del self
                cache = DynamicCache.from_legacy_cache(past_key_values)
                said = part(**given, past_key_values=cache)
                logits = model.lm_head(said.last_hidden_state)
                return {"logits": logits, "past_key_values": cache.to_legacy_cache()}

            # The exporter passes the inputs by name, in this order.
            names = ["self", *dict.fromkeys([*config.inputs, "past_key_values"]), "use_cache"]
            kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
            forward.__signature__ = inspect.Signature(
                [inspect.Parameter(name, kind) for name in names if "." not in name]
            )
            model.forward = types.MethodType(forward, model)
            super().__init__(config, model, model_kwargs)

    return Patcher


def main() -> None:
    """Write the golden files of the named models."""
    for name in sys.argv[1:]:
        with tempfile.TemporaryDirectory() as scratch:
            xml = Path(scratch) / "ir" / "openvino_language_model.xml"
            export(name, xml)
            found = oracle(keep(xml, TARGET, name, Path(scratch)))
            np.savez_compressed(TARGET / f"{name}.npz", **found)
            print(name, found["beside"], flush=True)


if __name__ == "__main__":
    main()
