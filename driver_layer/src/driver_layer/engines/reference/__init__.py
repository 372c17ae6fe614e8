"""Reference engines: the executable specification of tasks, in numpy.

Begin with ``engines``; each kind of task has a module.
"""

from driver_layer.engines.reference.engines import ReferenceEngines, explain_fault

__all__ = ["ReferenceEngines", "explain_fault"]
