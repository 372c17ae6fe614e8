"""Golden files tests/goldens/whisper: the two IRs of a tiny Whisper, by the real exporter.

As in ``make_export_goldens.py``, the XML is stored, and a recipe of the ``.bin`` that draws weights
again. For the restored IRs, the real OpenVINO's f32 results are stored: the encoder's output, each
token's logits for a given text, and its greedy tokens.

``transcriptions.json`` has the output of openvino_genai's pipeline for a complete folder, and
``tokenizer.json.xz`` the tokenizer's models, which that pipeline reads.

Needs PyTorch, transformers, optimum-intel and openvino_genai, which only such scripts need:

    pip install torch==2.13.0 "transformers==4.57.6" "optimum-intel[openvino]==1.27.0"
    pip install openvino-genai==2026.4.1
    python tools/make_whisper_goldens.py        # from the checkout, about a minute
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from golden_ir import EXACT, GOLDENS, PRECISIONS, export, keep, keep_tokenizer, load_module

TARGET = GOLDENS / "whisper"
TASK = "automatic-speech-recognition-with-past"
MELS, VOCABULARY, BEGIN, EOS = 16, 300, 257, 256
FRAMES = 3000
"""Frames of a spectrogram that the exporter requires; the encoder halves their number."""
SEED = 11
GIVEN, GREEDY_TOKENS = 24, 32
EVERY = 100
"""Step between the stored frames of the encoder's output."""


tools = load_module(TARGET / "folder.py")
"""Module that writes a complete folder, shared with the tests."""


def write_folder(folder: Path) -> None:
    """Write a Hugging Face folder with random weights."""
    import torch
    import transformers

    torch.manual_seed(7)
    config = transformers.WhisperConfig(
        vocab_size=VOCABULARY,
        d_model=32,
        encoder_layers=2,
        decoder_layers=2,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        encoder_ffn_dim=64,
        decoder_ffn_dim=64,
        num_mel_bins=MELS,
        max_source_positions=FRAMES // 2,
        init_std=0.2,
        pad_token_id=EOS,
        bos_token_id=EOS,
        eos_token_id=EOS,
        decoder_start_token_id=BEGIN,
        suppress_tokens=None,
        begin_suppress_tokens=None,
    )
    transformers.WhisperForConditionalGeneration(config).save_pretrained(folder)
    features = transformers.WhisperFeatureExtractor(feature_size=MELS)
    features.save_pretrained(folder)


def oracle(encoder: Path, decoder: Path) -> dict[str, np.ndarray]:
    """Return OpenVINO's f32 results for a spectrogram and a text; tests draw the same features."""
    import openvino as ov

    core, random = ov.Core(), np.random.RandomState(SEED)
    features = random.standard_normal((1, MELS, FRAMES)).astype(np.float32)
    heard: Any = core.compile_model(encoder, "CPU", EXACT)([features])[0]
    request = core.compile_model(decoder, "CPU", EXACT).create_infer_request()

    def infer(tokens: list[int]) -> np.ndarray:
        request.infer(
            {
                "input_ids": np.array([tokens]),
                "encoder_hidden_states": heard,
                "beam_idx": np.zeros(1, np.int32),
            }
        )
        return np.array(request.get_tensor("logits").data[0])

    text = [BEGIN, *random.randint(0, EOS, GIVEN - 1).tolist()]
    given = [infer(text[:3]), *(infer([token]) for token in text[3:])]
    request.reset_state()
    greedy = [int(infer(text[:3])[-1].argmax())]
    while len(greedy) < GREEDY_TOKENS:
        greedy.append(int(infer(greedy[-1:])[-1].argmax()))
    return {
        "heard": np.array(heard)[:, ::EVERY],
        "text": np.array(text),
        "logits": np.concatenate(given),
        "greedy": np.array(greedy),
    }


CASES: dict[str, tuple[float, dict[str, Any]]] = {
    "plain": (4.0, {"max_new_tokens": 20}),
    "english": (4.0, {"max_new_tokens": 12, "language": "<|en|>", "task": "translate"}),
    "times": (4.0, {"max_new_tokens": 40, "return_timestamps": True}),
    "long": (31.0, {"max_new_tokens": 16, "return_timestamps": True}),
    "prompted": (2.0, {"max_new_tokens": 12, "initial_prompt": "Abba", "hotwords": "acdc"}),
    "words": (4.0, {"max_new_tokens": 40, "word_timestamps": True}),
    "long_words": (
        31.0,
        {"max_new_tokens": 30, "return_timestamps": True, "word_timestamps": True},
    ),
}
"""Seconds of speech, and parameters; the real WhisperPipeline's texts for them are stored."""


def transcriptions(parts: list[Path], work: Path) -> dict[str, Any]:
    """Transcribe with the real openvino_genai on its CPU in f32; compute transformers' features."""
    import openvino_genai
    from transformers import WhisperFeatureExtractor

    folder = tools.write(*parts, work / "whole")
    keep_tokenizer(folder, TARGET)
    extractor = WhisperFeatureExtractor.from_pretrained(folder)
    heard = extractor(tools.speech(4.0), sampling_rate=16000).input_features[0]
    np.savez_compressed(TARGET / "spectrogram.npz", spectrogram=heard[:, ::10])
    exact = {"INFERENCE_PRECISION_HINT": "f32", "KV_CACHE_PRECISION": "f32"}
    plain = openvino_genai.WhisperPipeline(folder, "CPU", **exact)
    timed = openvino_genai.WhisperPipeline(folder, "CPU", **exact, word_timestamps=True)
    found: dict[str, Any] = {}
    for name, (seconds, parameters) in CASES.items():
        pipeline = timed if "word_timestamps" in parameters else plain
        said = pipeline.generate(tools.speech(seconds).tolist(), **parameters)
        words = [
            [each.start_ts, each.end_ts, each.word, each.token_ids] for each in said.words or []
        ]
        chunks = [[each.start_ts, each.end_ts, each.text] for each in said.chunks or []]
        found[name] = {
            "seconds": seconds,
            "parameters": parameters,
            "text": said.texts[0],
            "language": getattr(said, "language", None),
            "chunks": chunks,
            "words": words,
        }
        print(name, found[name], flush=True)
    return found


def main() -> None:
    """Write all golden files."""
    TARGET.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        work = Path(scratch)
        write_folder(work / "model")
        for precision, options in PRECISIONS.items():
            ir = work / precision
            export(work / "model", TASK, options, ir)
            parts = [
                keep(ir / f"openvino_{part}_model.xml", TARGET, f"{part}_{precision}", work)
                for part in ("encoder", "decoder")
            ]
            found = oracle(*parts)
            np.savez_compressed(TARGET / f"whisper_{precision}.npz", **found)
            if precision == "fp16":
                said = transcriptions(parts, work)
                (TARGET / "transcriptions.json").write_text(json.dumps(said, indent=1) + "\n")
            print(f"{precision}: greedy {found['greedy'].tolist()}", flush=True)


if __name__ == "__main__":
    main()
