"""Options of the original that are not here, and why: who knows them is told.

Source: fact sheet npuw §b.2.
"""

from __future__ import annotations

_ATTENTION = "NPUW_LLM_PREFILL_ATTENTION_HINT and NPUW_LLM_GENERATE_ATTENTION_HINT say how"
_COMPRESSED = "compressed weights go to the device as they are, which computes with them"
_REPEATED = "NPUW_FOLD and NPUW_ONLINE_NO_FOLD say what is compiled once"

ABSENT: dict[str, str] = {
    "NPUW_ONLINE_KEEP_BLOCKS_TAGGED": "what is isolated stays, however often it is there",
    "NPUW_FOLD_ONLY": _REPEATED,
    "NPUW_FUSE_UNFOLDED": _REPEATED,
    "NPUW_FUNCALL_FOR_ALL": "a submodel that is there once needs no function",
    "NPUW_CWAI": "weights are inputs of programs anyway",
    "NPUW_DQ": _COMPRESSED,
    "NPUW_DQ_FULL": _COMPRESSED,
    "NPUW_DCOFF_TYPE": _COMPRESSED,
    "NPUW_DCOFF_SCALE": _COMPRESSED,
    "NPUW_MM_GATED": "products of gates are as accurate as all others",
    "NPUW_PMM": "the engines put parallel products together by themselves",
    "NPUW_SLICE_OUT": "the head runs for the last token anyway",
    "NPUW_HOST_GATHER": "the device looks embeddings up in the model's file, where it is mapped",
    "NPUW_F16IC": "what links submodels has the type that INFERENCE_PRECISION_HINT says",
    "NPUW_ATTN": _ATTENTION,
    "NPUW_ATTN_DYN": _ATTENTION,
    "NPUW_ATTN_NO_COPY": "K and V are read where they lie",
    "NPUW_ATTN_HFA_FUSED": "a tile of HFA is one program",
    "NPUW_ATTN_HFA_MASK_SKIPPING": "HFA always leaves out tiles that nobody attends to",
    "NPUW_CACHE_DIR": "CACHE_DIR keeps each static model by itself",
    "NPUW_PARALLEL_COMPILE": "equal layers are compiled once, and kept (CACHE_DIR)",
    "NPUW_WEIGHTS_HANDLE_PROVIDER": "WEIGHTS_PATH or MODEL_PTR say where weights are",
    "NPUW_FUNCALL_ASYNC": "programs are bound once: there is nothing to do ahead",
    "NPUW_UNFOLD_IREQS": "each call has a request of its own anyway",
    "NPUW_KOKORO_OVERLAP": "it is called NPUW_KOKORO_OVERLAP_SIZE, as OpenVINO 2026.4 has it",
    "NPUW_UNQDQ": "FakeQuantize and compressed weights are understood as they are",
    "NPUW_GQA_MANAGED": "it came after 2026.4, and lets the host put new rows into presents; here "
    "the device gives presents whole",
}
"""By name; the sentence ends "is not here: …"."""
