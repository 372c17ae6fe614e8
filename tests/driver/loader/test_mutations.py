"""Damaged blobs: typed errors that name section and offset, never a crash or a hang."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from driver_layer.abi.elf import EHDR, SHDR
from driver_layer.abi.platforms import PLATFORMS
from driver_layer.errors import BlobError, DeviceFault, HeaderError, OutOfMemory
from driver_layer.loader.hpi import HostParsedInference
from driver_layer.npu.device import Device
from driver_layer.npu.memory import AddressSpace, MemoryKind
from driver_layer.testing.blobs import COLS, DEPTH, ROWS, dense_blob

BLOB = dense_blob()
STRIDED = dense_blob(strided=True)
CORPUS = Path(__file__).parent / "corpus"
GUARD = 0xA5


def load_and_run(blob: bytes) -> str:
    """Load and run a blob; return its last step, or the name of its error."""
    platform = PLATFORMS["4000"]
    space, device = AddressSpace(), Device(platform)
    x = space.allocate(ROWS * DEPTH * 4, MemoryKind.DMA)
    y = space.allocate(ROWS * COLS * 4, MemoryKind.DMA)
    guard = space.allocate(4096, MemoryKind.DMA, writable=False)
    guard.data[:] = GUARD
    try:
        inference = HostParsedInference(blob, platform)
        inference.load(space)
        if (len(inference.metadata.inputs), len(inference.metadata.outputs)) != (1, 1):
            return "other arguments"
        inference.apply_input_output([x.address], [y.address])
        device.run_inference(space, inference.address)
    except BlobError as error:
        return type(error).__name__ if _names_its_place(error) else "nameless error"
    except (DeviceFault, OutOfMemory) as error:
        return type(error).__name__
    finally:
        assert (guard.data == GUARD).all(), "the blob wrote outside its memory"
    return "ran"


def _names_its_place(error: BlobError) -> bool:
    return error.offset is not None and (
        error.section is not None or isinstance(error, HeaderError)
    )


def mutate(draw: random.Random) -> bytes:
    """Return a blob with a few damaged bytes, mostly in headers and records."""
    blob = bytearray(draw.choice((BLOB, STRIDED)))
    headers = np.frombuffer(blob, SHDR, int(np.frombuffer(blob, EHDR, 1)["e_shnum"][0]), 64).copy()
    for _ in range(draw.choice((1, 1, 2, 4))):
        place = draw.random()
        if place < 0.4:
            at = draw.randrange(64 + headers.nbytes)
        else:
            section = draw.choice(headers)
            size = max(1, min(int(section["sh_size"]), 4096))
            at = (int(section["sh_offset"]) + draw.randrange(size)) % len(blob)
        if draw.random() < 0.5:
            blob[at] ^= 1 << draw.randrange(8)
        else:
            width = draw.choice((1, 2, 4, 8))
            value = draw.choice((0, 1, 2 ** (8 * width) - 1, draw.getrandbits(8 * width)))
            blob[at : at + width] = value.to_bytes(width, "little")
    if draw.random() < 0.03:
        del blob[draw.randrange(len(blob)) :]
    return bytes(blob)


@pytest.mark.parametrize("blob", [BLOB, STRIDED])
def test_the_undamaged_blob_runs(blob: bytes) -> None:
    assert load_and_run(blob) == "ran"


@pytest.mark.long
def test_a_thousand_mutations_result_in_outputs_or_typed_errors() -> None:
    draw = random.Random(2026)
    outcomes = {load_and_run(mutate(draw)) for _ in range(1000)}
    assert "nameless error" not in outcomes
    # The mutations must reach every stage of loading; otherwise the test would prove nothing.
    assert {"ran", "HeaderError", "SectionError", "RelocError", "KernelError", "DeviceFault"} <= (
        outcomes
    )


@settings(max_examples=50, deadline=None)
@given(
    st.sampled_from((BLOB, STRIDED)),
    st.integers(0, len(BLOB) - 1),
    st.binary(min_size=1, max_size=16),
)
def test_any_overwritten_bytes_result_in_outputs_or_typed_errors(
    blob: bytes, at: int, content: bytes
) -> None:
    load_and_run(blob[:at] + content + blob[at + len(content) :])


@settings(max_examples=15, deadline=None)
@given(st.integers(0, len(BLOB) - 1))
def test_a_truncated_blob_is_rejected(size: int) -> None:
    assert load_and_run(BLOB[:size]) in ("HeaderError", "SectionError")


@pytest.mark.parametrize("path", sorted(CORPUS.glob("*.blob")), ids=lambda path: path.stem)
def test_blobs_of_the_corpus_do_not_break_the_loader(path: Path) -> None:
    load_and_run(path.read_bytes())
