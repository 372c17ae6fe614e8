"""The reference engines: numpy, the executable specification of what tasks compute."""

from driver_layer.engines.reference.engines import ReferenceEngines

__all__ = ["ReferenceEngines"]
