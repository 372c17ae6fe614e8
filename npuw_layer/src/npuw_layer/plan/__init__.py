"""Prediction of a model's memory and speed on a device, from only its ``config.json``.

    memory    bytes of weights by use, and of caches
    stage     time and size of one static model
    predict   the whole plan

The frontend writes a stand-in for the model: a layer or two, whose weights have only shapes. It is
split like the model, and runs through the compiler's own passes up to tiling;
``compiler_layer.estimate`` sums up the costs of the tiles, and each layer's costs are multiplied by
its number of equal layers. So planning a model of 70 B takes no longer than one of 1 B.
"""

from npuw_layer.plan.memory import Item
from npuw_layer.plan.predict import EXPECTED_ERROR, Prediction, plan_model
from npuw_layer.plan.stage import StagePrediction

__all__ = ["EXPECTED_ERROR", "Item", "Prediction", "StagePrediction", "plan_model"]
