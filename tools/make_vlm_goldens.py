"""Golden files tests/goldens/exported/vlm: language parts of vision models, as exported.

They take embeddings instead of ids. As in make_export_goldens.py, with the same recipe of the
``.bin``, models are small and random, and logits are the real OpenVINO's in f32, for the restored
IR; ``drawn.py`` draws the inputs.

    pip install torch==2.13.0 "transformers==4.57.6" "optimum-intel[openvino]==1.27.0"
    python tools/make_vlm_goldens.py llava qwen2_vl qwen2_5_vl gemma3

With this version of transformers the exporter's Gemma 3 has no input that marks the tokens of
images; with an older one it has:

    pip install "transformers==4.52.4"
    python tools/make_vlm_goldens.py gemma3_types
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from golden_ir import EXACT, EXPORTED, keep, load_module

TARGET = EXPORTED / "vlm"

PROMPTS = (1, 7, 100)
STEPS = 6
"""Number of single tokens after the last prompt."""

BESIDE = ("visual_pos_masks", "deepstack_visual_embeds", "per_layer_inputs")
"""Inputs of some models in addition to embeddings and positions; see ``drawn.py``."""

SMALL = {
    "hidden_size": 96,
    "intermediate_size": 160,
    "num_hidden_layers": 2,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "vocab_size": 256,
    "max_position_embeddings": 512,
    "bos_token_id": 0,
    "eos_token_id": 2,
    "pad_token_id": 0,
}
SIGHT = {"num_hidden_layers": 1, "hidden_size": 32, "intermediate_size": 64}
MARKS = {
    "image_token_id": 5,
    "video_token_id": 6,
    "vision_start_token_id": 7,
    "vision_end_token_id": 8,
}


def model_of(name: str) -> Any:
    """Return a small random model of an architecture."""
    import torch
    import transformers as t

    torch.manual_seed(7)
    mrope = {**SMALL, "rope_scaling": {"type": "mrope", "mrope_section": [2, 3, 3]}}
    eyes = {**SIGHT, "num_attention_heads": 2, "patch_size": 14}
    if name == "llava":
        vision, text = t.CLIPVisionConfig(image_size=28, **eyes), t.LlamaConfig(**SMALL)
        config = t.LlavaConfig(vision_config=vision, text_config=text, image_token_index=5)
        return t.LlavaForConditionalGeneration(config)
    if name == "qwen2_vl":
        vision = {"depth": 1, "embed_dim": 32, "hidden_size": 96, "num_heads": 2}
        config = t.Qwen2VLConfig(text_config=mrope, vision_config=vision, **MARKS)
        return t.Qwen2VLForConditionalGeneration(config)
    if name == "qwen2_5_vl":
        vision = {"depth": 1, "out_hidden_size": 96, "num_heads": 2, **SIGHT}
        vision["fullatt_block_indexes"] = [0]
        config = t.Qwen2_5_VLConfig(text_config=mrope, vision_config=vision, **MARKS)
        return t.Qwen2_5_VLForConditionalGeneration(config)
    # In the older version masks are cut to the window, and caches are not.
    window = 512 if name == "gemma3_types" else 64
    windows = {"head_dim": 16, "sliding_window": window, "query_pre_attn_scalar": 16}
    # One layer of each kind.
    text = t.Gemma3TextConfig(**SMALL, **windows, sliding_window_pattern=2)
    vision = t.SiglipVisionConfig(image_size=56, **eyes)
    config = t.Gemma3Config(text_config=text, vision_config=vision, mm_tokens_per_image=4)
    return t.Gemma3ForConditionalGeneration(config)


def export(name: str, target: Path) -> None:
    """Write the IRs of all parts with the real exporter."""
    import transformers as t
    from optimum.exporters.openvino.convert import export_from_model
    from optimum.intel.openvino.configuration import OVConfig

    model = model_of(name).eval()
    model.generation_config = t.GenerationConfig()
    export_from_model(
        model, target, task="image-text-to-text", stateful=True, ov_config=OVConfig(dtype="fp16")
    )


def oracle(xml: Path) -> dict[str, np.ndarray]:
    """Return the last logits of each prompt, and of the tokens after the longest, in f32."""
    import openvino as ov

    compiled = ov.Core().compile_model(xml, "CPU", EXACT)
    request = compiled.create_infer_request()
    ports = {name: port for port in compiled.inputs for name in port.get_names()}
    places = ports["position_ids"].get_partial_shape()
    axes = places[0].get_length() if len(places) == 3 else 0
    beside = [name for name in BESIDE if name in ports]
    drawn = load_module(TARGET / "drawn.py").Drawn(axes, beside=beside)

    def infer(begin: int, end: int) -> np.ndarray:
        given = drawn.inputs(begin, end)
        request.infer({name: value for name, value in given.items() if name in ports})
        return np.array(request.get_tensor("logits").data[0, -1])

    found = {"position_axes": np.array(axes), "beside": np.array(beside, np.str_)}
    for count in PROMPTS:
        request.reset_state()
        found[f"logits_{count}"] = infer(0, count)
    last = PROMPTS[-1]
    found["steps"] = np.stack([infer(at, at + 1) for at in range(last, last + STEPS)])
    return found


def main() -> None:
    """Write the golden files of the named models."""
    for name in sys.argv[1:]:
        with tempfile.TemporaryDirectory() as scratch:
            ir = Path(scratch) / "ir"
            export(name, ir)
            xml = ir / "openvino_language_model.xml"
            found = oracle(keep(xml, TARGET, name, Path(scratch)))
            np.savez_compressed(TARGET / f"{name}.npz", **found)
            print(name, flush=True)


if __name__ == "__main__":
    main()
