"""The ``ov`` ops in numpy, in modules of op families that are named like the dialect's.

Begin with ``elementwise``. Each module registers its functions in ``reference.meaning``.
"""

from importlib import import_module
from pkgutil import iter_modules

for _module in iter_modules(__path__, f"{__name__}."):
    import_module(_module.name)
