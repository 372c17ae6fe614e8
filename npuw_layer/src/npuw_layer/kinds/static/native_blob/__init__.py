"""Static models in the file format of OpenVINO's NPU plugin (``storage.native_blob``).

``exported`` writes such a file, or its payload alone; ``imported`` verifies and loads either.
"""
