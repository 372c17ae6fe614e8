"""Golden files tests/goldens/kokoro: IR of a tiny Kokoro with static shapes, and its outputs.

The package kokoro creates the model from a small configuration, with random weights. The widths of
its decoder are constants in kokoro's code, so the decoder is rebuilt from kokoro's modules, narrow
and with two blocks instead of four. It is converted like in optimum-intel's exporter (by
``forward_with_tokens``, with its input and output names), and reshaped for an NPU like in
openvino_genai.

One of its random ops has no seed; it gets one here, so the first inference of a request of the real
OpenVINO always returns equal results.

As in ``make_export_goldens.py``, the XML is stored, and a recipe of the ``.bin`` that draws weights
again. Needs PyTorch, transformers and kokoro, which only such scripts need:

    pip install torch==2.13.0 "transformers==4.57.6" openvino loguru attrs
    pip install --no-deps kokoro==0.9.4
    python tools/make_kokoro_goldens.py         # from the checkout, about a minute
"""

from __future__ import annotations

import importlib.util
import sys
import tempfile
import types
from pathlib import Path
from typing import Any

import numpy as np
from golden_ir import EXACT, GOLDENS, keep, load_module

TARGET = GOLDENS / "kokoro"
WIDTH, STYLE, RESIDUAL = 16, 128, 8
"""Channels of the decoder, of a voice, and of the text's residual input to the blocks."""
WINDOW_BYTES = 256
"""Limit below which constants are stored, such as the window of the Fourier transforms."""

tools = load_module(TARGET / "texts.py")
"""Input texts, shared with the tests."""

VOCODER: dict[str, Any] = {
    "upsample_kernel_sizes": [8, 5],
    "upsample_rates": [4, 3],
    "gen_istft_hop_size": 5,
    "gen_istft_n_fft": 20,
    "resblock_dilation_sizes": [[1, 3, 5]],
    "resblock_kernel_sizes": [3],
    "upsample_initial_channel": WIDTH,
}
CONFIG: dict[str, Any] = {
    "vocab": {},
    "n_token": tools.VOCABULARY,
    "hidden_dim": WIDTH,
    "style_dim": STYLE,
    "n_layer": 1,
    "max_dur": 8,
    "dropout": 0.2,
    "text_encoder_kernel_size": 5,
    "n_mels": 80,
    "plbert": {
        "hidden_size": 16,
        "num_attention_heads": 2,
        "intermediate_size": 32,
        "max_position_embeddings": 512,
        "num_hidden_layers": 1,
        "embedding_size": 8,
        "dropout": 0.1,
    },
    "istftnet": VOCODER | {"upsample_initial_channel": 512},
}


def import_kokoro() -> None:
    """Make kokoro's modules importable without its text processing, which needs more packages."""
    spec = importlib.util.find_spec("kokoro")
    assert spec is not None
    package = types.ModuleType("kokoro")
    package.__path__ = list(spec.submodule_search_locations or [])
    sys.modules["kokoro"] = package


def make_model(work: Path) -> Any:
    """Return a Kokoro with random weights and a narrow decoder."""
    import_kokoro()
    import torch
    from kokoro.istftnet import AdainResBlk1d, Generator
    from kokoro.model import KModel

    torch.manual_seed(7)
    torch.save({}, work / "none.pth")
    model = KModel(repo_id="hexgrad/Kokoro-82M", config=CONFIG, model=str(work / "none.pth"))
    inner = WIDTH + 2 + RESIDUAL
    decoder = model.decoder
    decoder.encode = AdainResBlk1d(WIDTH + 2, WIDTH, STYLE)
    blocks = [AdainResBlk1d(inner, WIDTH, STYLE, upsample=last) for last in ("none", True)]
    decoder.decode = torch.nn.ModuleList(blocks)
    narrow = torch.nn.Conv1d(WIDTH, RESIDUAL, kernel_size=1)
    decoder.asr_res = torch.nn.Sequential(torch.nn.utils.weight_norm(narrow))
    decoder.generator = Generator(STYLE, **VOCODER)
    with torch.no_grad():
        # With random weights, all durations would be equal and the audio too loud.
        model.predictor.duration_proj.linear_layer.weight *= 12
        decoder.generator.conv_post.weight_g *= 0.1
    model.forward = model.forward_with_tokens
    return model.eval()


def convert(work: Path) -> Path:
    """Write the IR with static shapes; return the path of the XML."""
    import openvino as ov
    import torch

    example = {
        "input_ids": torch.ones((1, 16), dtype=torch.int64),
        "ref_s": torch.randn(1, 2 * STYLE),
        "speed": torch.ones(1),
    }
    model = ov.convert_model(make_model(work), example_input=example)
    for ports, names in ((model.inputs, tools.INPUTS), (model.outputs, tools.OUTPUTS)):
        for port, name in zip(ports, names, strict=True):
            port.get_tensor().set_names({name})
    model.reshape({"input_ids": [1, tools.TOKENS], "ref_s": [1, 2 * STYLE], "speed": [1]})
    path = work / "kokoro.xml"
    ov.save_model(model, path, compress_to_fp16=False)
    text = path.read_text()
    assert text.count('op_seed="0"') == 1
    path.write_text(text.replace('op_seed="0"', 'op_seed="7"'))
    return path


def oracle(path: Path) -> dict[str, np.ndarray]:
    """Return the real OpenVINO's results for each text, unsplit and without padding, in f32."""
    import openvino as ov

    found: dict[str, np.ndarray] = {}
    for length in tools.LENGTHS:
        core = ov.Core()
        model = core.read_model(path)
        model.reshape({"input_ids": [1, length], "ref_s": [1, 2 * STYLE], "speed": [1]})
        said = core.compile_model(model, "CPU", EXACT)(tools.text(length, length))
        audio, durations = said.values()
        found[f"audio_{length}"], found[f"durations_{length}"] = (
            np.array(audio),
            np.array(durations),
        )
        print(length, audio.shape, durations.tolist(), float(np.abs(audio).max()), flush=True)
    return found


def main() -> None:
    """Write all golden files."""
    with tempfile.TemporaryDirectory() as scratch:
        work = Path(scratch)
        restored = keep(convert(work), TARGET, "kokoro", work, WINDOW_BYTES)
        np.savez_compressed(TARGET / "kokoro.npz", **oracle(restored))


if __name__ == "__main__":
    main()
