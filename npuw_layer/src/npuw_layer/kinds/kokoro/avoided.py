"""What of the audio model is not for the NPU, if nobody says otherwise.

The original leaves four chains of ops to the CPU, as they need f32: phases that are added up,
noise, and angles. Here that is all the NPU has no program for, these chains among it.

Source: NPUW's kokoro_compiled_model, its default of NPUW_ONLINE_AVOID.
"""

from __future__ import annotations

from npuw_layer.options import Options

_OPS = (
    *("RandomUniform", "Mod", "CumSum", "Interpolate", "Atan", "STFT", "ISTFT"),
    *("LSTMSequence", "ConvolutionBackpropData", "GroupConvolutionBackpropData", "Pad"),
)


def avoided_ops(options: Options) -> str:
    """Give NPUW_ONLINE_AVOID for the devices that are asked for.

    Returns:
        Empty without the NPU, or where no other device takes parts over.
    """
    names = {name.strip() for name in options.devices.split(",")}
    if "NPU" not in names or len(names) == 1:
        return ""
    return ",".join(f"Op:{name}/NPU" for name in _OPS)
