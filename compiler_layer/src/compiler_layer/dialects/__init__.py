"""The compiler's dialects: ``ov`` for the model's graph, ``npu`` for what the hardware does."""
