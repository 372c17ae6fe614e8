"""DPU register images of matmuls."""

from __future__ import annotations

from typing import Any

from compiler_layer.schedule.tasks import MatMulTask, Region, Tables
from driver_layer.abi import tasks
from driver_layer.abi.dtypes import ELEMENT_TYPES


def operands(product: MatMulTask) -> dict[str, Region]:
    """Return a workload's operands in CMX, by their names in the registers."""
    tables = product.tables
    optional = {
        "scale": tables.scales,
        "zero": tables.zeros,
        "act_scale": tables.row_scales,
    }
    found = {name: region for name, region in optional.items() if region is not None}
    return {"act": product.act, "weight": product.weight, "out": product.out, **found}


def _table_registers(tables: Tables) -> dict[str, Any]:
    """Registers of the scales and zero points of quantised operands."""
    fields: dict[str, Any] = {"group": tables.group, "act_zero": tables.zero}
    for name, region in (("scale", tables.scales), ("zero", tables.zeros)):
        if region is not None:
            fields[f"{name}_type"] = ELEMENT_TYPES[region.element].code
            fields[f"{name}_strides"] = repeating(region)
    if tables.row_scales is not None:
        fields["act_scale_stride"] = tables.row_scales.strides[0]
    return fields


def repeating(region: Region) -> list[int]:
    """Return strides; 0 for dimensions of 1, whose entry is shared."""
    return [s if d > 1 else 0 for d, s in zip(region.shape, region.strides, strict=True)]


def registers(product: MatMulTask) -> dict[str, Any]:
    """Return the register image of a workload, without addresses."""
    flags = tasks.DpuFlag.ACCUMULATE if product.accumulate else 0
    batch, m, k = product.act.shape
    return {
        "workload": tasks.DpuWorkload.MATMUL,
        "flags": flags,
        "act_type": ELEMENT_TYPES[product.act.element].code,
        "weight_type": ELEMENT_TYPES[product.weight.element].code,
        "out_type": ELEMENT_TYPES[product.out.element].code,
        "alpha": product.alpha,
        "batch": batch,
        "m": m,
        "n": product.weight.shape[1],
        "k": k,
        "act_strides": list(product.act.strides),
        "weight_strides": list(product.weight.strides),
        "out_strides": list(product.out.strides),
        **_table_registers(product.tables),
    }
