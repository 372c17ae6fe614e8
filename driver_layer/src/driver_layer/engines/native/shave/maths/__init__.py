"""Elementary functions in LLVM IR, over f32 vectors or scalars.

Each is within 2 units in the last place of the exact value, and treats zeros, infinities and NaNs
as numpy does.
"""

from driver_layer.engines.native.shave.maths.exp import exp
from driver_layer.engines.native.shave.maths.log import log, power
from driver_layer.engines.native.shave.maths.sigmoids import erf, tanh
from driver_layer.engines.native.shave.maths.trigonometry import cos, sin

__all__ = ["cos", "erf", "exp", "log", "power", "sin", "tanh"]
