"""Golden files tests/goldens/flux2: FLUX.2's models that create and read images, and their outputs.

The models are tiny, with weights drawn from a seed, in diffusers' form, converted by the real
OpenVINO with static shapes. The XML is stored, a recipe of the ``.bin`` (``golden_ir``), and the
CPU plugin's outputs for random inputs in f32. The text encoder is a Qwen 3, which other goldens
cover. Needs diffusers, which the oracles' environment lacks, and torch:

    pip install torch diffusers==0.36.0 transformers==4.57.6 openvino==2026.4.1
    python tools/make_flux2_goldens.py      # from the checkout, half a minute
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from golden_ir import EXACT, GOLDENS, keep

TARGET = GOLDENS / "flux2"
IMAGE, TEXT, CHANNELS, WIDTH = 16, 8, 16, 24
"""Patches of the image, tokens of the text, channels of both, width of the model."""

Made = tuple[Any, dict[str, Any]]
"""Module with named inputs, and example inputs."""


def transformer() -> Made:
    """Build the denoising transformer."""
    import torch
    from diffusers import Flux2Transformer2DModel

    model = Flux2Transformer2DModel(
        patch_size=1,
        in_channels=CHANNELS,
        num_layers=1,
        num_single_layers=2,
        attention_head_dim=16,
        num_attention_heads=2,
        joint_attention_dim=WIDTH,
        timestep_guidance_channels=16,
        mlp_ratio=2.0,
        axes_dims_rope=(4, 4, 4, 4),
    )

    class Denoiser(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(
            self, hidden_states, encoder_hidden_states, timestep, img_ids, txt_ids, guidance
        ):
            return self.model(
                hidden_states=hidden_states,
                encoder_hidden_states=encoder_hidden_states,
                timestep=timestep,
                img_ids=img_ids,
                txt_ids=txt_ids,
                guidance=guidance,
                return_dict=False,
            )[0]

    return Denoiser(), {
        "hidden_states": torch.randn(1, IMAGE, CHANNELS),
        "encoder_hidden_states": torch.randn(1, TEXT, WIDTH),
        "timestep": torch.tensor([0.5]),
        "img_ids": torch.randint(0, 4, (IMAGE, 4)).float(),
        "txt_ids": torch.zeros(TEXT, 4),
        "guidance": torch.tensor([3.5]),
    }


def _autoencoder() -> Any:
    from diffusers import AutoencoderKLFlux2

    return AutoencoderKLFlux2(
        block_out_channels=(8, 16),
        down_block_types=("DownEncoderBlock2D",) * 2,
        up_block_types=("UpDecoderBlock2D",) * 2,
        layers_per_block=1,
        latent_channels=4,
        norm_num_groups=4,
        sample_size=16,
    )


def vae_decoder() -> Made:
    """Build the decoder from latents to an image."""
    import torch

    model = _autoencoder()

    class Decoder(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, latent_sample):
            return self.model.decode(latent_sample, return_dict=False)[0]

    return Decoder(), {"latent_sample": torch.randn(1, 4, 8, 8)}


def vae_encoder() -> Made:
    """Build the encoder from an image to latents."""
    import torch

    model = _autoencoder()

    class Encoder(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, sample):
            return self.model.encode(sample).latent_dist.parameters

    return Encoder(), {"sample": torch.randn(1, 3, 16, 16)}


def convert(module: Any, examples: dict[str, Any], path: Path) -> None:
    """Write an IR with static shapes."""
    import openvino as ov

    model = ov.convert_model(module.eval(), example_input=examples)
    for port, name in zip(model.inputs, examples, strict=True):
        port.get_tensor().set_names({name})
        port.get_node().set_friendly_name(name)
    model.reshape({name: list(value.shape) for name, value in examples.items()})
    ov.save_model(model, path, compress_to_fp16=False)


def main() -> None:
    """Write all golden files."""
    import openvino as ov
    import torch

    argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0]).parse_args()
    TARGET.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        for number, make in enumerate((transformer, vae_decoder, vae_encoder)):
            torch.manual_seed(number)
            module, examples = make()
            path = Path(scratch) / f"{make.__name__}.xml"
            with torch.no_grad():
                convert(module, examples, path)
            restored = keep(path, TARGET, make.__name__, Path(scratch))
            inputs = {name: value.numpy() for name, value in examples.items()}
            (said,) = ov.Core().compile_model(restored, "CPU", EXACT)(inputs).values()
            np.savez_compressed(TARGET / f"{make.__name__}.npz", output=said, **inputs)
            print(make.__name__, said.shape, float(np.abs(said).max()))


if __name__ == "__main__":
    main()
