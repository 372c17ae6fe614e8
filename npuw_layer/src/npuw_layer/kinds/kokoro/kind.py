"""The record of Kokoro, which builds on static models."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from npuw_layer.kinds.kokoro.options import KokoroOptions
from npuw_layer.kinds.static.kind import ThroughNpuw

if TYPE_CHECKING:
    from npuw_layer.backends.protocols import Device
    from npuw_layer.execution.core_devices import CoreDevices
    from npuw_layer.kinds.kokoro.compiled_model import KokoroCompiledModel
    from npuw_layer.options import Options

_AVOIDED = (
    *("RandomUniform", "Mod", "CumSum", "Interpolate", "Atan", "STFT", "ISTFT"),
    *("LSTMSequence", "ConvolutionBackpropData", "GroupConvolutionBackpropData", "Pad"),
)
"""Ops of the audio model that NPU programs do not support. NPUW leaves four chains of them to the
CPU, as they need f32: accumulated phases, noise, and arctangents.

Source: NPUW's kokoro_compiled_model, its default of NPUW_ONLINE_AVOID.
"""


class KokoroKind(ThroughNpuw):
    """Text to speech with Kokoro (NPUW_KOKORO)."""

    name = "kokoro"
    rank = 1
    options = KokoroOptions
    because = "NPUW splits the model, and both parts are static"

    def defaults(self, path: Path, options: Options) -> Mapping[str, str]:
        """Return f32, and ops to avoid on the NPU if another device can run them.

        Phases of many harmonics are accumulated; NPUW computes them on the CPU in f32.
        """
        del path
        devices = {name.strip() for name in options.devices.split(",")}
        takes_over = "NPU" in devices and len(devices) > 1 and not options.cuts_models
        avoided = _AVOIDED if takes_over else ()
        return {"precision": "f32", "online_avoid": ",".join(f"Op:{op}/NPU" for op in avoided)}

    def device(self, devices: CoreDevices, options: Options) -> Device:
        """Return the device that runs both models, of which the second may be partitioned."""
        from npuw_layer.kinds.kokoro.names import AUDIO, SUBMODELS

        return devices.of_static(options, SUBMODELS, cut=AUDIO)

    def build(
        self, devices: CoreDevices, device: Device, path: Path, options: Options
    ) -> KokoroCompiledModel:
        """Compile both models."""
        from npuw_layer.kinds.kokoro.compiled import compile_kokoro
        from npuw_layer.kinds.kokoro.compiled_model import KokoroCompiledModel

        npu = devices.npu_of(device, options)
        return KokoroCompiledModel(compile_kokoro(path, device, npu, options))


KIND = KokoroKind()
