"""Sweeps of one model: the time of every setting beside that of its neighbour.

``every`` lists the sweeps, one module each. A sweep measures a ``Subject`` and returns a ``Table``
of ``figures``; ``document`` writes tables into reports.
"""
