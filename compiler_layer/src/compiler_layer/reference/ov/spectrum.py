"""Short-time Fourier transforms in numpy."""

from __future__ import annotations

import numpy as np

from compiler_layer.dialects.ov import spectrum as ov
from compiler_layer.dialects.ov.op import int_value
from compiler_layer.reference.meaning import Array, means, wide

_LEAST = 1e-11
"""Weight of windows below which a sample is undetermined and stays 0."""


@means(ov.STFT)
def stft(op: ov.STFT, signal: Array, window: Array, frame_size: Array, step: Array) -> Array:
    """Transform frame by frame."""
    size = int(frame_size.reshape(()))
    every = np.lib.stride_tricks.sliding_window_view(wide(signal), size, -1)
    frames = every[..., :: int(step.reshape(())), :]
    found = np.fft.rfft(frames * _whole(window, size))
    parts = np.stack([found.real, found.imag], -1)
    turned = np.swapaxes(parts, -3, -2) if int_value(op.transpose_frames) else parts
    return turned.astype(signal.dtype)


@means(ov.ISTFT)
def istft(op: ov.ISTFT, spectrum: Array, window: Array, frame_size: Array, step: Array) -> Array:
    """Sum the inverse transforms of overlapping frames, normalised by the windows' weights."""
    size, hop = int(frame_size.reshape(())), int(step.reshape(()))
    weights = _whole(window, size)
    numbers = wide(spectrum[..., 0]) + 1j * wide(spectrum[..., 1])
    frames = np.fft.irfft(np.swapaxes(numbers, -2, -1), size) * weights
    count = frames.shape[-2]
    total = np.zeros((*frames.shape[:-2], (count - 1) * hop + size))
    shares = np.zeros(total.shape[-1])
    for number in range(count):
        place = slice(number * hop, number * hop + size)
        total[..., place] += frames[..., number, :]
        shares[place] += weights**2
    found = np.divide(total, shares, out=np.zeros_like(total), where=shares > _LEAST)
    if int_value(op.center):
        begin = size // 2
        found = found[..., begin : begin + (count - 1) * hop]
    return found.astype(spectrum.dtype)


def _whole(window: Array, size: int) -> Array:
    """Return a window padded to the size of a frame."""
    before = (size - window.size) // 2
    return np.pad(wide(window), (before, size - window.size - before)).astype(np.float64)
