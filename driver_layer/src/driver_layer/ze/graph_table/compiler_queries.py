"""Questions to the graph compiler: the layers and the options that it supports.

Source: docs/reference/level_zero.md#graph-extension.
"""

from __future__ import annotations

from driver_layer.ze import errors
from driver_layer.ze import graph_types as t
from driver_layer.ze.calls import Handle, checked
from driver_layer.ze.context import check_device, ze_context_handle_t
from driver_layer.ze.driver import ze_device_handle_t
from driver_layer.ze.graph_compiler import compiling, needed_compiler

_MODEL = t.ze_graph_format_t.ZE_GRAPH_FORMAT_NGRAPH_LITE
_OF_DRIVER = t.ze_npu_options_type_t.ZE_NPU_DRIVER_OPTIONS


class ze_graph_query_network_handle_t(Handle):
    """Result of a query.

    Args:
        layers: friendly names of the supported layers.
    """

    def __init__(self, layers: tuple[str, ...]) -> None:
        super().__init__()
        self.layers = layers

    @property
    def text(self) -> str:
        """The names in the form of the extension, each in angle brackets."""
        return "".join(f"<{name}>" for name in self.layers)


class CompilerQueries:
    """Functions that ask the graph compiler."""

    @checked
    def pfnQueryNetworkCreate(
        self, hContext: ze_context_handle_t, hDevice: ze_device_handle_t, desc: t.ze_graph_desc_t
    ) -> ze_graph_query_network_handle_t:
        """Query the supported layers of a model.

        Raises:
            ZeError: UNSUPPORTED_ENUMERATION: the graph is native; INVALID_ARGUMENT: the device is
                not the context's; UNSUPPORTED_FEATURE: there is no compiler, or it cannot read the
                model; DEPENDENCY_UNAVAILABLE, UNKNOWN: the compiler failed.
        """
        return _query(hContext, hDevice, desc)

    @checked
    def pfnQueryNetworkCreate2(
        self, hContext: ze_context_handle_t, hDevice: ze_device_handle_t, desc: t.ze_graph_desc_2_t
    ) -> ze_graph_query_network_handle_t:
        """Query the supported layers of a model; as pfnQueryNetworkCreate."""
        return _query(hContext, hDevice, desc)

    @checked
    def pfnQueryNetworkDestroy(self, hGraphQueryNetwork: ze_graph_query_network_handle_t) -> None:
        """Destroy a query."""
        hGraphQueryNetwork.alive = False

    @checked
    def pfnQueryNetworkGetSupportedLayers(
        self, hGraphQueryNetwork: ze_graph_query_network_handle_t
    ) -> str:
        """Return the supported layers' friendly names, each in angle brackets."""
        return hGraphQueryNetwork.text

    @checked
    def pfnCompilerGetSupportedOptions(
        self, hDevice: ze_device_handle_t, type: t.ze_npu_options_type_t
    ) -> str:
        """Return the names of options, separated by spaces; the driver has none.

        Raises:
            ZeError: UNSUPPORTED_FEATURE: there is no compiler; DEPENDENCY_UNAVAILABLE.
        """
        if type == _OF_DRIVER:
            return ""
        with compiling():
            return " ".join(needed_compiler().supported_options())

    @checked
    def pfnCompilerIsOptionSupported(
        self,
        hDevice: ze_device_handle_t,
        type: t.ze_npu_options_type_t,
        pOption: str,
        pValue: str | None = None,
    ) -> None:
        """Return if an option, or an option with a value, is supported.

        Raises:
            ZeError: UNSUPPORTED_FEATURE: it is not, or there is no compiler;
                DEPENDENCY_UNAVAILABLE.
        """
        with compiling():
            if type == _OF_DRIVER or not needed_compiler().is_option_supported(pOption, pValue):
                asked = pOption if pValue is None else f"{pOption}={pValue}"
                raise errors.unsupported_feature(f"option {asked} is not supported")


def _query(
    context: ze_context_handle_t,
    device: ze_device_handle_t,
    desc: t.ze_graph_desc_t | t.ze_graph_desc_2_t,
) -> ze_graph_query_network_handle_t:
    check_device(context, device)
    if desc.format != _MODEL:
        raise errors.unsupported_enumeration("only models can be queried, not native graphs")
    content = memoryview(desc.pInput).cast("B")
    with compiling():
        layers = needed_compiler().query(content, desc.pBuildFlags or "", device.platform)
    return ze_graph_query_network_handle_t(layers)
