"""The compiler that the driver finds by the entry point ``driver_layer.graph_compilers``."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace

from compiler_layer.compile import compile_model
from compiler_layer.errors import CompilerError
from compiler_layer.frontends.openvino_ir.read import read_network
from compiler_layer.frontends.openvino_ir.xml import Network, parse_text
from compiler_layer.in_driver.arguments import (
    check_shapes,
    keep_variables,
    model_names,
    select_ports,
    set_elements,
    set_names,
)
from compiler_layer.in_driver.build_flags import BuildFlags, parse_build_flags
from compiler_layer.in_driver.options import SUPPORTED, is_supported, read_config
from compiler_layer.in_driver.query import supported_layers
from compiler_layer.in_driver.serialized_model import NAME, read_serialized_model
from compiler_layer.in_driver.weightless import compile_separated
from compiler_layer.model import Model
from driver_layer.abi.platforms import Platform
from driver_layer.errors import GraphCompilerError
from driver_layer.support.versions import package_version


class DriverCompiler:
    """Compiler of serialized models; satisfies ``driver_layer.ze.graph_compiler.GraphCompiler``.

    Calls share nothing, so several threads may compile at once.
    """

    version = (7, 6)
    """Version of the plugin's conventions: ports are counted, and weights can be separated."""

    @property
    def identity(self) -> str:
        """The version of this package and its sources."""
        return package_version("compiler_layer")

    def supported_options(self) -> tuple[str, ...]:
        """Return the names of all options."""
        return SUPPORTED

    def is_option_supported(self, option: str, value: str | None) -> bool:
        """Return whether an option is supported, with a value if one is given."""
        return is_supported(option, value)

    def compile(self, model: memoryview, build_flags: str, platform: Platform) -> bytes:
        """Compile a serialized model to a blob.

        Args:
            model: the serialized model; not read after the call.
            build_flags: types and layouts of ports, and options.
            platform: the device.

        Raises:
            GraphCompilerError: the reason and, where one is known, a remedy.
        """
        with _reported():
            flags = parse_build_flags(build_flags)
            config = read_config(flags.config, platform)
            network, weights = _network(model)
            read = _prepared(network, weights, flags)
            names = model_names(network)
            options = replace(config.options, strided=select_ports(read, names, config.strided))
            if config.separation is None:
                return compile_model(read, options, names=names)
            return compile_separated(read, network, config.separation, options, names)

    def query(self, model: memoryview, build_flags: str, platform: Platform) -> tuple[str, ...]:
        """Return the friendly names of the layers that the device can run; raises as compile."""
        with _reported():
            config = read_config(parse_build_flags(build_flags).config, platform)
            network, weights = _network(model)
            return supported_layers(network, weights, config.options)


def _network(model: memoryview) -> tuple[Network, memoryview]:
    content = read_serialized_model(model)
    return parse_text(content.xml, NAME), content.weights


def _prepared(network: Network, weights: memoryview, flags: BuildFlags) -> Model:
    model = read_network(network, weights, NAME)
    check_shapes(model)
    keep_variables(model)
    set_names(model, network)
    set_elements(model, network, flags)
    return model


@contextmanager
def _reported() -> Generator[None]:
    try:
        yield
    except CompilerError as error:
        raise GraphCompilerError(str(error)) from error
