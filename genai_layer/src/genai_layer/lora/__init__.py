"""LoRA adapters: files of them, how several are blended, and how a pipeline takes them.

Beside a product y = x Wᵀ of a model an adapter puts ((x Aᵀ) · alpha) Bᵀ with A [rank, in] and
B [out, rank]. What a file calls a layer is part of the name of the product that it adapts.

    safetensors      the tensors of a file, which is not believed
    adapter          its pairs of A and B, by layer
    adapter_config   adapters with alphas, and how they become part of a model
    placement        which products of a model they belong beside; several at once
    compiled         a model that is compiled with them
    states           the states of a request that hold them
    controller       what a pipeline's are set to, from one generation to the next

Source: openvino_genai's Adapter, AdapterConfig, AdapterController (src/cpp/src/lora/adapter.cpp).
"""
