"""SHAVE programs as kernels of the host.

``translate`` goes from ``windows`` (what a program runs over) and ``values`` (what it computes) by
way of ``shapes`` and ``passes`` (in which order) to ``kernel``, which writes the code.
"""

from driver_layer.engines.native.shave.translate import COLUMNS, Operand, Translated, translate

__all__ = ["COLUMNS", "Operand", "Translated", "translate"]
