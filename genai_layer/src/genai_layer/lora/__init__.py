"""LoRA adapters: their files, blending of several adapters, and their use in a pipeline.

To a matmul y = x Wᵀ of a model an adapter adds ((x Aᵀ) · alpha) Bᵀ with A [rank, in] and
B [out, rank]. The layer name in the file is part of the name of the matmul that it adapts.

    safetensors      tensors of an untrusted file
    adapter          pairs of A and B in a file, by layer; assignment of pairs to a model's
                     matmuls; blending of several adapters
    adapter_config   adapters with alphas, and the mode in which a model is adapted
    controller       compilation of a model with adapters; states of a request that hold them,
                     and the current adapters of a pipeline

Source: openvino_genai's Adapter, AdapterConfig, AdapterController (src/cpp/src/lora/adapter.cpp).
"""
