"""Caches in pages whose element type a file leaves open: whoever runs the model has them."""

from __future__ import annotations

from compiler_layer.dialects.ov.paged_attention import CACHES
from compiler_layer.frontends.openvino_ir.xml import Network

CACHE_ELEMENT = "f32"
"""What they are read as."""

_ATTENTION = "PagedAttentionExtension"
_OPEN = "dynamic"


def open_caches(network: Network) -> frozenset[str]:
    """Give the ids of parameters without an element type that are caches, and nothing else."""
    caches = {
        layer.id
        for layer in network.layers
        if layer.type == "Parameter" and layer.data.get("element_type") == _OPEN
    }
    for reader in network.layers if caches else ():
        for number, port in enumerate(reader.inputs):
            if reader.type != _ATTENTION or number not in CACHES:
                caches.discard(network.sources[reader.id, port][0])
    return frozenset(caches)
