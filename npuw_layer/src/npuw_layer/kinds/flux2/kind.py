"""The record of FLUX.2, whose models are static models with their own defaults.

Text encoder, transformer and the two halves of the autoencoder are compiled separately; their
inputs identify them.

Source: NPUW's Flux2CompiledModel, which also considers the model's name. Its other choices (dynamic
quantization, f32 links) have no counterpart here.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from npuw_layer.kinds.static.kind import ThroughNpuw
from npuw_layer.options.base import OptionGroup
from npuw_layer.options.kinds import KindOptions
from npuw_layer.options.plain import PlainOptions

if TYPE_CHECKING:
    from npuw_layer.options import Options

_log = logging.getLogger(__name__)

Role = Literal["text_encoder", "transformer", "vae_decoder", "vae_encoder", "unknown"]

_OF_TRANSFORMER = ("encoder_hidden_states", "timestep", "txt_ids")
_IMAGE_RANK = 4
_RGB = "3"


class Flux2Options(KindOptions):
    """Image generation with FLUX.2."""

    title: ClassVar[str] = "FLUX.2"
    flags: ClassVar[tuple[str, ...]] = ("flux2",)
    follows: ClassVar[type[OptionGroup] | None] = PlainOptions

    flux2: bool = Field(False, alias="NPUW_FLUX2")
    """The model is one of the models of FLUX.2: text encoder, transformer, decoder or encoder of
    images; its inputs identify it. It runs through NPUW (NPU_USE_NPUW), so its shapes must be
    static. The default of NPUW_ONLINE_PIPELINE is REG for the text encoder and the transformer, and
    NONE for the image models."""


class Flux2Kind(ThroughNpuw):
    """Image generation with FLUX.2 (NPUW_FLUX2)."""

    name = "flux2"
    options = Flux2Options
    because = "all models of FLUX.2 are static"

    def defaults(self, path: Path, options: Options) -> Mapping[str, str]:
        """Return the pipeline of a model's role.

        Layers of text encoder and transformer repeat and are compiled once; convolutions do not
        repeat.
        """
        del options
        role = role_of(path)
        if role == "unknown":
            _log.warning("NPUW_FLUX2: %s: the inputs match no model of FLUX.2", path)
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
