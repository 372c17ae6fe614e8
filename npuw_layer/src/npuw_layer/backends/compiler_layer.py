"""Adapter of compiler_layer as npuw's compiler."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from compiler_layer.errors import CompilerError, NotPeriodic
from driver_layer.support.versions import package_version
from npuw_layer.errors import ModelError, NotFolded
from npuw_layer.options.base import DEVICE_ROUTED, EXPERTS, PER_TOKEN

if TYPE_CHECKING:
    from compiler_layer.model import Model
    from compiler_layer.partition.compiled import CompiledFunction, CompiledParts
    from compiler_layer.pipeline import Options


class StaticCompiler:
    """Compiler of static graphs to ELF blobs; satisfies ``protocols.Compiler``."""

    @property
    def version(self) -> str:
        """Versions of the compiler, of the formats it writes, and of its tables."""
        own, abi = package_version("compiler_layer"), package_version("driver_layer.abi")
        return f"{own} abi {abi}"

    def compile(self, model: Model, config: Mapping[str, str]) -> bytes:
        """Compile a graph.

        Raises:
            ModelError: the graph is not supported, or does not fit the device.
        """
        # Imported here: a warm start, which compiles nothing, loads no passes.
        from compiler_layer.compile import compile_model

        try:
            return compile_model(model, self._options(config))
        except NotPeriodic as error:
            raise NotFolded(str(error)) from error
        except CompilerError as error:
            raise ModelError(f"compilation failed: {error}") from error

    def compile_parts(self, model: Model, config: Mapping[str, str]) -> CompiledParts:
        """Cut a graph at its repeated block; see ``protocols.OffloadingDevice``.

        Raises:
            NotFolded: the graph repeats no block, or not often enough.
            ModelError: the graph is not supported, or does not fit the device.
        """
        from compiler_layer.compile import compile_parts
        from compiler_layer.partition.repeated.attributes import kept_repetitions
        from compiler_layer.partition.repeated.fold import folded

        try:
            if kept_repetitions(model) is None:
                model = folded(model, both_first=True) or model
            return compile_parts(model, self._options(config))
        except NotPeriodic as error:
            raise NotFolded(str(error)) from error
        except CompilerError as error:
            raise ModelError(f"the model cannot be offloaded: {error}") from error

    def compile_function(self, model: Model, config: Mapping[str, str]) -> CompiledFunction:
        """Compile a part that is called several times; see ``protocols.CompilesFunctions``.

        Raises:
            ModelError: the part is not supported, or does not fit the device.
        """
        from compiler_layer.compile import compile_function

        try:
            return compile_function(model, self._options(config))
        except CompilerError as error:
            raise ModelError(f"compilation failed: {error}") from error

    @staticmethod
    def _options(config: Mapping[str, str]) -> Options:
        from compiler_layer.pipeline import Options

        return Options(
            precision=config["INFERENCE_PRECISION_HINT"],
            platform=config["NPU_PLATFORM"],
            tiles=max(0, int(config["NPU_TILES"])),
            integer_activations=config.get("DYNAMIC_QUANTIZATION_GROUP_SIZE") == str(PER_TOKEN),
            weightless=config.get("ENABLE_WEIGHTLESS") == "YES",
            fold=config.get("NPUW_FOLD") != "NO",
            device_routed=config.get(EXPERTS) == DEVICE_ROUTED,
            state_in_place=config.get("STATE_IN_PLACE") == "YES",
        )

    def foldings(self, model: Model) -> Iterator[Model]:
        """Yield the model with its first and last layer, then with more layers, then all layers."""
        from compiler_layer.compile import foldings

        yield from foldings(model)
        yield model
