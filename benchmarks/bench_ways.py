"""Ways to run one language model: attention, layout of K and V, submodels, experts.

    python benchmarks/bench_ways.py MODEL [--prompt 900] [--chunk 256] [--tokens 24]

For a model without experts, expert options have no effect. Times are host times of this machine,
for a second request; K and V are bytes of device memory after a prompt of 100 tokens.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Mapping
from pathlib import Path

from bench_npuw import tell

from npuw_layer import Core
from npuw_layer.errors import NpuwError
from npuw_layer.kinds.llm.compiled_model import CompiledModel

WAYS: dict[str, Mapping[str, str]] = {
    "STATIC": {"NPUW_LLM_PREFILL_ATTENTION_HINT": "STATIC"},
    "PYRAMID": {},
    "HFA": {
        "NPUW_LLM_PREFILL_ATTENTION_HINT": "HFA",
        "NPUW_LLM_GENERATE_ATTENTION_HINT": "HFA",
    },
    "blocks of K and V": {"NPUW_LLM_ENABLE_BLOCK_BASED_KV_CACHE": "YES"},
    "V transposed": {"NPUW_LLM_OPTIMIZE_V_TENSORS": "YES"},
    "layers as submodels": {"NPUW_ONLINE_PIPELINE": "REP"},
    "experts HOST_ROUTED": {
        "NPUW_LLM_PREFILL_MOE_HINT": "HOST_ROUTED",
        "NPUW_LLM_GENERATE_MOE_HINT": "HOST_ROUTED",
    },
    "experts DEVICE_ROUTED": {"NPUW_LLM_GENERATE_MOE_HINT": "DEVICE_ROUTED"},
}


def measure(model: Path, options: Mapping[str, str], prompt: int, tokens: int) -> str:
    """Return a row of the table.

    Raises:
        NpuwError: the model cannot be run in this way.
    """
    began = time.perf_counter()
    made = Core().compile_model(model, "NPU", options)
    assert isinstance(made, CompiledModel)  # static models have no KV cache
    compile_s = time.perf_counter() - began
    first = made.create_infer_request()
    began = time.perf_counter()
    request = made.create_infer_request()
    ready_s = time.perf_counter() - began
    del first  # the first request has done the one-time work
    tell(request, range(5, 105), 0)
    stored = request.memory().kv_cache
    request.reset_state()
    read = tell(request, [5 + number % 900 for number in range(prompt)], 0)
    steps = [tell(request, [7], prompt + number) for number in range(tokens)]
    return (
        f"{compile_s:8.1f} s {ready_s:8.2f} s {stored / 1e6:8.2f} MB {read:8.3f} s "
        f"{1e3 * statistics.median(steps):8.2f} ms"
    )


def main() -> None:
    """Measure all ways that the model supports."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("model", type=Path, help="folder with a model")
    parser.add_argument(
        "--prompt", type=int, default=900, help="tokens of the prompt, at most 1024"
    )
    parser.add_argument("--chunk", type=int, default=256, help="tokens per chunk")
    parser.add_argument("--tokens", type=int, default=24, help="generated tokens")
    given = parser.parse_args()
    columns = ("compiled in", "ready in", "K and V", "prompt", "a token")
    print(f"{'':<22}" + "".join(f"{column:>11}" for column in columns))
    for name, way in WAYS.items():
        options = {"NPUW_LLM_PREFILL_CHUNK_SIZE": str(given.chunk), **way}
        try:
            print(f"{name:<22}{measure(given.model, options, given.prompt, given.tokens)}")
        except NpuwError as error:
            print(f"{name:<22}  {error}")


if __name__ == "__main__":
    main()
