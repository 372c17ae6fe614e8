"""Tokenizer classes of transformers 4 by a model's type, for the classes of tokenizer_classes.

Source: transformers 4.57.6, models/auto/tokenization_auto.py; measured,
tools/make_tokenizer_setting_goldens.py.
"""

from __future__ import annotations

_TYPES = {
    "Llama": """
        arcee aria chameleon colpali deepseek_v2 deepseek_v3 deepseek_vl deepseek_vl_hybrid
        diffllama ernie4_5 ernie4_5_moe idefics idefics2 idefics3 jamba janus jetmoe llama
        llama4 llama4_text llava llava_next llava_next_video llava_onevision ministral mistral
        mistral3 mixtral mllama paligemma persimmon phi3 phimoe video_llava vipllava zamba
        zamba2
    """,
    "CodeLlama": """
        code_llama
    """,
    "Gemma": """
        gemma gemma2 gemma3 gemma3_text gemma3n gemma3n_text recurrent_gemma shieldgemma2
        siglip2 t5gemma
    """,
    "Cohere": """
        aya_vision cohere cohere2
    """,
    "GPTNeoX": """
        falcon_mamba gpt_neox mamba mamba2 mpt olmo olmo2 olmoe rwkv stablelm xlstm
    """,
    "Bert": """
        align bark bert blip bros chinese_clip ernie git grounding-dino megatron-bert
        mm-grounding-dino nezha qdqbert tvp vilt visual_bert
    """,
    "ConvBert": """
        convbert
    """,
    "DistilBert": """
        distilbert
    """,
    "Electra": """
        electra
    """,
    "MobileBert": """
        mobilebert
    """,
    "MPNet": """
        mpnet
    """,
    "SqueezeBert": """
        squeezebert
    """,
    "GPT2": """
        blip-2 dbrx emu3 exaone4 flex_olmo gpt2 gpt_bigcode gpt_neo gptj instructblip
        instructblipvideo minimax olmo3 opt starcoder2
    """,
    "Qwen2": """
        colqwen2 internvl qwen2 qwen2_5_omni qwen2_5_vl qwen2_audio qwen2_moe qwen2_vl qwen3
        qwen3_moe qwen3_next qwen3_omni_moe qwen3_vl qwen3_vl_moe
    """,
    "Roberta": """
        bridgetower clap data2vec-text ibert mega mra roberta roberta-prelayernorm
    """,
    "XLMRoberta": """
        kosmos-2 metaclip_2 xlm-roberta xlm-roberta-xl xmod
    """,
    "Camembert": """
        camembert
    """,
    "Longformer": """
        longformer
    """,
    "Bart": """
        bart
    """,
}

CLASS_OF_TYPE = {model: name for name, models in _TYPES.items() for model in models.split()}
"""Class, without "Tokenizer", by the ``model_type`` of config.json."""
