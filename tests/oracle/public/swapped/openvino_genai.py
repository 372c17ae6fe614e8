"""Replacement of the module ``openvino_genai`` by genai_layer.

``PYTHONPATH=tests/oracle/public/swapped python script.py`` runs an unchanged script on genai_layer.
"""

import sys

import genai_layer

sys.modules[__name__] = genai_layer
