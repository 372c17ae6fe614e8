"""Prediction of a blob's timeline."""

from __future__ import annotations

from driver_layer.abi.elf import SectionType
from driver_layer.abi.platforms import PLATFORMS, Platform
from driver_layer.errors import CompatibilityError
from driver_layer.loader.hpi import HostParsedInference
from driver_layer.loader.metadata import read_arch
from driver_layer.loader.read import Blob, Buffer, read_blob
from driver_layer.npu.bus import Bus
from driver_layer.npu.cmx import Cmx
from driver_layer.npu.decoder import Decoder
from driver_layer.npu.memory import AddressSpace, MemoryKind
from driver_layer.npu.timeline.price import price
from driver_layer.npu.timeline.simulate import TaskTime, simulate


def predict(blob: Blob | Buffer, platform: Platform | None = None) -> list[TaskTime]:
    """Predict begin and end of each task of a blob.

    Args:
        blob: the file, or the result of ``read_blob``. Its weights are not read.
        platform: the device; the one that the blob is for if not given. A platform from a file
            (``load_platform``) must have the blob's architecture.

    Returns:
        The tasks, queue by queue, each in order.

    Raises:
        BlobError: the blob is malformed, or for another platform or version.
        DeviceFault: the blob's task lists are malformed, or deadlock.
        OutOfMemory: the blob does not fit the device's memory.
    """
    parsed = blob if isinstance(blob, Blob) else read_blob(blob)
    device = platform or _platform_of(parsed)
    inference = HostParsedInference(parsed, device)
    space = AddressSpace()
    inference.load(space)
    # The caller's buffers are unknown here; their addresses only have to be in DDR.
    somewhere = MemoryKind.DMA.value.begin
    inputs, outputs = inference.metadata.inputs, inference.metadata.outputs
    inference.apply_input_output([somewhere] * len(inputs), [somewhere] * len(outputs))
    return predict_loaded(space, inference.address, device)


def predict_loaded(space: AddressSpace, hpi_address: int, platform: Platform) -> list[TaskTime]:
    """Predict begin and end of each task of a loaded inference.

    Args:
        space: the memory of the context that loaded the inference.
        hpi_address: address of the HOST_PARSED_INFERENCE record.
        platform: the device.

    Raises:
        DeviceFault: the task lists are malformed, or deadlock.
    """
    program = Decoder(space).decode(hpi_address)
    return simulate(program, price(program, platform, Bus(Cmx(platform), space)), platform)


def _platform_of(blob: Blob) -> Platform:
    arch = read_arch(blob)
    for platform in PLATFORMS.values():
        if platform.arch == arch:
            return platform
    section = SectionType.VPU_SHT_PLATFORM_INFO.name
    raise CompatibilityError(f"unknown architecture {arch}", section, 0)
