"""Static models in the file format of the original's plugin (``storage.native_blob``).

``exported`` writes such a file, or its payload alone; ``imported`` verifies and loads both.
"""
