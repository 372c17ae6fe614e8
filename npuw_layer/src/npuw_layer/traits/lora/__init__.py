"""LoRA adapters, which change a model's output without changing its weights.

To a matmul y = x Wᵀ an adapter adds ((x Aᵀ) · alpha) Bᵀ with A [rank, in], alpha [1, rank] and B
[out, rank]. As in openvino_genai, adapters are variables of dynamic rank. A request keeps them
until it sets others. A static model reads them as inputs of the largest rank
(NPUW_LLM_MAX_LORA_RANK), with zeros after the adapter's own rank. ``Core.compile_adapted`` adds the
variables; a model to which openvino_genai added them is compiled like any other.

        trait        the trait, with checks of imported programs: begin here
        adaptation   adapters that a model is compiled with
        insert       matmuls that can be adapted, and insertion: as variables, constants, weights
        low_rank     low-rank adapter of one matmul, and the modes of insertion
        names        variables of adapters, and their parts
        graph        static shapes of the variables
        values       adapters of a conversation, and OpenVINO variables of their tensors
        buffers      device memory in which all programs of a conversation read adapters

Source: openvino_genai's AdapterController (src/cpp/src/lora/adapter.cpp), NPUW's
llm_infer_request (docs/reference/npuw.md#lora).
"""

from npuw_layer.traits.lora.trait import TRAIT as TRAIT
