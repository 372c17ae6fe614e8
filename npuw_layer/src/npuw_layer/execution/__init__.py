"""Devices that run submodels in other ways than whole on one device.

Begin with ``isolations``: it chooses by the options which of the folders take part.
"""
