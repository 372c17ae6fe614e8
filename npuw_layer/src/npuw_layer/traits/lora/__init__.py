"""LoRA adapters: they change what a model says without other weights.

Beside a matmul y = x Wᵀ an adapter puts ((x Aᵀ) · alpha) Bᵀ with A [rank, in], alpha [1, rank] and
B [out, rank]. As openvino_genai does, adapters are added to a model as variables of dynamic rank. A
request sets them, and keeps them until it sets others. A static model reads them as inputs of the
largest rank (NPUW_LLM_MAX_LORA_RANK), zeros behind the adapter's own. ``Core.compile_adapted`` adds
them; a model that openvino_genai added them to is compiled like any other.

    trait           the trait's record: begin here
    adaptation      adapters that a model is compiled with
    products        matmuls that can be adapted
    insert          adapters put into a graph: as variables, as constants, into weights
    names           the variables of adapters, and their parts
    graph           their static shapes
    values          the adapters that a conversation is held with
    buffers         the device memory in which all programs of a conversation read them
    ports           checks of programs from elsewhere
    variable_state  a variable as OpenVINO shows it

Source: openvino_genai's AdapterController (src/cpp/src/lora/adapter.cpp), NPUW's
llm_infer_request (fact sheet npuw §a.6, §c.11).
"""

from npuw_layer.traits.lora.trait import TRAIT as TRAIT
