"""Host flash attention: tiles say what the whole does; those that nobody attends to do not run."""

from __future__ import annotations

import numpy as np
import pytest

from attention.attentions import Attention, Bound, by_hand, whole
from npuw_layer.adapters.compiler_layer import StaticCompiler
from npuw_layer.adapters.interpreter import InterpreterDevice
from npuw_layer.adapters.level_zero import LevelZeroDevice
from npuw_layer.attention.flash_device import FlashAttentionDevice
from npuw_layer.attention.flash_model import LoadedFlash
from npuw_layer.ports import Device

LONGEST = 16

KINDS = {
    "f32": Attention(),
    "f16": Attention(element="f16"),
    "i8": Attention(i8=True),
    "f16 i8": Attention(element="f16", i8=True),
    "boolean": Attention(mask="boolean"),
    "biases": Attention(mask_heads=4),
    "one head": Attention(heads=1, group=3, mask="f16"),
    "a token": Attention(tokens=1, past=39),
    "as long as a tile": Attention(tokens=16, past=48),
    "ends inside of a tile": Attention(past=37),
    "a short past": Attention(past=5),
}
CLOSE = {"f16": 3e-3, "f16 i8": 3e-3}


def npu() -> LevelZeroDevice:
    return LevelZeroDevice(StaticCompiler(), "4000")


def loaded(attention: Attention, inner: Device, longest: int = LONGEST) -> LoadedFlash:
    device = FlashAttentionDevice(inner, longest)
    found = device.load(device.compile(attention.graph(), attention.config()))
    assert isinstance(found, LoadedFlash)
    return found


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("make", [npu, InterpreterDevice])
def test_tiles_say_what_the_whole_does(kind, make):
    attention, device = KINDS[kind], make()
    model = loaded(attention, device)
    bound = Bound(device, model)
    for seed, live in enumerate((0, 1, attention.past // 2, attention.past)):
        values = attention.values(seed, live)
        found = bound.run(values)
        for expected in (whole(attention, values), by_hand(attention, values)):
            assert np.abs(found - expected).max() < CLOSE.get(kind, 2e-6) * np.abs(expected).max()
