"""Wrappers of devices that run a submodel in parts or on several devices.

Begin with ``isolations``, which selects the folders' mechanisms by the options. ``decorator`` is
the base of all such devices: it forwards ``Device`` and the abilities of ``backends.protocols``.
"""
