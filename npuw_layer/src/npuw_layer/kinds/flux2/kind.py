"""The record of FLUX.2, whose models are static ones with defaults of their own.

Text encoder, transformer and the two halves of the autoencoder are compiled one by one; their
inputs tell them apart.

Source: NPUW's Flux2CompiledModel, whose other choices (dynamic quantisation, f32 links) have
nothing to choose here; it also goes by the model's name.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from npuw_layer.kinds.flux2.options import Flux2Options
from npuw_layer.kinds.static.kind import ThroughNpuw

if TYPE_CHECKING:
    from npuw_layer.options import Options

_log = logging.getLogger(__name__)

Role = Literal["text_encoder", "transformer", "vae_decoder", "vae_encoder", "unknown"]

_OF_TRANSFORMER = ("encoder_hidden_states", "timestep", "txt_ids")
_IMAGE_RANK = 4
_RGB = "3"


class Flux2Kind(ThroughNpuw):
    """Image generation with FLUX.2 (NPUW_FLUX2)."""

    name = "flux2"
    options = Flux2Options
    because = "all models that make an image are static"

    def defaults(self, path: Path, options: Options) -> Mapping[str, str]:
        """Return the pipeline of a model's role.

        Layers of text encoder and transformer are compiled once; convolutions have none in common.
        """
        del options
        role = role_of(path)
        if role == "unknown":
            _log.warning("NPUW_FLUX2: %s: the inputs are those of no model of a FLUX.2", path)
        else:
            _log.info("NPUW_FLUX2: %s is a %s", path, role)
        return {"online_pipeline": "NONE" if role.startswith("vae") else "REG"}


def role_of(path: Path) -> Role:
    """Return the role of an IR among the models of a FLUX.2."""
    from npuw_layer.storage.ir_ends import ir_inputs

    inputs = dict(ir_inputs(path))
    if any(part in name for name in inputs for part in _OF_TRANSFORMER):
        return "transformer"
    if any("input_ids" in name for name in inputs):
        return "text_encoder"
    for dims in inputs.values():
        if len(dims) == _IMAGE_RANK:
            return "vae_encoder" if dims[1] == _RGB else "vae_decoder"
    return "unknown"


KIND = Flux2Kind()
