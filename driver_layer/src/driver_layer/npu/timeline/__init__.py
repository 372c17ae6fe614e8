"""When each task of a blob begins and ends: predicted from its task lists, without running it.

How it works. The lists are decoded as the management core decodes them, but a *pricer* stands where
the engines would: it makes of each task a cost (``abi.cost``), not an effect. A simulation
then lets queues and barriers do what they do on the device, in time. No value is computed and no
weight is read; the schedule does not depend on data, so a blob has one timeline.

    price     what a task costs, from its descriptor
    simulate  queues, barriers and the DDR bandwidth that transfers share
    predict   from a blob's bytes to its timeline

How far to trust it: ``abi.cost`` says.
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
