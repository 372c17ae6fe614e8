"""The ``npu`` dialect."""

from xdsl.ir import Dialect

NPU = Dialect("npu", [], [])
