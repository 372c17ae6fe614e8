"""Timelines: begin and end of each task of a blob, predicted without running it.

The task lists are decoded as the management core decodes them, but a *pricer* takes the place of
the engines: it computes the cost of each task (``abi.cost``), not its effect. A simulation then
models queues and barriers in time. No values are computed and no weights are read; the schedule
does not depend on data, so a blob has exactly one timeline.

    price     costs of tasks, from their descriptors
    simulate  queues, barriers and the DDR bandwidth that transfers share
    predict   from a blob's bytes to its timeline

``abi.cost`` describes the accuracy.
"""

from __future__ import annotations

from driver_layer.npu.timeline.predict import predict, predict_loaded
from driver_layer.npu.timeline.price import Engine, Price, Pricer, price
from driver_layer.npu.timeline.simulate import TaskTime, simulate

__all__ = [
    "Engine",
    "Price",
    "Pricer",
    "TaskTime",
    "predict",
    "predict_loaded",
    "price",
    "simulate",
]
