"""Short-time Fourier transforms: of a signal its spectrum, and back."""

from __future__ import annotations

from xdsl.dialects.builtin import BoolAttr, StringAttr
from xdsl.ir import SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, prop_def, result_def

from compiler_layer.dialects.ov.constant import ints_of
from compiler_layer.dialects.ov.op import OvOp, int_value
from compiler_layer.dialects.ov.types import Tensor, element_of, shape_of, tensor

PARTS = 2
"""Of a complex number: real and imaginary."""


@irdl_op_definition
class STFT(OvOp):
    """The spectrum of each frame of a signal [B, N], or [N], times a window (opset15).

    Frames have ``frame_size`` elements and begin ``frame_step`` apart; a shorter window lies in
    their middle.
    """

    name = "ov.STFT"
    signal = operand_def(Tensor)
    window = operand_def(Tensor)
    frame_size = operand_def(Tensor)
    frame_step = operand_def(Tensor)
    transpose_frames = prop_def(BoolAttr)
    output = result_def(Tensor)

    def infer(self) -> list[Tensor]:
        """[B, frames, bins, 2]; frames and bins change places with ``transpose_frames``."""
        *batch, length = shape_of(self.signal)
        if len(batch) > 1 or element_of(self.signal) != element_of(self.window):
            raise ValueError(f"a spectrum of {[*batch, length]}")
        size, step = checked_frames(self.frame_size, self.frame_step)
        frames = bins = -1
        if size > 0:
            bins = size // 2 + 1
        if size > 0 and step > 0 and length >= 0:
            if length < size:
                raise ValueError(f"frames of {size} of {length} elements")
            frames = (length - size) // step + 1
        outer = (bins, frames) if int_value(self.transpose_frames) else (frames, bins)
        return [tensor(element_of(self.signal), (*batch, *outer, PARTS))]


@irdl_op_definition
class ISTFT(OvOp):
    """The signal [B, N], or [N], whose frames have the spectra [B, bins, frames, 2] (opset16).

    Frames are added up where they overlap, over the sum of the windows' squares. With ``center``
    half a frame is cut off both ends.
    """

    name = "ov.ISTFT"
    spectrum = operand_def(Tensor)
    window = operand_def(Tensor)
    frame_size = operand_def(Tensor)
    frame_step = operand_def(Tensor)
    center = prop_def(BoolAttr)
    normalized = prop_def(StringAttr)
    output = result_def(Tensor)

    def infer(self) -> list[Tensor]:
        """[B, N]."""
        shape = shape_of(self.spectrum)
        if len(shape) not in (3, 4) or shape[-1] not in (PARTS, -1):
            raise ValueError(f"a signal of the spectra {list(shape)}")
        if element_of(self.spectrum) != element_of(self.window):
            raise ValueError(f"{element_of(self.spectrum)} with {element_of(self.window)}")
        *batch, bins, frames, _ = shape
        size, step = checked_frames(self.frame_size, self.frame_step)
        if size > 0 and bins not in (-1, size // 2 + 1):
            raise ValueError(f"{bins} bins of frames of {size}")
        length = -1
        if size > 0 and step > 0 and frames >= 0:
            length = (frames - 1) * step + (0 if int_value(self.center) else size)
            if length < 0:
                raise ValueError("a signal of no frames")
        return [tensor(element_of(self.spectrum), (*batch, length))]


def checked_frames(size: SSAValue, step: SSAValue) -> tuple[int, int]:
    """Give the length of frames and how far apart they begin; -1 is not known.

    Raises:
        ValueError: one is not positive, or several are given.
    """
    found: list[int] = []
    for value in (size, step):
        if any(d not in (1, -1) for d in shape_of(value)):
            raise ValueError(f"a length of {list(shape_of(value))}")
        known = ints_of(value)
        found.append(-1 if known is None else known[0])
        if known is not None and known[0] < 1:
            raise ValueError(f"frames of {known[0]}")
    return found[0], found[1]
