"""What a model will take on a device, predicted from its ``config.json`` alone.

    weights   bytes of weights, by what they are for
    memory    the memory map: weights, caches, scratch, programs
    stage     time and size of one static model
    predict   all of it

How it works. The frontend writes a stand-in for the model: a layer or two, with weights that exist
as shapes only. It is split as the model would be, and goes through the compiler's own passes up to
tiling; ``compiler_layer.estimate`` adds up what the tiles cost, and each layer counts as often as
there are layers like it. So a model of 70 B takes no longer than one of 1 B.
"""

from npuw_layer.plan.memory import Item
from npuw_layer.plan.predict import EXPECTED_ERROR, Plan, plan_model
from npuw_layer.plan.stage import StagePlan

__all__ = ["EXPECTED_ERROR", "Item", "Plan", "StagePlan", "plan_model"]
