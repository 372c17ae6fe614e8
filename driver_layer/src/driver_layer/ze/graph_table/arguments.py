"""Descriptions and locations of a graph's arguments.

Source: docs/reference/level_zero.md#arguments, docs/reference/level_zero.md#graph-structures.
"""

from __future__ import annotations

from dataclasses import fields
from typing import TypeVar

from driver_layer.abi.dtypes import BY_CODE
from driver_layer.loader.strides import Strides
from driver_layer.ze import errors
from driver_layer.ze import graph_types as t
from driver_layer.ze.calls import check_fields, checked
from driver_layer.ze.context import Pointer
from driver_layer.ze.graph import ze_graph_handle_t

S = TypeVar("S", bound=t.ze_graph_argument_properties_t)

_MAX_DIMS = 5
_MAX_CHAIN = 16
"""Longest chain of structures that is followed; each kind is needed once."""
_Layout = t.ze_graph_argument_layout_t
_ANY = _Layout.ZE_GRAPH_ARGUMENT_LAYOUT_ANY
_LAYOUTS = {
    0x1: _Layout.ZE_GRAPH_ARGUMENT_LAYOUT_C,
    0x12: _Layout.ZE_GRAPH_ARGUMENT_LAYOUT_NC,
    0x21: _Layout.ZE_GRAPH_ARGUMENT_LAYOUT_CN,
    0x123: _Layout.ZE_GRAPH_ARGUMENT_LAYOUT_CHW,
    0x1234: _Layout.ZE_GRAPH_ARGUMENT_LAYOUT_NCHW,
    0x1342: _Layout.ZE_GRAPH_ARGUMENT_LAYOUT_NHWC,
    0x12345: _Layout.ZE_GRAPH_ARGUMENT_LAYOUT_NCDHW,
    0x13452: _Layout.ZE_GRAPH_ARGUMENT_LAYOUT_NDHWC,
}
"""Layouts by the order of the dimensions in the blob."""


class GraphArguments:
    """Functions of arguments; indices count inputs first, then outputs.

    All functions raise ZeError INVALID_ARGUMENT if the argument does not exist.
    """

    @checked
    def pfnGetArgumentProperties(
        self, hGraph: ze_graph_handle_t, argIndex: int
    ) -> t.ze_graph_argument_properties_t:
        """Describe an argument."""
        full = self.pfnGetArgumentProperties3(hGraph, argIndex)
        return _part(full, t.ze_graph_argument_properties_t)

    @checked
    def pfnGetArgumentProperties2(
        self, hGraph: ze_graph_handle_t, argIndex: int
    ) -> t.ze_graph_argument_properties_2_t:
        """Describe an argument, with its quantization."""
        full = self.pfnGetArgumentProperties3(hGraph, argIndex)
        return _part(full, t.ze_graph_argument_properties_2_t)

    @checked
    def pfnGetArgumentProperties3(
        self, hGraph: ze_graph_handle_t, argIndex: int
    ) -> t.ze_graph_argument_properties_3_t:
        """Describe an argument, with its quantization and names."""
        hGraph.check_index(argIndex)
        tensor, node = hGraph.tensors[argIndex], hGraph.node(argIndex)
        declared = BY_CODE.get(tensor.network_type)
        is_input = hGraph.is_input(argIndex)
        return t.ze_graph_argument_properties_3_t(
            name=tensor.name,
            type=_side(is_input),
            dims=(*tensor.shape, *[1] * _MAX_DIMS)[:_MAX_DIMS],
            networkPrecision=declared.precision if declared else 0,
            networkLayout=_LAYOUTS.get(tensor.network_order, _ANY),
            devicePrecision=tensor.element.precision,
            deviceLayout=_LAYOUTS.get(tensor.order, _ANY),
            pNext=t.ze_graph_argument_property_strides_t(tensor.dynamic_strides),
            quantReverseScale=1.0 if is_input else 0.0,
            quantZeroPoint=0,
            dims_count=len(tensor.shape),
            debug_friendly_name=node.friendly_name if node else tensor.name,
            associated_tensor_names=node.tensor_names if node else (tensor.name,),
        )

    @checked
    def pfnGraphGetArgumentMetadata(
        self, hGraph: ze_graph_handle_t, argIndex: int
    ) -> t.ze_graph_argument_metadata_t:
        """Return OpenVINO's metadata of an argument; a state's is that of its tensor."""
        hGraph.check_index(argIndex)
        tensor, node = hGraph.tensors[argIndex], hGraph.node(argIndex)
        return t.ze_graph_argument_metadata_t(
            type=_side(hGraph.is_input(argIndex)),
            friendly_name=node.friendly_name if node else tensor.name,
            data_type=node.type if node else tensor.element.node_type,
            shape=node.shape if node else tensor.shape,
            tensor_names=node.tensor_names if node else (),
            input_name=node.input_name if node else "",
        )

    @checked
    def pfnSetArgumentValue(
        self, hGraph: ze_graph_handle_t, argIndex: int, pArgValue: Pointer
    ) -> None:
        """Set the location of an argument, a dense tensor, for later recordings.

        Raises:
            ZeError: INVALID_NULL_POINTER.
        """
        hGraph.check_index(argIndex)
        hGraph.set_argument(argIndex, errors.not_null(pArgValue, "pArgValue"), ())

    @checked
    def pfnSetArgumentValue2(
        self,
        hGraph: ze_graph_handle_t,
        argIndex: int,
        pArgValue: t.ze_graph_argument_value_tensor_t | t.ze_graph_argument_value_strides_t,
    ) -> None:
        """Set location and strides of an argument: all of the chain, or nothing.

        Without a location in the chain, that of the argument stays; without strides, it is dense.

        Raises:
            ZeError: INVALID_NULL_POINTER; INVALID_ARGUMENT: the strides are not possible
                (``graph_strides.checked_strides``), or another structure is in the chain.
        """
        hGraph.check_index(argIndex)
        location: Pointer | None = None
        strides: Strides = ()
        link: object = pArgValue
        for _ in range(_MAX_CHAIN):
            if isinstance(link, t.ze_graph_argument_value_tensor_t):
                check_fields(link, "pArgValue")
                location = errors.not_null(link.pTensor, "pTensor")
            elif isinstance(link, t.ze_graph_argument_value_strides_t):
                check_fields(link, "pArgValue")
                strides = hGraph.checked_strides(argIndex, link.userStrides)
            elif link is None:
                break
            else:
                message = f"{type(link).__name__} is no structure of an argument's value"
                raise errors.invalid_argument(message)
            link = link.pNext
        else:
            message = f"the chain of pArgValue has over {_MAX_CHAIN} structures"
            raise errors.invalid_argument(message)
        hGraph.set_argument(argIndex, location, strides)


def _part(full: t.ze_graph_argument_properties_3_t, kind: type[S]) -> S:
    """Return the fields that an earlier version of the structure has."""
    return kind(*(getattr(full, field.name) for field in fields(kind)))


def _side(is_input: bool) -> t.ze_graph_argument_type_t:
    """Return the number of a side: inputs are 0."""
    return t.ze_graph_argument_type_t(int(not is_input))
