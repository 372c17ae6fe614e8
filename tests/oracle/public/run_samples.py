"""Public Python samples of openvino_genai, run with the real package and with genai_layer.

Each sample of a checkout runs unchanged with the real package on CPU, and with genai_layer in its
place on NPU: ``swapped/openvino_genai.py`` precedes the real module on the path, and the device
"CPU" becomes "NPU" in the samples that fix it. Models are tiny, so only whether a sample ends
without an error counts, not what it answers.

Run by a Python that has this project's packages, openvino_genai, optimum-intel, and what the
samples import (librosa, Pillow, opencv-python-headless, json5, pydantic):

    python tests/oracle/public/make_hub.py HUB
    python tests/oracle/public/run_samples.py CHECKOUT HUB [SAMPLE …]
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from run_tests import environment
from sample_inputs import make_inputs

FOLDERS = ("text_generation", "rag", "automatic_speech_recognition", "visual_language_chat")
SECONDS = 600
"""Limit for one sample."""


@dataclass(frozen=True)
class Call:
    """Arguments of a sample, and the lines that it reads."""

    arguments: str
    lines: str = ""


QUESTION = "What is an NPU?"
CHAT = f"{QUESTION}\nWhat is a blob?\n"
CALLS = {
    "beam_search_causal_lm": Call("{llm} prompt other"),
    "benchmark_genai": Call("-m {llm} -d {device} -n 2 -M 10"),
    "chat_sample": Call("{llm} {device}", CHAT),
    "compound_grammar_generation": Call("{terse_llm}"),
    "encrypted_model_causal_lm": Call("{llm} prompt"),
    "greedy_causal_lm": Call("{llm} prompt"),
    "image_video_embedding": Call(
        "{visual_embedding} --query cat --images {image} --videos {video} --device {device}"
    ),
    "limit_checker": Call(
        "--mode gen_length --model Qwen/Qwen2-0.5B-Instruct --data {prompts} "
        "--timeout 1 --num_kv_blocks 64 --device {device}"
    ),
    "lora_greedy_causal_lm": Call("{llm} {lora} prompt"),
    "multinomial_causal_lm": Call("{llm} prompt"),
    "prompt_lookup_decoding_lm": Call("{llm} prompt"),
    "react_sample": Call("{llm}"),
    "speculative_decoding_lm": Call("{llm} {llm} prompt"),
    "structural_tags_generation": Call("{llm}"),
    "structured_output_generation": Call("{terse_llm}", "A person and a car.\n"),
    "text_embeddings": Call("{embedding} one two"),
    "text_rerank": Call("{rerank} query one two three"),
    "automatic_speech_recognition": Call("{speech} {wav} {device}"),
    "benchmark_vlm": Call("-m {vlm} -i {image} -d {device} -M 5"),
    "encrypted_model_vlm": Call("{vlm} {image} prompt"),
    "milebench_eval_vlm": Call(
        "-m {vlm} -d {device} -s ActionSequence --data_dir {milebench} -mt 5 --seqs_per_request 2"
    ),
    "video_to_text_chat": Call("{vlm} {video} {device}", CHAT),
    "visual_language_chat": Call("{vlm} {image} {device}", CHAT),
    "visual_language_lora": Call("{vlm} {image} prompt {vlm_lora} 0.5"),
}
"""Calls by name of the sample."""
OMITTED = {
    "recorder": "records from a microphone, and does not import openvino_genai",
}
"""Samples that do not run here."""


def run(path: Path, call: Call, hub: Path, inputs: dict[str, str], swapped: bool) -> str:
    """Run a sample; return the last line of its error, or nothing."""
    device = "NPU" if swapped else "CPU"
    text = path.read_text(encoding="utf-8")
    if swapped:
        text = text.replace("'CPU'", "'NPU'").replace('"CPU"', '"NPU"')
    arguments = [part.format(device=device, **inputs) for part in call.arguments.split(" ")]
    with tempfile.TemporaryDirectory() as folder:
        sample = Path(folder) / path.name
        sample.write_text(text, encoding="utf-8")
        # limit_checker reads prompts of the tests from its working directory.
        (Path(folder) / "tests").symlink_to(path.parents[3] / "tests")
        try:
            done = subprocess.run(
                [sys.executable, sample, *arguments],
                input=call.lines,
                cwd=folder,
                env=environment(hub, swapped),
                capture_output=True,
                text=True,
                timeout=SECONDS,
            )
        except subprocess.TimeoutExpired:
            return f"has not ended after {SECONDS} seconds"
    log = hub / "samples" / f"{path.stem}-{device}.txt"
    log.write_text(done.stdout + done.stderr, encoding="utf-8")
    lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
    return lines[-1][:160] if done.returncode else ""


def main() -> None:
    """Run the samples, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("checkout", type=Path, help="checkout of openvino.genai")
    parser.add_argument("hub", type=Path, help="folder written by make_hub.py")
    parser.add_argument("names", nargs="*", help="names of samples, without .py")
    arguments = parser.parse_args()
    hub = arguments.hub.resolve()
    inputs = make_inputs(hub)
    folders = [arguments.checkout.resolve() / "samples" / "python" / name for name in FOLDERS]
    samples = [path for folder in folders for path in sorted(folder.glob("*.py"))]
    print("| sample | openvino_genai, CPU | genai_layer, NPU |\n|---|---|---|")
    for path in samples:
        name = path.stem
        if arguments.names and name not in arguments.names:
            continue
        if name in OMITTED:
            print(f"| {name} | omitted: {OMITTED[name]} | |", flush=True)
            continue
        real, ours = (run(path, CALLS[name], hub, inputs, swapped) for swapped in (False, True))
        print(f"| {name} | {real or 'runs'} | {ours or 'runs'} |", flush=True)


if __name__ == "__main__":
    main()
