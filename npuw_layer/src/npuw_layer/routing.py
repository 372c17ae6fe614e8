"""Which way a model goes: split by NPUW as a language model, or as it is to the NPU.

As in the original, NPU_USE_NPUW decides first and NPUW_LLM second. Where neither is given, the
model does: what has dynamic shapes can run on an NPU only if it is split.

Source: fact sheet npuw §a.1.
"""

from __future__ import annotations

from pathlib import Path
from xml.parsers import expat

from npuw_layer.errors import OptionError
from npuw_layer.options import Options


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
    use_npuw, llm = options.use_npuw, options.llm
    if use_npuw is False and llm:
        raise OptionError("NPUW_LLM = YES needs NPU_USE_NPUW = YES: it is NPUW that splits LLMs")
    if options.reads_texts:
        if use_npuw is False or llm is False:
            raise OptionError(
                "NPUW_TEXT_EMBED and NPUW_TEXT_RERANK need NPU_USE_NPUW = YES and NPUW_LLM = YES"
            )
        llm = True
    if llm is None and use_npuw is not False:
        llm = use_npuw or is_dynamic(path)
    if use_npuw and not llm:
        raise OptionError(
            "NPU_USE_NPUW = YES with NPUW_LLM = NO: NPUW runs language models alone here; "
            "NPU_USE_NPUW = NO runs a static model as it is"
        )
    if not llm:
        _check_static(options)
    return options.model_copy(update={"use_npuw": bool(llm), "llm": bool(llm)})


def _check_static(options: Options) -> None:
    """Refuse what is done with language models alone, and would be believed to be done.

    Raises:
        OptionError: it is asked for.
    """
    if options.devices != "NPU":
        raise OptionError(
            f"NPUW_DEVICES = {options.devices!r} is for NPUW; a static model runs on the NPU alone"
        )
    asked = {
        "EXPORT_BLOB": options.export_blob,
        "NPUW_WEIGHTS_OFFLOAD": options.weights_offload != "NO",
        "NPUW_WEIGHTS_BANK": options.shares_weights,
        "NPUW_ACC_CHECK": options.acc_check,
    }
    for name in filter(asked.__getitem__, asked):
        raise OptionError(f"{name} is for language models; a static model is run as it is")


def is_dynamic(path: Path) -> bool:
    """Whether a model has an input of dynamic shape; a Hugging Face folder always has.

    The file is looked through without reading the model; whether it is one shows later.
    """
    if path.suffix != ".xml":
        return True
    scan = _Scan()
    try:
        with path.open("rb") as file:
            scan.parser.ParseFile(file)
    except (expat.ExpatError, OSError, LookupError, ValueError, _Found):
        # Of a broken file, or one in an unknown encoding, the reader will say what is wrong.
        pass
    return scan.dynamic


class _Found(Exception):
    """Ends a scan."""


class _Scan:
    """Looks for parameters in an IR's XML."""

    def __init__(self) -> None:
        self.dynamic = False
        self._in_parameter = False
        self.parser = expat.ParserCreate()
        self.parser.StartElementHandler = self._start
        self.parser.StartDoctypeDeclHandler = self._refuse  # the reader will say why

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        if tag == "layer":
            self._in_parameter = attributes.get("type") == "Parameter"
        elif tag == "data" and self._in_parameter:
            shape = attributes.get("shape", "")
            if "?" in shape or "-1" in shape or ".." in shape:
                self.dynamic = True
                raise _Found

    def _refuse(self, *_: object) -> None:
        raise _Found
