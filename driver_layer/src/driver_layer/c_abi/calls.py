"""Calls from C: arguments are converted, the Python function is called, results are given back."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable
from typing import Any

from driver_layer.c_abi import adapters
from driver_layer.c_abi.description.language import Function, Table, description
from driver_layer.c_abi.handle_table import HANDLES
from driver_layer.c_abi.parameters import Numbers, place_of, reader, required_results, writer
from driver_layer.c_abi.structures import python_name, read_request
from driver_layer.errors import OutOfMemory, ZeError
from driver_layer.ze import errors
from driver_layer.ze.calls import Handle
from driver_layer.ze.driver import extension_tables
from driver_layer.ze.result import ze_result_t

LOG = logging.getLogger("driver_layer.c_abi")

Call = Callable[[Numbers], int]
"""A call by the numbers of its arguments; returns a result code, and raises nothing."""


class BoundFunction:
    """A function of the description, bound to its Python function.

    Args:
        function: the function.
        python: the Python function, which takes parameters by C's names; those that it does not
            have are checked and left out.
    """

    def __init__(self, function: Function, python: Callable[..., Any]) -> None:
        self.name = function.name
        self._python = python
        parameters = function.parameters or ()
        self._required = required_results(parameters)
        taken = inspect.signature(python).parameters
        lengths = {parameter.length for parameter in parameters}
        given = [
            parameter
            for parameter in parameters
            if parameter.way not in ("out", "count") and parameter.name not in lengths
        ]
        given.sort(key=lambda parameter: not parameter.is_handle)  # which are checked first
        self._readers = [(p.name, p.name in taken, reader(p, parameters)) for p in given]
        results = [p for p in parameters if p.way == "out" and p.name not in lengths]
        self._writers = [writer(result, parameters) for result in results]
        self._requests = [
            (place_of(result.name, parameters), result.type)
            for result in results
            if "pNext" in taken and result.type in description().structs
        ]

    def __call__(self, numbers: Numbers) -> int:
        """Call the function with the numbers of its arguments; return the result code.

        Raises:
            Exception: anything that the Python function raises.
        """
        passed = dict[str, Any]()
        handles = list[Handle]()
        for name, taken, convert in self._readers:
            value = convert(numbers)
            if taken:
                passed[name] = value
            if isinstance(value, Handle):
                handles.append(value)
        for place, name in self._required:
            errors.not_null(numbers[place], name)
        for place, kind in self._requests:
            passed["pNext"] = read_request(kind, numbers[place])
        try:
            result = self._python(**passed)
        except adapters.FailureWithResults as error:
            self._give_back(numbers, error.results)
            raise
        for handle in handles:
            if not handle.alive:
                HANDLES.forget(handle)
        return self._give_back(numbers, result)

    def _give_back(self, numbers: Numbers, result: Any) -> int:
        if not self._writers:
            return int(result) if isinstance(result, ze_result_t) else 0
        results = (result,) if len(self._writers) == 1 else result
        for write_result, value in zip(self._writers, results, strict=True):
            write_result(numbers, value)
        return 0


def guarded(function: BoundFunction) -> Call:
    """Return a call that turns every error into a result code; its text goes to the log.

    Texts of ``ZeError`` are also the thread's last error, for zeDriverGetLastErrorDescription.
    """

    def call(numbers: Numbers) -> int:
        try:
            return function(numbers)
        except ZeError as error:
            LOG.info("%s: %s", function.name, error)
            return int(error.code)
        except (MemoryError, OutOfMemory) as error:
            return _failed(function.name, error, ze_result_t.ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY)
        except (ImportError, OSError) as error:
            LOG.error("%s: %s", function.name, error)  # the machine's: no memory, no such library
            return _failed(function.name, error, ze_result_t.ZE_RESULT_ERROR_UNKNOWN)
        except BaseException as error:  # a thread that ends would leave its caller waiting
            LOG.error("%s", function.name, exc_info=error)
            return _failed(function.name, error, ze_result_t.ZE_RESULT_ERROR_UNKNOWN)

    return call


def _failed(name: str, error: BaseException, code: ze_result_t) -> int:
    """Store the text of an error that is no ``ZeError`` as the thread's last error."""
    errors.failed(code, f"{name}: {error!r}")
    return int(code)


def all_calls() -> list[Call]:
    """Return the functions of the description, by their numbers in the C source."""
    return [guarded(_bound(table, function)) for table, function in description().functions()]


def _bound(table: Table, function: Function) -> BoundFunction:
    python = getattr(adapters, function.name, None) or _python_function(table, function)
    return BoundFunction(function, python or _lacking(function.name))


def _python_function(table: Table, function: Function) -> Callable[..., Any] | None:
    if table.api:
        return python_name(function.name)
    for made in extension_tables.values():
        if type(made).__name__ == table.name:
            return getattr(made, function.name, None)
    return None


def _lacking(name: str) -> Callable[..., Any]:
    def unsupported() -> None:
        raise errors.unsupported_feature(f"{name}: this driver does not have the function")

    return unsupported
