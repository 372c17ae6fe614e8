"""What the recordings of programs and of copies have in common."""

from __future__ import annotations

from driver_layer import ze


def destroy_list(commands: ze.ze_command_list_handle_t) -> None:
    """End a command list that nobody holds any more.

    One that executes is left to the driver: what it uses stays its own, and nobody else's.
    """
    try:
        ze.zeCommandListDestroy(commands)
    except ze.ZeError as error:
        code = ze.ze_result_t(error.code)
        if code is not ze.ze_result_t.ZE_RESULT_ERROR_HANDLE_OBJECT_IN_USE:
            raise
