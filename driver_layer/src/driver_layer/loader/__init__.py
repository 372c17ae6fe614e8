"""The loader: checks a blob, places it in device memory, and relocates it.

``hpi`` runs the steps: read → verify → metadata → place → relocate → kernels.
"""
