"""DMA descriptors of gathers."""

from __future__ import annotations

from typing import Any

from compiler_layer.emit.dma import descriptor
from compiler_layer.model import Model
from compiler_layer.schedule.build import schedule
from compiler_layer.schedule.expand import expanded
from compiler_layer.schedule.tasks import Transfer

GATHER = """
func.func @main(%table: tensor<5x8xf16> {ov.names = "table"},
                %ids: tensor<3xi64> {ov.names = "ids"}) -> (tensor<3x8xf16> {ov.names = "y"}) {
  %y = npu.gather(%table, %ids) : (tensor<5x8xf16>, tensor<3xi64>) -> tensor<3x8xf16>
  func.return %y : tensor<3x8xf16>
}
"""


def test_a_gather_descriptor_contains_the_number_of_table_rows(unroll: Any) -> None:
    """Another tensor follows the table in memory; only the row count separates the two."""
    done = expanded(schedule(Model.parse(GATHER), unroll.platform, 1))
    works = [task.work for task in done.tasks if isinstance(task.work, Transfer)]
    (gather,) = [descriptor(work) for work in works if work.rows is not None]
    assert (gather["src_dim1"] + 1, gather["src_dim2"]) == (3, 5)
