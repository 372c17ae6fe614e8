"""LoRA adapters: what makes a model say other things without other weights.

Beside a product y = x Wᵀ an adapter puts ((x Aᵀ) · alpha) Bᵀ with A [rank, in], alpha [1, rank] and
B [out, rank]. As openvino_genai does, they are added to a model as variables of dynamic rank, which
a request sets, and keeps until it sets others. A static model reads them as inputs of the largest
rank (NPUW_LLM_MAX_LORA_RANK), zeros behind the adapter's own. ``Core.compile_adapted`` adds them; a
model that openvino_genai added them to is compiled like any other.

    adaptation      what is asked of a model that is compiled with adapters
    products        what of it can be adapted
    insert          adapters put into its graph: as variables, as constants, into weights
    names           which variables are adapters', and what of them
    graph           passes of static models
    fix_rank        the pass that gives the variables static shapes
    check           options that adapters rule out
    values          what a request's adapters are set to
    buffers         where all its programs read them, in device memory
    ports           imported programs read the same ones
    variable_state  one of them, as OpenVINO shows it

Source: openvino_genai's AdapterController (src/cpp/src/lora/adapter.cpp), NPUW's
llm_infer_request (fact sheet npuw §a.6, §c.11).
"""
