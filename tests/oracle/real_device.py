"""Cases for OpenVINO's real NPU plugin on the simulated device; run by test_real_plugin_device.py.

Each case returns what the test compares, in JSON. The process must have been started in the
environment of npu-run, as the plugin looks for a device once per process.
"""

from __future__ import annotations

import io
import json
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
from openvino import opset6, opset13
from openvino.op.util import Variable, VariableInfo

core = ov.Core()
X = np.linspace(-1, 1, 32, dtype=np.float32).reshape(2, 16)


def matmul(scale: float = 1.0, width: int = 16) -> ov.Model:
    x = opset13.parameter([2, width], np.float32, name="x")
    weights = np.random.default_rng(1).standard_normal((width, 8)).astype(np.float32)
    product = opset13.matmul(x, opset13.constant(scale * weights), False, False)
    product.set_friendly_name("product")
    return ov.Model([opset13.result(opset13.relu(product))], [x], "matmul")


def stateful() -> ov.Model:
    """Sum of all inputs so far."""
    info = VariableInfo()
    info.data_shape, info.data_type = ov.PartialShape([1, 4]), ov.Type.f32
    info.variable_id = "sum"
    variable = Variable(info)
    x = opset13.parameter([1, 4], np.float32, name="x")
    zeros = opset13.constant(np.zeros((1, 4), np.float32))
    total = opset13.add(opset6.read_value(zeros, variable), x)
    sinks = [opset6.assign(total, variable)]
    return ov.Model([opset13.result(total)], sinks, [x], "stateful")


def difference(found: Any, scale: float = 1.0) -> float:
    """Return how far an output is from the CPU plugin's for X, relative to its largest value."""
    expected = core.compile_model(matmul(scale), "CPU")(X)[0]
    return float(np.abs(found - expected).max() / np.abs(expected).max())


def devices() -> Any:
    properties = ("FULL_DEVICE_NAME", "DEVICE_ARCHITECTURE", "DEVICE_UUID")
    found = {name: str(core.get_property("NPU", name)) for name in properties}
    gops = core.get_property("NPU", "DEVICE_GOPS")
    return core.available_devices, found, float(max(gops.values()))


def inference() -> Any:
    return difference(core.compile_model(matmul(), "NPU")(X)[0])


def state() -> Any:
    request = core.compile_model(stateful(), "NPU").create_infer_request()
    ones, found = np.ones((1, 4), np.float32), list[float]()
    for _ in range(3):
        found.append(float(request.infer({0: ones})[0][0, 0]))
    request.reset_state()
    found.append(float(request.infer({0: ones})[0][0, 0]))
    request.query_state()[0].state = ov.Tensor(5 * ones)
    found.append(float(request.infer({0: ones})[0][0, 0]))
    return found


def asynchronous() -> Any:
    queue = ov.AsyncInferQueue(core.compile_model(matmul(), "NPU"), 8)
    found: dict[int, Any] = {}
    queue.set_callback(lambda done, n: found.update({n: done.get_output_tensor(0).data.copy()}))
    for number in range(32):
        queue.start_async({0: number * X}, number)
    queue.wait_all()
    one = found[1]
    return len(found), max(float(np.abs(found[n] - n * one).max()) for n in range(32))


def exported() -> Any:
    """Export a model, import it, and import its raw blob."""
    compiled = core.compile_model(matmul(), "NPU")
    content = compiled.export_model()
    blob = content if isinstance(content, bytes) else bytes(content.read())
    imported = core.import_model(io.BytesIO(blob), "NPU")
    return difference(imported(X)[0])


def cached() -> Any:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.xml")
        ov.save_model(matmul(), path, compress_to_fp16=False)
        options = {"CACHE_DIR": folder}
        outputs = [core.compile_model(path, "NPU", options)(X)[0] for _ in range(2)]
        return len(list(Path(folder).glob("*.blob"))), difference(outputs[1])


def queried() -> Any:
    return core.query_model(matmul(), "NPU")


def profiled() -> Any:
    request = core.compile_model(matmul(), "NPU", {"PERF_COUNT": "YES"}).create_infer_request()
    request.infer({0: X})
    return [
        (layer.node_name, layer.node_type, layer.real_time.total_seconds())
        for layer in request.get_profiling_info()
    ]


def host_tensors() -> Any:
    """Tensors of the device's context, and pages that are imported without a copy."""
    request = core.compile_model(matmul(), "NPU").create_infer_request()
    tensor = core.get_default_context("NPU").create_host_tensor(ov.Type.f32, ov.Shape([2, 16]))
    tensor.data[:] = X
    request.set_input_tensor(0, tensor)
    request.infer()
    return difference(request.get_output_tensor(0).data)


def many_tensors() -> Any:
    """Other tensors in each inference: the recorded list is changed, not recorded again."""
    request = core.compile_model(matmul(), "NPU").create_infer_request()
    kept = [X.copy() for _ in range(50)]
    return max(difference(request.infer({0: each})[0]) for each in kept)


def regions() -> Any:
    """Regions of larger tensors, at two places; the device reads and writes them without copies."""
    model = matmul()
    (result,) = model.get_results()
    result.set_friendly_name("y")
    options = {"NPU_ENABLE_STRIDES_FOR": "x,y"}
    request = core.compile_model(model, "NPU", options).create_infer_request()
    context, found = core.get_default_context("NPU"), list[float]()
    for begin in ((1, 3), (4, 0)):
        tensors = [context.create_host_tensor(ov.Type.f32, ov.Shape([8, 32])) for _ in range(2)]
        regions = [
            ov.Tensor(whole, ov.Coordinate(begin), ov.Coordinate([begin[0] + 2, begin[1] + width]))
            for whole, width in zip(tensors, (16, 8), strict=True)
        ]
        rows = slice(begin[0], begin[0] + 2)
        tensors[1].data[:] = 7
        tensors[0].data[rows, begin[1] : begin[1] + 16] = X
        request.set_input_tensor(regions[0])
        request.set_output_tensor(regions[1])
        request.infer()
        place = (rows, slice(begin[1], begin[1] + 8))
        found.append(difference(tensors[1].data[place]))
        tensors[1].data[place] = 7
        found.append(float(np.abs(tensors[1].data - 7).max()))
    return found


def compiled_while_another_infers() -> Any:
    compiled, go_on, found = core.compile_model(matmul(), "NPU"), threading.Event(), list[float]()
    expected = compiled(X)[0].copy()

    def infer() -> None:
        request = compiled.create_infer_request()
        while not go_on.is_set():
            found.append(float(np.abs(request.infer({0: X})[0] - expected).max()))

    threads = [threading.Thread(target=infer) for _ in range(3)]
    for thread in threads:
        thread.start()
    widths = [core.compile_model(matmul(1, width), "NPU") for width in (16, 32, 48)]
    go_on.set()
    for thread in threads:
        thread.join()
    return len(widths), bool(found), max(found)


def refused() -> Any:
    """A model that the compiler refuses: the user reads why."""
    x = opset13.parameter([-1, -1], np.float32, name="x")
    try:
        core.compile_model(ov.Model([opset13.result(opset13.relu(x))], [x], "dynamic"), "NPU")
    except RuntimeError as error:
        return str(error)
    return ""


CASES: tuple[Callable[[], Any], ...] = (
    *(devices, inference, state, asynchronous, exported, cached, queried, profiled),
    *(host_tensors, many_tensors, regions, compiled_while_another_infers, refused),
)

if __name__ == "__main__":
    left = core.compile_model(matmul(), "NPU").create_infer_request()  # outlives the interpreter
    sys.stdout.write(json.dumps({case.__name__: case() for case in CASES}))
