"""Options that apply only through NPUW, or only to models of the NPU itself.

NPU_USE_NPUW chooses between the two. If it is not set, the kind of model decides.

Source: docs/reference/npuw.md#routing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from npuw_layer.errors import OptionError
from npuw_layer.options.reports import selects

if TYPE_CHECKING:
    from npuw_layer.options.model import OptionValues


def check_way(options: OptionValues) -> None:
    """Reject options without effect on a model that runs this way.

    Args:
        options: with NPU_USE_NPUW and NPUW_LLM settled.

    Raises:
        OptionError: such an option is set.
    """
    if not options.llm and options.weights_offload != "NO":
        raise OptionError("NPUW_WEIGHTS_OFFLOAD applies only to language models; leave it out")
    if not options.use_npuw:
        check_plain(options)
    elif options.batch_mode == "PLUGIN":
        raise OptionError(
            "NPU_BATCH_MODE = PLUGIN applies only to static models on the NPU itself, and this one "
            "runs through NPUW; leave it out, or set NPU_USE_NPUW to NO"
        )
    elif options.export_raw_blob:
        raise OptionError(
            "NPU_EXPORT_RAW_BLOB = YES: a model that runs through NPUW has several payloads; leave "
            "it out, or run a static model with NPU_USE_NPUW = NO"
        )
    elif options.run_inferences_sequentially:
        raise OptionError(
            "NPU_RUN_INFERENCES_SEQUENTIALLY = YES is only for static models of the NPU itself; "
            "leave it out, or set NPU_USE_NPUW to NO"
        )


def check_plain(options: OptionValues) -> None:
    """Reject options of NPUW for a model of the NPU itself.

    Raises:
        OptionError: such an option is set.
    """
    asked = {
        "NPUW_DEVICES": options.devices != "NPU",
        "NPUW_WEIGHTS_BANK": options.shares_weights,
        "NPUW_ACC_CHECK": options.acc_check,
        "NPUW_ONLINE_PIPELINE": options.online_pipeline != "NONE",
        "NPUW_ONLINE_ISOLATE": options.online_isolate,
        "NPUW_ONLINE_AVOID": options.online_avoid,
        "NPUW_PLAN": options.plan,
        "NPUW_ONLINE_DUMP_PLAN": options.online_dump_plan,
        "NPUW_DUMP_FULL": options.dump_full,
        "NPUW_DUMP_SUBS": selects(options.dump_subs),
        "NPUW_DUMP_SUBS_ON_FAIL": selects(options.dump_subs_on_fail),
        "NPUW_DUMP_IO": selects(options.dump_io),
    }
    for name in filter(asked.__getitem__, asked):
        raise OptionError(f"{name} applies only to NPUW; leave it out, or set NPU_USE_NPUW = YES")
