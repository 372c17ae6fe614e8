"""The models of a FLUX.2, which makes images: what each is compiled with.

Text encoder, transformer and the two halves of the autoencoder are compiled one by one, all as
static models. Which one it is its inputs tell.

Source: NPUW's Flux2CompiledModel, whose other choices (dynamic quantisation, f32 links) have
nothing to choose here; it also goes by the model's name.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Literal

from npuw_layer.kinds.ir_inputs import ir_inputs

_log = logging.getLogger(__name__)

Role = Literal["text_encoder", "transformer", "vae_decoder", "vae_encoder", "unknown"]

_OF_TRANSFORMER = ("encoder_hidden_states", "timestep", "txt_ids")
_IMAGE_RANK = 4
_RGB = "3"


def role_of(path: Path) -> Role:
    """Tell which of the models an IR is."""
    inputs = dict(ir_inputs(path))
    if any(part in name for name in inputs for part in _OF_TRANSFORMER):
        return "transformer"
    if any("input_ids" in name for name in inputs):
        return "text_encoder"
    for dims in inputs.values():
        if len(dims) == _IMAGE_RANK:
            return "vae_encoder" if dims[1] == _RGB else "vae_decoder"
    return "unknown"


def flux2_defaults(path: Path) -> dict[str, str]:
    """Give what a model is compiled with, if nothing else is said.

    Layers of text encoder and transformer are compiled once; convolutions have none in common.
    """
    role = role_of(path)
    if role == "unknown":
        _log.warning("NPUW_FLUX2: %s: the inputs are those of no model of a FLUX.2", path)
    else:
        _log.info("NPUW_FLUX2: %s is a %s", path, role)
    return {"online_pipeline": "NONE" if role.startswith("vae") else "REG"}
