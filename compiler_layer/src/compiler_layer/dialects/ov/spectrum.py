"""Short-time Fourier transform and its inverse."""

from __future__ import annotations

from xdsl.dialects.builtin import BoolAttr, StringAttr
from xdsl.ir import SSAValue
from xdsl.irdl import operand_def, prop_def, result_def

from compiler_layer.dialects.ov.constant import ints_of
from compiler_layer.dialects.ov.op import OvOp, int_value
from compiler_layer.dialects.ov.types import Tensor, element_of, shape_of, tensor

PARTS = 2
"""Parts of a complex number: real and imaginary."""


class STFT(OvOp):
    """Spectra of the windowed frames of a signal [B, N] or [N] (opset15).

    Frames have ``frame_size`` elements and begin ``frame_step`` apart; a shorter window is centred
    in the frame.
    """

    signal = operand_def(Tensor)
    window = operand_def(Tensor)
    frame_size = operand_def(Tensor)
    frame_step = operand_def(Tensor)
    transpose_frames = prop_def(BoolAttr)
    output = result_def(Tensor)

    def infer(self) -> list[Tensor]:
        """Infer [B, frames, bins, 2]; ``transpose_frames`` swaps frames and bins."""
        *batch, length = shape_of(self.signal)
        if len(batch) > 1 or element_of(self.signal) != element_of(self.window):
            raise ValueError(f"a signal of {[*batch, length]} has no spectrum with this window")
        size, step = checked_frames(self.frame_size, self.frame_step)
        frames = bins = -1
        if size > 0:
            bins = size // 2 + 1
        if size > 0 and step > 0 and length >= 0:
            if length < size:
                raise ValueError(f"frames of {size} are longer than the signal of {length}")
            frames = (length - size) // step + 1
        outer = (bins, frames) if int_value(self.transpose_frames) else (frames, bins)
        return [tensor(element_of(self.signal), (*batch, *outer, PARTS))]


class ISTFT(OvOp):
    """Signal [B, N] or [N] whose frames have the spectra [B, bins, frames, 2] (opset16).

    Overlapping frames are summed, and divided by the sum of the squared windows. ``center`` crops
    half a frame at both ends.
    """

    spectrum = operand_def(Tensor)
    window = operand_def(Tensor)
    frame_size = operand_def(Tensor)
    frame_step = operand_def(Tensor)
    center = prop_def(BoolAttr)
    normalized = prop_def(StringAttr)
    output = result_def(Tensor)

    def infer(self) -> list[Tensor]:
        """Infer [B, N]."""
        shape = shape_of(self.spectrum)
        if len(shape) not in (3, 4) or shape[-1] not in (PARTS, -1):
            raise ValueError(f"{list(shape)} are not spectra [B, bins, frames, 2]")
        if element_of(self.spectrum) != element_of(self.window):
            raise ValueError(
                f"spectra are {element_of(self.spectrum)}, the window {element_of(self.window)}"
            )
        *batch, bins, frames, _ = shape
        size, step = checked_frames(self.frame_size, self.frame_step)
        if size > 0 and bins not in (-1, size // 2 + 1):
            raise ValueError(f"{bins} bins do not fit frames of {size}")
        length = -1
        if size > 0 and step > 0 and frames >= 0:
            length = (frames - 1) * step + (0 if int_value(self.center) else size)
            if length < 0:
                raise ValueError("the signal has no frames")
        return [tensor(element_of(self.spectrum), (*batch, length))]


def checked_frames(size: SSAValue, step: SSAValue) -> tuple[int, int]:
    """Return the length of frames and the distance of their begins; -1 for an unknown number.

    Raises:
        ValueError: a number is not positive, or not a scalar.
    """
    found: list[int] = []
    for value in (size, step):
        if any(d not in (1, -1) for d in shape_of(value)):
            raise ValueError(f"a frame length or step is not a scalar: {list(shape_of(value))}")
        known = ints_of(value)
        found.append(-1 if known is None else known[0])
        if known is not None and known[0] < 1:
            raise ValueError(f"a frame length or step is not positive: {known[0]}")
    return found[0], found[1]
