"""Alternatives to running a submodel whole on one device: devices around devices.

Begin with ``isolations``, which selects the folders' mechanisms by the options. ``decorator`` is
the base of all such devices: it forwards ``Device`` and the abilities of ``backends.protocols``.
"""
