"""Model folders and files that the public samples take, for ``run_samples.py``."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
from hub_models import ROOT, module
from make_hub import COMMIT

MODELS = {
    "embedding": ("BAAI/bge-small-en-v1.5", "feature-extraction"),
    "rerank": ("cross-encoder/ms-marco-TinyBERT-L2-v2", "text-classification"),
    "speech": ("openai/whisper-tiny", "automatic-speech-recognition-with-past"),
    "visual_embedding": (
        "optimum-intel-internal-testing/tiny-random-qwen3-vl-embedding",
        "feature-extraction",
    ),
    "vlm": ("optimum-intel-internal-testing/tiny-random-qwen2vl", "image-text-to-text"),
}
"""Models of the hub and the exporter's tasks, by the name in the arguments."""
RANK = 4
MILEBENCH = "ActionSequence"
"""Name of a subset."""


def make_inputs(hub: Path) -> dict[str, str]:
    """Return paths by their names in the arguments; export models that are missing.

    The language model is the demo model, so that texts end; of structured texts, the terse one's.
    """
    folder = hub / "samples"
    folder.mkdir(exist_ok=True)
    llm = export(ROOT / "models" / "demo", "text-generation-with-past", folder / "llm")
    terse = module(ROOT / "tests" / "stack" / "terse_model.py")
    found = {"llm": llm, "terse_llm": terse.save_terse_model(llm, folder / "terse_llm")}
    found |= {"lora": write_lora(folder / "lora.safetensors", "model.layers.0", 256)}
    for name, (model, task) in MODELS.items():
        found[name] = export(snapshot(hub, model), task, folder / name)
    found["vlm_lora"] = write_lora(folder / "vlm.safetensors", "model.layers.0", 96)
    found["prompts"] = folder / "prompts.jsonl"
    found["prompts"].write_text(json.dumps({"prompt": "What is an NPU?"}) + "\n")
    found["image"] = hub / "pytest" / "d" / "images" / "cat.jpg"
    found["video"] = write_video(folder / "video.avi")
    found["milebench"] = write_milebench(folder / "milebench", found["image"])
    speech = snapshot(hub, "hf-internal-testing/librispeech_asr_dummy", "datasets")
    found["wav"] = speech / "data" / "00.wav"
    return {name: str(path) for name, path in found.items()}


def snapshot(hub: Path, name: str, kind: str = "models") -> Path:
    """Return the folder of a model or data set of the hub."""
    return hub / "hub" / f"{kind}--{name.replace('/', '--')}" / "snapshots" / COMMIT


def export(source: Path, task: str, target: Path) -> Path:
    """Write the IR of a model, unless it exists."""
    if not target.exists():
        command = [sys.executable, "-m", "optimum.commands.optimum_cli", "export", "openvino"]
        options = ["-m", source, "--task", task, "--weight-format", "fp16"]
        subprocess.run([*command, *options, target], check=True)
    return target


def write_lora(path: Path, layer: str, width: int) -> Path:
    """Write a LoRA adapter for the queries of one layer."""
    from safetensors.numpy import save_file

    random = np.random.default_rng(1)
    name = f"base_model.model.{layer}.self_attn.q_proj.lora_{{}}.weight".format
    shapes = {"A": (RANK, width), "B": (width, RANK)}
    save_file(
        {
            name(part): random.normal(0, 0.05, shape).astype(np.float32)
            for part, shape in shapes.items()
        },
        path,
    )
    return path


def write_milebench(path: Path, image: Path) -> Path:
    """Write a subset of MileBench's form with two questions about images."""
    subset = path / MILEBENCH
    (subset / "images").mkdir(parents=True, exist_ok=True)
    shutil.copy(image, subset / "images")
    choices = ["a cat", "a car"]
    question = {
        "task_instruction_id": 0,
        "task_instance": {
            "context": "First {image#1}, then {image#2}: what is it?",
            "images_path": [image.name] * 2,
            "choice_list": choices,
        },
        "response": choices[0],
    }
    about = {"num_sample": 2, "task_instruction": ["Choose."], "question_type": "multi-choice"}
    content = {"meta_data": about, "data": [question] * 2}
    (subset / f"{MILEBENCH}.json").write_text(json.dumps(content))
    return path


def write_video(path: Path) -> Path:
    """Write a video of eight frames."""
    import cv2

    writer = cv2.VideoWriter(str(path), cv2.VideoWriter_fourcc(*"MJPG"), 4.0, (112, 112))
    for frame in range(8):
        writer.write(np.full((112, 112, 3), 30 * frame, np.uint8))
    writer.release()
    return path
