"""Level Zero in Python, on the simulated NPU.

Functions have the specification's names. They return values that C functions write through
pointers, and raise ``ZeError`` with any result code other than ZE_RESULT_SUCCESS.

The interface has all names of the specification and of the NPU's extensions that its modules
define, which begin with ``ze`` or ``ZE``; and beside them ``ZeError``,
``GraphCreationError``, ``Memory``, ``UINT64_MAX``, ``simulated_driver``, ``serve_host`` and
the names of the extensions, such as ``GRAPH_EXTENSION``.
"""

from driver_layer.errors import ZeError as ZeError

from .command_list import *
from .command_queue import *
from .context import *
from .device import *
from .device_types import *
from .driver import *
from .event import *
from .external_memory import *
from .graph import *
from .graph_table import *
from .graph_table.compiler_queries import *
from .graph_table.creation import *
from .graph_types import *
from .immediate_list import *
from .ipc import *
from .list_commands import *
from .memory import *
from .mutable_list import *
from .npu_extensions import *
from .profiling_data import *
from .profiling_extension import *
from .queue_types import *
from .result import *
from .runtime_requirements import *
from .types import *
