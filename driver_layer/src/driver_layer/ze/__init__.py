"""Level Zero in Python, on the simulated NPU.

Functions have the specification's names. They return values that C functions write through
pointers, and raise ``ZeError`` with any result code other than ZE_RESULT_SUCCESS.
"""

from driver_layer.errors import ZeError as ZeError
from driver_layer.ze.command_list import ze_command_list_desc_t as ze_command_list_desc_t
from driver_layer.ze.command_list import ze_command_list_handle_t as ze_command_list_handle_t
from driver_layer.ze.command_list import (
    ze_mutable_command_list_exp_desc_t as ze_mutable_command_list_exp_desc_t,
)
from driver_layer.ze.command_list import zeCommandListClose as zeCommandListClose
from driver_layer.ze.command_list import zeCommandListCreate as zeCommandListCreate
from driver_layer.ze.command_list import zeCommandListDestroy as zeCommandListDestroy
from driver_layer.ze.command_list import zeCommandListReset as zeCommandListReset
from driver_layer.ze.command_queue import ze_command_queue_handle_t as ze_command_queue_handle_t
from driver_layer.ze.command_queue import ze_fence_handle_t as ze_fence_handle_t
from driver_layer.ze.command_queue import zeCommandQueueCreate as zeCommandQueueCreate
from driver_layer.ze.command_queue import zeCommandQueueDestroy as zeCommandQueueDestroy
from driver_layer.ze.command_queue import (
    zeCommandQueueExecuteCommandLists as zeCommandQueueExecuteCommandLists,
)
from driver_layer.ze.command_queue import zeCommandQueueSynchronize as zeCommandQueueSynchronize
from driver_layer.ze.command_queue import zeFenceCreate as zeFenceCreate
from driver_layer.ze.command_queue import zeFenceDestroy as zeFenceDestroy
from driver_layer.ze.command_queue import zeFenceHostSynchronize as zeFenceHostSynchronize
from driver_layer.ze.command_queue import zeFenceQueryStatus as zeFenceQueryStatus
from driver_layer.ze.command_queue import zeFenceReset as zeFenceReset
from driver_layer.ze.context import Memory as Memory
from driver_layer.ze.context import ze_context_handle_t as ze_context_handle_t
from driver_layer.ze.context import zeContextCreate as zeContextCreate
from driver_layer.ze.context import zeContextDestroy as zeContextDestroy
from driver_layer.ze.context import zeContextEvictMemory as zeContextEvictMemory
from driver_layer.ze.context import zeContextGetStatus as zeContextGetStatus
from driver_layer.ze.context import zeContextMakeMemoryResident as zeContextMakeMemoryResident
from driver_layer.ze.context import zeContextSystemBarrier as zeContextSystemBarrier
from driver_layer.ze.context_extension import (
    ze_context_npu_dditable_ext_t as ze_context_npu_dditable_ext_t,
)
from driver_layer.ze.context_extension import (
    ze_context_properties_npu_ext_t as ze_context_properties_npu_ext_t,
)
from driver_layer.ze.context_extension import ze_npu_context_option_t as ze_npu_context_option_t
from driver_layer.ze.device import zeDeviceCanAccessPeer as zeDeviceCanAccessPeer
from driver_layer.ze.device import zeDeviceGet as zeDeviceGet
from driver_layer.ze.device import zeDeviceGetCacheProperties as zeDeviceGetCacheProperties
from driver_layer.ze.device import (
    zeDeviceGetCommandQueueGroupProperties as zeDeviceGetCommandQueueGroupProperties,
)
from driver_layer.ze.device import zeDeviceGetComputeProperties as zeDeviceGetComputeProperties
from driver_layer.ze.device import zeDeviceGetGlobalTimestamps as zeDeviceGetGlobalTimestamps
from driver_layer.ze.device import zeDeviceGetImageProperties as zeDeviceGetImageProperties
from driver_layer.ze.device import (
    zeDeviceGetMemoryAccessProperties as zeDeviceGetMemoryAccessProperties,
)
from driver_layer.ze.device import zeDeviceGetMemoryProperties as zeDeviceGetMemoryProperties
from driver_layer.ze.device import zeDeviceGetModuleProperties as zeDeviceGetModuleProperties
from driver_layer.ze.device import zeDeviceGetP2PProperties as zeDeviceGetP2PProperties
from driver_layer.ze.device import zeDeviceGetProperties as zeDeviceGetProperties
from driver_layer.ze.device import zeDeviceGetStatus as zeDeviceGetStatus
from driver_layer.ze.device import zeDeviceGetSubDevices as zeDeviceGetSubDevices
from driver_layer.ze.device import zeDevicePciGetPropertiesExt as zeDevicePciGetPropertiesExt
from driver_layer.ze.device_types import (
    ze_command_queue_group_properties_t as ze_command_queue_group_properties_t,
)
from driver_layer.ze.device_types import (
    ze_command_queue_group_property_flags_t as ze_command_queue_group_property_flags_t,
)
from driver_layer.ze.device_types import (
    ze_device_cache_properties_t as ze_device_cache_properties_t,
)
from driver_layer.ze.device_types import (
    ze_device_compute_properties_t as ze_device_compute_properties_t,
)
from driver_layer.ze.device_types import (
    ze_device_image_properties_t as ze_device_image_properties_t,
)
from driver_layer.ze.device_types import (
    ze_device_memory_access_properties_t as ze_device_memory_access_properties_t,
)
from driver_layer.ze.device_types import (
    ze_device_memory_properties_t as ze_device_memory_properties_t,
)
from driver_layer.ze.device_types import (
    ze_device_module_properties_t as ze_device_module_properties_t,
)
from driver_layer.ze.device_types import ze_device_p2p_properties_t as ze_device_p2p_properties_t
from driver_layer.ze.device_types import ze_device_properties_t as ze_device_properties_t
from driver_layer.ze.device_types import ze_device_property_flags_t as ze_device_property_flags_t
from driver_layer.ze.device_types import ze_device_type_t as ze_device_type_t
from driver_layer.ze.device_types import (
    ze_memory_access_cap_flags_t as ze_memory_access_cap_flags_t,
)
from driver_layer.ze.device_types import ze_pci_address_ext_t as ze_pci_address_ext_t
from driver_layer.ze.device_types import ze_pci_ext_properties_t as ze_pci_ext_properties_t
from driver_layer.ze.device_types import ze_pci_speed_ext_t as ze_pci_speed_ext_t
from driver_layer.ze.driver import CONTEXT_EXTENSION as CONTEXT_EXTENSION
from driver_layer.ze.driver import DRIVER_EXTENSION as DRIVER_EXTENSION
from driver_layer.ze.driver import GRAPH_EXTENSION as GRAPH_EXTENSION
from driver_layer.ze.driver import PROFILING_EXTENSION as PROFILING_EXTENSION
from driver_layer.ze.driver import QUEUE_EXTENSION as QUEUE_EXTENSION
from driver_layer.ze.driver import simulated_driver as simulated_driver
from driver_layer.ze.driver import use_host_addresses as use_host_addresses
from driver_layer.ze.driver import ze_device_handle_t as ze_device_handle_t
from driver_layer.ze.driver import ze_driver_handle_t as ze_driver_handle_t
from driver_layer.ze.driver import zeDriverGet as zeDriverGet
from driver_layer.ze.driver import zeDriverGetApiVersion as zeDriverGetApiVersion
from driver_layer.ze.driver import (
    zeDriverGetExtensionFunctionAddress as zeDriverGetExtensionFunctionAddress,
)
from driver_layer.ze.driver import zeDriverGetExtensionProperties as zeDriverGetExtensionProperties
from driver_layer.ze.driver import zeDriverGetIpcProperties as zeDriverGetIpcProperties
from driver_layer.ze.driver import (
    zeDriverGetLastErrorDescription as zeDriverGetLastErrorDescription,
)
from driver_layer.ze.driver import zeDriverGetProperties as zeDriverGetProperties
from driver_layer.ze.driver import zeInit as zeInit
from driver_layer.ze.driver import zeInitDrivers as zeInitDrivers
from driver_layer.ze.driver_extension import (
    ze_driver_extension_npu_ext_t as ze_driver_extension_npu_ext_t,
)
from driver_layer.ze.driver_extension import (
    ze_driver_npu_dditable_ext_t as ze_driver_npu_dditable_ext_t,
)
from driver_layer.ze.driver_types import (
    ze_driver_extension_properties_t as ze_driver_extension_properties_t,
)
from driver_layer.ze.driver_types import ze_driver_ipc_properties_t as ze_driver_ipc_properties_t
from driver_layer.ze.driver_types import ze_driver_properties_t as ze_driver_properties_t
from driver_layer.ze.driver_types import ze_init_driver_type_flags_t as ze_init_driver_type_flags_t
from driver_layer.ze.driver_types import ze_ipc_property_flags_t as ze_ipc_property_flags_t
from driver_layer.ze.event import UINT64_MAX as UINT64_MAX
from driver_layer.ze.event import ze_event_desc_t as ze_event_desc_t
from driver_layer.ze.event import ze_event_handle_t as ze_event_handle_t
from driver_layer.ze.event import ze_event_pool_desc_t as ze_event_pool_desc_t
from driver_layer.ze.event import ze_event_pool_flags_t as ze_event_pool_flags_t
from driver_layer.ze.event import ze_event_pool_handle_t as ze_event_pool_handle_t
from driver_layer.ze.event import ze_event_scope_flags_t as ze_event_scope_flags_t
from driver_layer.ze.event import zeEventCreate as zeEventCreate
from driver_layer.ze.event import zeEventDestroy as zeEventDestroy
from driver_layer.ze.event import zeEventHostReset as zeEventHostReset
from driver_layer.ze.event import zeEventHostSignal as zeEventHostSignal
from driver_layer.ze.event import zeEventHostSynchronize as zeEventHostSynchronize
from driver_layer.ze.event import zeEventPoolCreate as zeEventPoolCreate
from driver_layer.ze.event import zeEventPoolDestroy as zeEventPoolDestroy
from driver_layer.ze.event import zeEventQueryKernelTimestamp as zeEventQueryKernelTimestamp
from driver_layer.ze.event import zeEventQueryStatus as zeEventQueryStatus
from driver_layer.ze.external_memory import (
    zeDeviceGetExternalMemoryProperties as zeDeviceGetExternalMemoryProperties,
)
from driver_layer.ze.external_types import ZE_MAX_IPC_HANDLE_SIZE as ZE_MAX_IPC_HANDLE_SIZE
from driver_layer.ze.external_types import (
    ze_device_external_memory_properties_t as ze_device_external_memory_properties_t,
)
from driver_layer.ze.external_types import (
    ze_external_memory_export_desc_t as ze_external_memory_export_desc_t,
)
from driver_layer.ze.external_types import (
    ze_external_memory_export_fd_t as ze_external_memory_export_fd_t,
)
from driver_layer.ze.external_types import (
    ze_external_memory_import_fd_t as ze_external_memory_import_fd_t,
)
from driver_layer.ze.external_types import (
    ze_external_memory_type_flags_t as ze_external_memory_type_flags_t,
)
from driver_layer.ze.external_types import ze_ipc_mem_handle_t as ze_ipc_mem_handle_t
from driver_layer.ze.external_types import ze_ipc_memory_flags_t as ze_ipc_memory_flags_t
from driver_layer.ze.graph import ze_graph_handle_t as ze_graph_handle_t
from driver_layer.ze.graph_build_log import GraphCreationError as GraphCreationError
from driver_layer.ze.graph_build_log import (
    ze_graph_build_log_handle_t as ze_graph_build_log_handle_t,
)
from driver_layer.ze.graph_extension import ze_graph_dditable_ext_t as ze_graph_dditable_ext_t
from driver_layer.ze.graph_query import (
    ze_graph_query_network_handle_t as ze_graph_query_network_handle_t,
)
from driver_layer.ze.graph_types import (
    ze_device_graph_properties_2_t as ze_device_graph_properties_2_t,
)
from driver_layer.ze.graph_types import ze_device_graph_properties_t as ze_device_graph_properties_t
from driver_layer.ze.graph_types import ze_graph_argument_layout_t as ze_graph_argument_layout_t
from driver_layer.ze.graph_types import ze_graph_argument_metadata_t as ze_graph_argument_metadata_t
from driver_layer.ze.graph_types import (
    ze_graph_argument_properties_2_t as ze_graph_argument_properties_2_t,
)
from driver_layer.ze.graph_types import (
    ze_graph_argument_properties_3_t as ze_graph_argument_properties_3_t,
)
from driver_layer.ze.graph_types import (
    ze_graph_argument_properties_t as ze_graph_argument_properties_t,
)
from driver_layer.ze.graph_types import (
    ze_graph_argument_property_strides_t as ze_graph_argument_property_strides_t,
)
from driver_layer.ze.graph_types import ze_graph_argument_type_t as ze_graph_argument_type_t
from driver_layer.ze.graph_types import (
    ze_graph_argument_value_strides_t as ze_graph_argument_value_strides_t,
)
from driver_layer.ze.graph_types import (
    ze_graph_argument_value_tensor_t as ze_graph_argument_value_tensor_t,
)
from driver_layer.ze.graph_types import (
    ze_graph_compiler_version_info_t as ze_graph_compiler_version_info_t,
)
from driver_layer.ze.graph_types import ze_graph_desc_2_t as ze_graph_desc_2_t
from driver_layer.ze.graph_types import ze_graph_desc_t as ze_graph_desc_t
from driver_layer.ze.graph_types import ze_graph_flags_t as ze_graph_flags_t
from driver_layer.ze.graph_types import ze_graph_format_t as ze_graph_format_t
from driver_layer.ze.graph_types import ze_graph_init_stage_t as ze_graph_init_stage_t
from driver_layer.ze.graph_types import ze_graph_input_hash_t as ze_graph_input_hash_t
from driver_layer.ze.graph_types import ze_graph_memory_query_t as ze_graph_memory_query_t
from driver_layer.ze.graph_types import ze_graph_memory_query_type_t as ze_graph_memory_query_type_t
from driver_layer.ze.graph_types import ze_graph_properties_2_t as ze_graph_properties_2_t
from driver_layer.ze.graph_types import ze_graph_properties_3_t as ze_graph_properties_3_t
from driver_layer.ze.graph_types import ze_graph_properties_flag_t as ze_graph_properties_flag_t
from driver_layer.ze.graph_types import ze_graph_properties_t as ze_graph_properties_t
from driver_layer.ze.graph_types import ze_graph_version_info_t as ze_graph_version_info_t
from driver_layer.ze.graph_types import ze_npu_options_type_t as ze_npu_options_type_t
from driver_layer.ze.immediate_list import (
    zeCommandListCreateImmediate as zeCommandListCreateImmediate,
)
from driver_layer.ze.immediate_list import (
    zeCommandListHostSynchronize as zeCommandListHostSynchronize,
)
from driver_layer.ze.immediate_list import (
    zeCommandListImmediateGetIndex as zeCommandListImmediateGetIndex,
)
from driver_layer.ze.immediate_list import zeCommandListIsImmediate as zeCommandListIsImmediate
from driver_layer.ze.ipc import zeMemCloseIpcHandle as zeMemCloseIpcHandle
from driver_layer.ze.ipc import zeMemGetIpcHandle as zeMemGetIpcHandle
from driver_layer.ze.ipc import zeMemOpenIpcHandle as zeMemOpenIpcHandle
from driver_layer.ze.ipc import zeMemPutIpcHandle as zeMemPutIpcHandle
from driver_layer.ze.list_copies import ze_copy_region_t as ze_copy_region_t
from driver_layer.ze.list_copies import (
    zeCommandListAppendMemoryCopy as zeCommandListAppendMemoryCopy,
)
from driver_layer.ze.list_copies import (
    zeCommandListAppendMemoryCopyFromContext as zeCommandListAppendMemoryCopyFromContext,
)
from driver_layer.ze.list_copies import (
    zeCommandListAppendMemoryCopyRegion as zeCommandListAppendMemoryCopyRegion,
)
from driver_layer.ze.list_copies import (
    zeCommandListAppendMemoryFill as zeCommandListAppendMemoryFill,
)
from driver_layer.ze.list_synchronization import (
    zeCommandListAppendBarrier as zeCommandListAppendBarrier,
)
from driver_layer.ze.list_synchronization import (
    zeCommandListAppendEventReset as zeCommandListAppendEventReset,
)
from driver_layer.ze.list_synchronization import (
    zeCommandListAppendMemoryRangesBarrier as zeCommandListAppendMemoryRangesBarrier,
)
from driver_layer.ze.list_synchronization import (
    zeCommandListAppendSignalEvent as zeCommandListAppendSignalEvent,
)
from driver_layer.ze.list_synchronization import (
    zeCommandListAppendWaitOnEvents as zeCommandListAppendWaitOnEvents,
)
from driver_layer.ze.list_synchronization import (
    zeCommandListAppendWriteGlobalTimestamp as zeCommandListAppendWriteGlobalTimestamp,
)
from driver_layer.ze.memory import zeMemAllocDevice as zeMemAllocDevice
from driver_layer.ze.memory import zeMemAllocHost as zeMemAllocHost
from driver_layer.ze.memory import zeMemAllocShared as zeMemAllocShared
from driver_layer.ze.memory import zeMemFree as zeMemFree
from driver_layer.ze.memory import zeMemGetAddressRange as zeMemGetAddressRange
from driver_layer.ze.memory import zeMemGetAllocProperties as zeMemGetAllocProperties
from driver_layer.ze.mutable_list import (
    ze_mutable_command_exp_flags_t as ze_mutable_command_exp_flags_t,
)
from driver_layer.ze.mutable_list import (
    ze_mutable_command_id_exp_desc_t as ze_mutable_command_id_exp_desc_t,
)
from driver_layer.ze.mutable_list import (
    ze_mutable_commands_exp_desc_t as ze_mutable_commands_exp_desc_t,
)
from driver_layer.ze.mutable_list import (
    ze_mutable_graph_argument_exp_desc_t as ze_mutable_graph_argument_exp_desc_t,
)
from driver_layer.ze.mutable_list import (
    zeCommandListGetNextCommandIdExp as zeCommandListGetNextCommandIdExp,
)
from driver_layer.ze.mutable_list import (
    zeCommandListUpdateMutableCommandsExp as zeCommandListUpdateMutableCommandsExp,
)
from driver_layer.ze.profiling import (
    ze_graph_profiling_pool_handle_t as ze_graph_profiling_pool_handle_t,
)
from driver_layer.ze.profiling import (
    ze_graph_profiling_query_handle_t as ze_graph_profiling_query_handle_t,
)
from driver_layer.ze.profiling_extension import (
    ze_graph_profiling_dditable_ext_t as ze_graph_profiling_dditable_ext_t,
)
from driver_layer.ze.profiling_types import (
    ze_device_profiling_data_properties_t as ze_device_profiling_data_properties_t,
)
from driver_layer.ze.profiling_types import ze_graph_profiling_type_t as ze_graph_profiling_type_t
from driver_layer.ze.profiling_types import ze_layer_status_t as ze_layer_status_t
from driver_layer.ze.profiling_types import ze_profiling_layer_info as ze_profiling_layer_info
from driver_layer.ze.profiling_types import ze_profiling_task_info as ze_profiling_task_info
from driver_layer.ze.profiling_types import ze_task_execute_type_t as ze_task_execute_type_t
from driver_layer.ze.queue_extension import (
    ze_command_queue_npu_dditable_ext_t as ze_command_queue_npu_dditable_ext_t,
)
from driver_layer.ze.queue_types import (
    ze_command_queue_desc_npu_ext_2_t as ze_command_queue_desc_npu_ext_2_t,
)
from driver_layer.ze.queue_types import (
    ze_command_queue_desc_npu_ext_t as ze_command_queue_desc_npu_ext_t,
)
from driver_layer.ze.queue_types import ze_command_queue_desc_t as ze_command_queue_desc_t
from driver_layer.ze.queue_types import ze_command_queue_flags_t as ze_command_queue_flags_t
from driver_layer.ze.queue_types import ze_command_queue_mode_t as ze_command_queue_mode_t
from driver_layer.ze.queue_types import ze_command_queue_priority_t as ze_command_queue_priority_t
from driver_layer.ze.queue_types import (
    ze_command_queue_workload_type_t as ze_command_queue_workload_type_t,
)
from driver_layer.ze.queue_types import (
    ze_npu_command_queue_option_t as ze_npu_command_queue_option_t,
)
from driver_layer.ze.result import ze_result_t as ze_result_t
from driver_layer.ze.runtime_requirements import (
    ze_runtime_requirements_graph_desc_t as ze_runtime_requirements_graph_desc_t,
)
from driver_layer.ze.runtime_requirements import (
    ze_validate_runtime_requirements_output_t as ze_validate_runtime_requirements_output_t,
)
from driver_layer.ze.runtime_requirements import (
    ze_validate_runtime_requirements_result_t as ze_validate_runtime_requirements_result_t,
)
from driver_layer.ze.runtime_requirements import (
    zeDeviceGetRuntimeRequirements as zeDeviceGetRuntimeRequirements,
)
from driver_layer.ze.runtime_requirements import (
    zeDeviceGetRuntimeRequirementsKey as zeDeviceGetRuntimeRequirementsKey,
)
from driver_layer.ze.runtime_requirements import (
    zeDeviceValidateRuntimeRequirements as zeDeviceValidateRuntimeRequirements,
)
from driver_layer.ze.types import ZE_MAKE_VERSION as ZE_MAKE_VERSION
from driver_layer.ze.types import ze_device_mem_alloc_desc_t as ze_device_mem_alloc_desc_t
from driver_layer.ze.types import ze_device_mem_alloc_flags_t as ze_device_mem_alloc_flags_t
from driver_layer.ze.types import (
    ze_external_memmap_sysmem_ext_desc_t as ze_external_memmap_sysmem_ext_desc_t,
)
from driver_layer.ze.types import ze_fence_flags_t as ze_fence_flags_t
from driver_layer.ze.types import ze_host_mem_alloc_desc_t as ze_host_mem_alloc_desc_t
from driver_layer.ze.types import ze_host_mem_alloc_flags_t as ze_host_mem_alloc_flags_t
from driver_layer.ze.types import (
    ze_memory_allocation_properties_t as ze_memory_allocation_properties_t,
)
from driver_layer.ze.types import ze_memory_type_t as ze_memory_type_t
