"""DMA descriptors of transfers.

Source: docs/reference/elf.md#dma-descriptors.
"""

from __future__ import annotations

from compiler_layer.elements import NUMPY
from compiler_layer.emit.tiles import is_tile
from compiler_layer.errors import UnsupportedModel
from compiler_layer.schedule.tasks import Place, Transfer
from driver_layer.abi.tasks import DMA_BURSTS, DmaCfg

MAX_DIMS = 5
"""Maximum number of strided dimensions of a descriptor, beyond the contiguous width."""

_SMALL_DIM = 1 << 16
"""Maximum size of dimensions 3 to 5, whose fields have 16 bits."""

_CFG = DmaCfg.ORDERED | DmaCfg.BARRIER_EN | DmaCfg.ATP_EN

Fields = dict[str, int]


def runs(place: Place) -> tuple[int, list[tuple[int, int]]]:
    """Return a tensor's contiguous bytes and strided dimensions (size, stride), innermost first."""
    width = NUMPY[place.element].itemsize
    dims: list[tuple[int, int]] = []
    for size, stride in zip(reversed(place.shape), reversed(place.strides), strict=True):
        if size == 1:
            continue
        if not dims and stride == width:
            width *= size
        elif dims and stride == dims[-1][0] * dims[-1][1]:
            dims[-1] = (dims[-1][0] * size, dims[-1][1])
        else:
            dims.append((size, stride))
    return width, dims


def descriptor(transfer: Transfer) -> Fields:
    """Return the fields of a transfer's descriptor, without addresses and barriers.

    Raises:
        UnsupportedModel: a tensor of the transfer has more dimensions than a descriptor, or larger.
    """
    if transfer.rows is not None:
        return _gather(transfer)
    fields: Fields = {}
    used = 0
    for side, place in (("src", transfer.source), ("dst", transfer.target)):
        width, dims = runs(place)
        # The caller's strides may separate all dimensions, whose number relocations do not change.
        sizes = place.shape[-3::-1] if is_tile(place) else [size for size, _ in dims[2:]]
        if len(dims) > MAX_DIMS or any(size > _SMALL_DIM for size in sizes):
            raise UnsupportedModel(f"a transfer of {list(place.shape)} in {len(dims)} strides")
        fields[f"{side}_width"] = width
        for number, (size, stride) in enumerate(dims, 1):
            fields[f"{side}_dim{number}"] = size - 1
            fields[f"{side}_stride{number}"] = stride
        used = max(used, MAX_DIMS if is_tile(place) else len(dims))
    fields["cfg"] = _CFG | DMA_BURSTS | used
    return fields


def _gather(transfer: Transfer) -> Fields:
    """Fields of a gather: the source has one dimension, of table rows, and a list of indices."""
    count, width_elements = transfer.target.shape
    itemsize = NUMPY[transfer.target.element].itemsize
    return {
        "cfg": _CFG | DMA_BURSTS | DmaCfg.SRC_LIST_RELATIVE | 1,
        "src_width": width_elements * itemsize,
        "src_dim1": count - 1,
        "src_stride1": transfer.source.strides[0],
        "src_dim2": transfer.source.shape[0],
        "dst_width": count * width_elements * itemsize,
    }
