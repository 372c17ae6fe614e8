"""Level Zero's system management (sysman) in Python, on the simulated NPU.

Functions have the specification's names; values come from the simulated device.
"""

from driver_layer.zes.device import zes_device_properties_t as zes_device_properties_t
from driver_layer.zes.device import zesDeviceGet as zesDeviceGet
from driver_layer.zes.device import zesDeviceGetProperties as zesDeviceGetProperties
from driver_layer.zes.device import zesDriverGet as zesDriverGet
from driver_layer.zes.device import zesInit as zesInit
from driver_layer.zes.engine import zes_engine_group_t as zes_engine_group_t
from driver_layer.zes.engine import zes_engine_handle_t as zes_engine_handle_t
from driver_layer.zes.engine import zes_engine_properties_t as zes_engine_properties_t
from driver_layer.zes.engine import zes_engine_stats_t as zes_engine_stats_t
from driver_layer.zes.engine import zesDeviceEnumEngineGroups as zesDeviceEnumEngineGroups
from driver_layer.zes.engine import zesEngineGetActivity as zesEngineGetActivity
from driver_layer.zes.engine import zesEngineGetProperties as zesEngineGetProperties
from driver_layer.zes.memory import zes_mem_handle_t as zes_mem_handle_t
from driver_layer.zes.memory import zes_mem_health_t as zes_mem_health_t
from driver_layer.zes.memory import zes_mem_loc_t as zes_mem_loc_t
from driver_layer.zes.memory import zes_mem_properties_t as zes_mem_properties_t
from driver_layer.zes.memory import zes_mem_state_t as zes_mem_state_t
from driver_layer.zes.memory import zes_mem_type_t as zes_mem_type_t
from driver_layer.zes.memory import zesDeviceEnumMemoryModules as zesDeviceEnumMemoryModules
from driver_layer.zes.memory import zesMemoryGetProperties as zesMemoryGetProperties
from driver_layer.zes.memory import zesMemoryGetState as zesMemoryGetState
from driver_layer.zes.pci import zes_pci_address_t as zes_pci_address_t
from driver_layer.zes.pci import zes_pci_properties_t as zes_pci_properties_t
from driver_layer.zes.pci import zes_pci_speed_t as zes_pci_speed_t
from driver_layer.zes.pci import zesDevicePciGetProperties as zesDevicePciGetProperties
