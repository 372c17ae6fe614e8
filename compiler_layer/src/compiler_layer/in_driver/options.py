"""Options of OpenVINO's NPU plugin, and the compiler's options that they stand for.

Source: the names are OpenVINO's; docs/reference/driver_compiler.md#options-of-a-compiler.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from compiler_layer.errors import CompilerUsageError
from compiler_layer.pipeline import Options
from driver_layer.abi.metadata import ArchKind
from driver_layer.abi.platforms import PLATFORMS, Platform

_log = logging.getLogger(__name__)

_PRECISIONS = {"f32": "f32", "f16": "f16", "bf16": "bf16", "i8": "f16", "dynamic": "f16"}
"""Types of activations. i8 lets a device compute quantized ops in integers, as here always."""

_FLAGS = {"YES": True, "TRUE": True, "1": True, "NO": False, "FALSE": False, "0": False}

_MOST_TILES = 64


@dataclass(frozen=True, slots=True)
class Config:
    """Options of one compilation."""

    options: Options
    separation: int | None
    """Number of this call if the model's weights are separated (``weightless``); else None."""
    strided: frozenset[str] = frozenset()
    """Friendly names of parameters and results whose strides the caller chooses."""


_WITHOUT_EFFECT = (
    "NPU_STEPPING",  # the generations here have one
    "NPU_DMA_ENGINES",  # all are used
    "NPU_TURBO",  # an option of queues
    "NPU_BATCH_MODE",  # a batch is one more dimension
    "PERFORMANCE_HINT",  # one inference uses the complete device
    "COMPILATION_NUM_THREADS",
    "CACHE_MODE",
    "LOG_LEVEL",  # messages go to the log of the process, which has a level of its own
    "NPU_COMPILATION_MODE",
    "NPU_COMPILATION_MODE_PARAMS",  # passes of another compiler, none of them here
    "NPU_COMPILER_DYNAMIC_QUANTIZATION",  # scales that are inputs are always recognized
    "NPU_QDQ_OPTIMIZATION",  # pairs of FakeQuantize are always recognized
    "NPU_DYNAMIC_SHAPE_TO_STATIC",  # the plugin sets shapes; a dynamic one is rejected
)
"""Options that change no result here; their values are not read."""


def _flag(name: str, value: str) -> bool:
    found = _FLAGS.get(value.upper())
    if found is None:
        raise CompilerUsageError(f"{name}={value[:40]}: neither YES nor NO; choose one")
    return found


def _one_of(*words: str) -> Callable[[str, str], None]:
    def check(name: str, value: str) -> None:
        if value not in words:
            choices = ", ".join(words)
            raise CompilerUsageError(f"{name}={value[:40]}: unknown value; choose one of {choices}")

    return check


def _number(least: int, most: int) -> Callable[[str, str], None]:
    allowed = {str(number) for number in range(least, most + 1)}

    def check(name: str, value: str) -> None:
        if value not in allowed:
            raise CompilerUsageError(
                f"{name}={value[:40]}: not a number from {least} to {most}; choose one"
            )

    return check


_CHECKS: dict[str, Callable[[str, str], object]] = {
    "NPU_PLATFORM": _one_of(*PLATFORMS, "AUTO_DETECT"),
    "NPU_TILES": _number(-1, _MOST_TILES),
    "NPU_MAX_TILES": _number(-1, _MOST_TILES),
    "INFERENCE_PRECISION_HINT": _one_of(*_PRECISIONS),
    "EXECUTION_MODE_HINT": _one_of("PERFORMANCE", "ACCURACY"),
    "PERF_COUNT": _flag,
    "ENABLE_WEIGHTLESS": _flag,
    "NPU_SEPARATE_WEIGHTS_VERSION": _one_of("ITERATIVE"),
    "WS_COMPILE_CALL_NUMBER": _number(0, 1 << 10),
    "NPU_ENABLE_STRIDES_FOR": lambda name, value: None,
}
"""Options that are read, and the checks of their values."""

SUPPORTED = (*_CHECKS, *_WITHOUT_EFFECT)
"""All options that the plugin may set."""


def is_supported(option: str, value: str | None) -> bool:
    """Return whether an option is supported, with a value if one is given."""
    if option not in SUPPORTED:
        return False
    check = _CHECKS.get(option)
    try:
        if check is not None and value is not None:
            check(option, value)
    except CompilerUsageError:
        return False
    return True


def read_config(config: Mapping[str, str], platform: Platform) -> Config:
    """Read options from build flags; unknown ones are ignored, with a line in the log.

    Raises:
        CompilerUsageError: a value is not possible, or not on this platform.
    """
    unread = [f'{name}="{value}"' for name, value in config.items() if name not in _CHECKS]
    if unread:
        _log.info("options without effect in this compiler: %s", " ".join(unread))
    for name, value in config.items():
        if name in _CHECKS:
            _CHECKS[name](name, value)
    _check_platform(config.get("NPU_PLATFORM"), platform)
    options = Options(
        precision=_precision(config),
        platform=platform,
        tiles=_tiles(config, platform),
        profiling=_flag("PERF_COUNT", config.get("PERF_COUNT", "NO")),
    )
    call = config.get("WS_COMPILE_CALL_NUMBER")
    separated = _flag("ENABLE_WEIGHTLESS", config.get("ENABLE_WEIGHTLESS", "NO"))
    strided = _strided(config.get("NPU_ENABLE_STRIDES_FOR", ""), platform)
    return Config(options, int(call or 0) if separated else None, strided)


def _strided(names: str, platform: Platform) -> frozenset[str]:
    """Return the names of a list that is separated by commas."""
    found = frozenset(filter(None, names.split(",")))
    if found and platform.arch == ArchKind.VPUX37XX:
        raise CompilerUsageError(
            f"NPU_ENABLE_STRIDES_FOR: an NPU {platform.name} takes dense tensors only; remove the "
            "option, or choose the device NPU 4000 (npu-run --platform)"
        )
    return found


def _check_platform(name: str | None, platform: Platform) -> None:
    """Reject another generation than the device's; a platform file is of one generation, too."""
    wanted = PLATFORMS.get(name or platform.name, platform)
    if wanted.arch != platform.arch:
        raise CompilerUsageError(
            f"NPU_PLATFORM={name}: the device is an NPU {platform.name}; set {platform.name}, or "
            f"choose the device NPU {name} (npu-run --platform)"
        )


def _precision(config: Mapping[str, str]) -> str:
    accurate = config.get("EXECUTION_MODE_HINT") == "ACCURACY"
    return _PRECISIONS[config.get("INFERENCE_PRECISION_HINT", "f32" if accurate else "f16")]


def _tiles(config: Mapping[str, str], platform: Platform) -> int:
    """Return the tiles to use; 0 for the compiler's choice."""
    limit = int(config.get("NPU_MAX_TILES", -1))
    most = min(platform.tiles, limit) if limit > 0 else platform.tiles
    tiles = int(config.get("NPU_TILES", -1))
    if tiles > most:
        raise CompilerUsageError(f"NPU_TILES={tiles}: there are {most} tiles; lower NPU_TILES")
    return max(tiles, 0)
