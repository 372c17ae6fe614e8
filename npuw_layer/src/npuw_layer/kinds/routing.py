"""Which way a model goes.

- Split by NPUW, as a language model: NPU_USE_NPUW and NPUW_LLM.
- As one static model, through NPUW: NPU_USE_NPUW without NPUW_LLM. NPUW may cut it into submodels,
  and gives each to one of several devices.
- As it is, to the NPU itself: neither.

With NPUW_KOKORO a model goes the second way as two static ones, with NPUW_FLUX2 as one, and with
NPUW_PA as one for each of some numbers of tokens.

What ONNX Runtime splits itself (NPUW_GQA) goes the second way, prefill and generate each; what it
made stateful goes the first.

As in the original, NPU_USE_NPUW decides first and NPUW_LLM second. Where one is not given, the
model does: what has dynamic shapes can run on an NPU only if it is split.

Source: fact sheet npuw §a.1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from npuw_layer.errors import OptionError
from npuw_layer.kinds.flux2.roles import flux2_defaults
from npuw_layer.kinds.ir_inputs import ir_inputs
from npuw_layer.kinds.kokoro.avoided import avoided_ops
from npuw_layer.kinds.whisper.lengths import as_whisper
from npuw_layer.options import Options
from npuw_layer.options.dumps import selects


def route(path: Path, options: Options) -> Options:
    """Settle NPU_USE_NPUW and NPUW_LLM.

    Args:
        path: an IR's ``.xml``, or a Hugging Face folder.
        options: as they were given.

    Returns:
        The options with both set: ``llm`` tells the way.

    Raises:
        OptionError: they contradict each other, or ask for what there is not.
    """
    options = _settled_by_mode(path, options)
    use_npuw, llm = options.use_npuw, options.llm
    if use_npuw is False and llm:
        raise OptionError("NPUW_LLM = YES needs NPU_USE_NPUW = YES: it is NPUW that splits LLMs")
    if options.reads_texts:
        if use_npuw is False or llm is False:
            raise OptionError(
                "NPUW_TEXT_EMBED and NPUW_TEXT_RERANK need NPU_USE_NPUW = YES and NPUW_LLM = YES"
            )
        llm = True
    if llm is None:
        llm = use_npuw is not False and is_dynamic(path)
    use_npuw = llm if use_npuw is None else use_npuw
    if not llm and options.weights_offload != "NO":
        raise OptionError(
            "NPUW_WEIGHTS_OFFLOAD is for language models; a static model has all its weights"
        )
    if not use_npuw:
        check_plain(options)
    elif options.batch_mode == "PLUGIN":
        raise OptionError(
            "NPU_BATCH_MODE = PLUGIN is for static models on the NPU itself, and this one goes "
            "through NPUW; leave it out, or set NPU_USE_NPUW to NO"
        )
    elif options.export_raw_blob:
        raise OptionError(
            "NPU_EXPORT_RAW_BLOB = YES: what goes through NPUW is more than one payload; leave it "
            "out, or run a static model with NPU_USE_NPUW = NO"
        )
    elif options.run_inferences_sequentially:
        raise OptionError(
            "NPU_RUN_INFERENCES_SEQUENTIALLY = YES is for static models of the NPU itself: those "
            "that go through NPUW (NPU_USE_NPUW) start inferences of their own"
        )
    return options.model_copy(update={"use_npuw": use_npuw, "llm": llm})


_GQA = {"online_pipeline": "REP", "cache_mode": "OPTIMIZE_SPEED"}
"""What the original compiles such models with, if nothing else is said."""

_KOKORO = {"precision": "f32"}
"""The phases of many harmonics are added up; the original computes that on the CPU, in f32."""


def _settled_by_mode(path: Path, options: Options) -> Options:
    """Settle what kinds of models ask for that are told by an option of their own."""
    if options.gqa:
        because = (
            "such a model is static, and its caches are inputs and outputs; leave it out for one "
            "that is stateful"
        )
        return _as_static(options, "NPUW_GQA", because, _GQA)
    if options.kokoro:
        because = "it is NPUW that splits such a model, and both parts are static"
        avoided = "" if options.cuts_models else avoided_ops(options)
        return _as_static(options, "NPUW_KOKORO", because, {**_KOKORO, "online_avoid": avoided})
    if options.flux2:
        because = "all models that make an image are static"
        return _as_static(options, "NPUW_FLUX2", because, flux2_defaults(path))
    if options.paged:
        because = "its caches are the caller's, so that nothing of it is split"
        return _as_static(options, "NPUW_PA", because, {})
    if not options.whisper:
        return options
    if options.llm is False:
        raise OptionError("NPUW_WHISPER = YES needs NPUW_LLM = YES: its decoder is split as such")
    return as_whisper(options).model_copy(update={"llm": True})


def _as_static(options: Options, option: str, because: str, defaults: Mapping[str, str]) -> Options:
    """Settle that a model goes through NPUW as a static one.

    Args:
        options: as they were given.
        option: says what kind of model it is.
        because: ends the sentence that refuses another way.
        defaults: what it is compiled with where nothing else was asked for.

    Raises:
        OptionError: it is to go another way.
    """
    if options.use_npuw is False or options.llm:
        raise OptionError(f"{option} = YES needs NPU_USE_NPUW = YES, without NPUW_LLM: {because}")
    unset = {name: v for name, v in defaults.items() if name not in options.model_fields_set}
    return options.model_copy(update={**unset, "use_npuw": True, "llm": False})


def check_plain(options: Options) -> None:
    """Refuse what NPUW alone does, and would be believed to be done.

    Raises:
        OptionError: it is asked for.
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
        raise OptionError(
            f"{name} is for NPUW, which a static model goes through with NPU_USE_NPUW = YES"
        )


def is_dynamic(path: Path) -> bool:
    """Whether a model has an input of dynamic shape; a Hugging Face folder always has.

    A batch of any size does not count: the NPU runs item by item (``kinds.static.batch``).

    The file is looked through without reading the model; whether it is one shows later.
    """
    if path.suffix != ".xml":
        return True
    return any(_is_open(dims) for _, dims in ir_inputs(path))


def _is_open(dims: Sequence[str]) -> bool:
    """Whether a dimension is open, of several but the first."""
    return any(mark in dim for dim in dims[1:] or dims for mark in ("?", "-1", ".."))
