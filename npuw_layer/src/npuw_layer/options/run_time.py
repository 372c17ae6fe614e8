"""Options that matter when programs run, and not when they are made."""

from __future__ import annotations

from npuw_layer.options.mechanisms import ALIKE

RUN_TIME: frozenset[str] = frozenset(
    {
        # Where files are.
        "CACHE_DIR",
        "NPUW_CACHE_DIR",
        "BLOB_PATH",
        "EXPORT_BLOB",
        "WEIGHTS_PATH",
        "MODEL_PTR",
        # Who may read them.
        "CACHE_ENCRYPTION_CALLBACKS",
        "NPUW_ENSURE_COMPATIBILITY",
        "NPU_UNTRUSTED_SOURCE",
        # What a file is like.
        "NPU_EXPORT_RAW_BLOB",
        "NPU_IMPORT_RAW_BLOB",
        "NPU_DISABLE_VERSION_CHECK",
        # What a conversation does with its cache, and what is kept of it.
        "NPUW_LLM_KV_SWITCHOVER",
        "NPUW_LLM_SINK_TOKENS",
        "NPUW_LLM_PREFIX_CACHING_BLOCK_SIZE",
        "NPUW_LLM_PREFIX_CACHING_MAX_NUM_BLOCKS",
        "NPUW_LLM_PREFIX_CACHING_MAX_BYTES",
        # How many programs of experts are kept.
        "NPUW_MOE_POOL_SIZE",
        # Where weights are.
        "NPUW_WEIGHTS_BANK",
        "NPUW_WEIGHTS_BANK_ALLOC",
        "NPUW_WEIGHTS_BUDGET",
        "NPUW_WEIGHTS_RESERVED",
        # What is told of it.
        "LOG_LEVEL",
        "NPUW_ONLINE_DUMP_PLAN",
        "NPUW_DUMP_FULL",
        "NPUW_DUMP_SUBS",
        "NPUW_DUMP_SUBS_DIR",
        "NPUW_DUMP_SUBS_ON_FAIL",
        "NPUW_DUMP_IO",
        "NPUW_DUMP_IO_ITERS",
        "PERF_COUNT",
        "NPU_PROFILING_TYPE",
        # Who begins first.
        "MODEL_PRIORITY",
        "WORKLOAD_TYPE",
        "NPU_RUN_INFERENCES_SEQUENTIALLY",
        # What happens when a device fails, or is not accurate.
        "NPUW_FALLBACK_EXEC",
        "NPUW_ACC_THRESH",
        "NPUW_ACC_DEVICE",
        # What makes no difference.
        *ALIKE,
    }
)
"""Options that no compiled program depends on, nor which programs there are; all others are fixed
in an exported blob."""
