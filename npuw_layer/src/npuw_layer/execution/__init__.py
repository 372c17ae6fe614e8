"""Ways of running submodels other than whole on one device: devices around devices.

Begin with ``isolations``, which chooses by the options the folders that take part. ``decorator`` is
the base of all such devices: it forwards ``Device`` and the abilities of ``backends.protocols``.
"""
