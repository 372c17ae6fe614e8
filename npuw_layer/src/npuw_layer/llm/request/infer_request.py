"""A request: what OpenVINO's ``InferRequest`` offers, for one conversation with an LLM."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from npuw_layer.api.given_inputs import Given, Inputs, input_name
from npuw_layer.api.model_port import OpenPort, PortKey
from npuw_layer.api.request import Request
from npuw_layer.api.results import Results
from npuw_layer.api.transfers import Transfers
from npuw_layer.backends.protocols import (
    Array,
    ability,
)
from npuw_layer.backends.tensor import Tensor
from npuw_layer.errors import TensorError
from npuw_layer.execution.devices.report import devices_report
from npuw_layer.execution.offload.report import ReportsOffload
from npuw_layer.llm.compiled import CompiledLLM
from npuw_layer.llm.request.conversation import Conversation
from npuw_layer.llm.request.input_ports import InputPorts
from npuw_layer.llm.request.logits_port import LogitsPort
from npuw_layer.llm.request.model_ports import inputs_of, outputs_of
from npuw_layer.llm.request.state_file import load_state, save_state
from npuw_layer.llm.request.stored_tokens import StoredTokensState
from npuw_layer.llm.request.variable_state import RequestState, VariableState
from npuw_layer.remote.tensor import AnyTensor, RemoteTensor
from npuw_layer.tensors.cache_axes import CacheAxes
from npuw_layer.tensors.names import LOGITS, STORED_TOKENS


@dataclass(frozen=True, slots=True)
class RequestMemory:
    """Bytes of device memory."""

    kv_cache: int
    weights: int
    adapters: int


class InferRequest(Request):
    """One conversation; two requests of a compiled model share nothing that changes results.

    Args:
        compiled: the static models.
    """

    def __init__(self, compiled: CompiledLLM) -> None:
        super().__init__(compiled.options)
        self._compiled = compiled
        self._conversation = self._make_conversation()
        self.transfers = Transfers()
        """What was copied, and what was written in place, in bytes."""
        self._inputs = self._make_inputs()
        self._logits = LogitsPort(compiled, self.transfers.of(LOGITS))
        self._input_ports, self._output_ports = self._make_ports()

    @property
    def model_inputs(self) -> Sequence[OpenPort]:
        """Its inputs, as it was exported with."""
        return self._input_ports

    @property
    def model_outputs(self) -> Sequence[OpenPort]:
        """Its outputs, as it was exported with."""
        return self._output_ports

    def infer(
        self, inputs: Inputs = None, share_inputs: bool = False, share_outputs: bool = False
    ) -> Results:
        """Run on new tokens.

        Args:
            inputs: input_ids i64 [1, n], or inputs_embeds f32 [1, n, width], whichever the model
                has; attention_mask i64 [1, stored + n]; position_ids i64 [1, n], continuing what
                is stored, or earlier to forget what follows. Those of several axes, i64
                [3 or 4, 1, n] (M-RoPE), do not count tokens: how many of those that are stored
                stay, the mask says. If the model has them: token_type_ids i64 [1, n];
                visual_pos_masks boolean [1, n], with deepstack_visual_embeds f32 [levels, as many
                as are marked, width], any number if none is; per_layer_inputs f32 [1, n, layers,
                width]; hidden_states f32 [1, n, width]; eagle_tree_mask f32 or f16 [1, 1, n,
                stored + n], or less that ends with the last new token, which is added to scores.
                beam_idx is ignored. By name, number or port, or in the order of ``model_inputs``;
                arrays or remote tensors; what is missing is taken from ``set_tensor``.
            share_inputs: makes no difference: the caller waits until they were read.
            share_outputs: makes no difference: each inference makes arrays of its own.

        Returns:
            logits f32 [1, 1, V] of the last token; after a generate step that takes several,
            [1, n, V]; left out if they are set to a remote tensor. And what else the model gives of
            each of the tokens, e.g. last_hidden_state f32 [1, n, width].

        Raises:
            TensorError: an input is missing or does not fit, or an id is not in the vocabulary.
            RemoteError: the memory of a remote tensor was freed.
            PromptTooLong, CapacityError: the conversation is too long.
            RequestBusy: the request is running.
            InferenceCancelled: ``cancel`` was called meanwhile.
            DeviceError: the device failed.
        """

        def once() -> Results:
            self._infer(self._given(inputs))
            return self._results(share_outputs)

        return self._run.run(once)

    def start_async(
        self, inputs: Inputs = None, userdata: Any = None, share_inputs: bool = False
    ) -> None:
        """Begin one inference on the request's own thread; ``wait`` ends it.

        Args:
            inputs: as for ``infer``.
            userdata: for the callback, in place of what ``set_callback`` was given.
            share_inputs: read arrays where they lie, while it runs, instead of copies.

        Raises:
            TensorError: what is given are no tensors, or more than there are inputs.
            RequestBusy: the request is running; the rest is raised by ``wait``.
        """
        given: Given = {}

        def read() -> None:
            given.update(self._given(inputs, shared=share_inputs))

        self._start(lambda: self._infer(given), userdata, read)

    def cancel(self) -> None:
        """Give up the running inference before its next chunk or token.

        ``wait``, or ``infer``, then raises InferenceCancelled. What was stored so far stays:
        positions say how to go on, or ``reset_state``.
        """
        self._run.cancel()

    def set_tensor(self, key: PortKey, tensor: AnyTensor, /) -> None:
        """Set an input, or what logits are written to, for the next inferences.

        Inputs are read, and copied to the programs' padded ones, when an inference runs. Logits are
        written right into a remote tensor of the same Core, f32 [1, n, V], if n is what a program
        makes (1 always is); otherwise they are copied there. An inference that gives another number
        of them is refused. ``transfers`` counts it all.

        Raises:
            TensorError: there is no such input or output, or logits do not fit.
            RemoteError: it is a remote tensor for the other side.
            RequestBusy: the request is running.
        """
        self._run.check_idle()
        name = self._name_of(key)
        if name == LOGITS:
            self._logits.set(tensor)
        else:
            self._inputs.set(name, tensor)

    def get_tensor(self, key: PortKey, /) -> Tensor | RemoteTensor:
        """Give what an input or the logits were set to, or an output of the last inference.

        Raises:
            TensorError: there is none of that name.
            RequestBusy: the request is running.
        """
        self._run.check_idle()
        name = self._name_of(key)
        rows = self._conversation.reader.gathered.value(name)
        if rows is not None:
            return Tensor(rows)
        found = self._logits.tensor if name == LOGITS else self._inputs.get(name)
        if found is None:
            raise TensorError(f"no tensor {name!r} yet")
        return found

    def query_state(self) -> Sequence[RequestState]:
        """Return the variables: each layer's K and V, then those of traits.

        Among these is npuw_stored_tokens_state, which is set with
        NPUW_LLM_ENABLE_CONTINUOUS_PREFILL alone.
        """
        self._run.check_idle()
        talk, check = self._conversation, self._run.check_idle
        options = self._compiled.options
        axes = CacheAxes(options.batch_dim, options.seq_len_dim)
        caches = [VariableState(name, talk, check, axes) for name in talk.cache.names]
        stored = StoredTokensState(STORED_TOKENS, talk, check)
        first, last = (talk.parts.variable_states(talk, check, behind) for behind in (False, True))
        return [*caches, *first, stored, *last]

    def save_state(self, path: str | Path, /) -> None:
        """Keep the conversation in a file; ``load_state`` of a request goes on with it.

        Adapters are not in the file; they are to be set again, before it is loaded.

        Raises:
            RequestBusy: the request is running.
            NpuwFault: the file cannot be written.
        """
        self._run.check_idle()
        save_state(self._conversation, Path(path))

    def load_state(self, path: str | Path, /) -> None:
        """Go on with a conversation of a file, by a request of the same model.

        Raises:
            RequestBusy: the request is running.
            StateError: the file is damaged, of another model, of other adapters than are set, or
                too long; nothing has changed.
            NpuwFault: it cannot be read.
        """
        self._run.check_idle()
        load_state(self._conversation, Path(path))

    def reset_state(self) -> None:
        """Begin a new conversation; settings such as adapters stay until their own reset.

        Raises:
            RequestBusy: the request is running.
        """
        self._run.check_idle()
        self._conversation.reset()

    def memory(self) -> RequestMemory:
        """Device memory of the conversation's caches and adapters, and of the shared weights."""
        talk = self._conversation
        caches, adapters = (talk.parts.nbytes(persists) for persists in (False, True))
        return RequestMemory(talk.cache.nbytes + caches, self._compiled.bank.nbytes, adapters)

    def execution_report(self) -> Mapping[str, str]:
        """How the last inferences ran, for people."""
        talk, plan = self._conversation, self._compiled.plan
        ladder = "/".join(map(str, plan.capacities))
        report = {
            "blobs": str(self._compiled.origin),
            "prefill": " + ".join(talk.reader.prefill.counts.prefills) or "none",
            "KV variant": f"{plan.capacities[talk.reader.generate.variant]} of {ladder}",
            "KV copied": _described_copies(talk.cache.copied_bytes),
        }
        if self._compiled.prefixes is not None:
            report["prefix cache"] = f"{talk.reader.prefill.counts.cached_tokens} tokens"
        offload = ability(self._compiled.device, ReportsOffload)
        if offload is not None:
            report |= offload.offload_report().described()
        report |= devices_report(self._compiled.submodels)
        if self._inputs.were_remote or isinstance(self._logits.tensor, RemoteTensor):
            report |= self.transfers.report()
        return report

    def _make_conversation(self) -> Conversation:
        return Conversation(self._compiled, self._run.check_wanted)

    def _make_inputs(self) -> InputPorts:
        compiled = self._compiled
        return InputPorts(
            compiled.token_inputs, self.transfers, compiled.traits, compiled.vocabulary
        )

    def _make_ports(self) -> tuple[Sequence[OpenPort], Sequence[OpenPort]]:
        return inputs_of(self._compiled), outputs_of(self._compiled)

    def _values(self, shared: bool) -> dict[str, Array]:
        del shared  # each inference makes arrays of its own
        values = self._logits.value
        logits = {} if values is None else {LOGITS: values}
        return logits | self._conversation.reader.gathered.values()

    def _name_of(self, key: PortKey) -> str:
        """The name of an input or output."""
        if isinstance(key, int):
            raise TensorError(
                f"{key} may be an input or an output; use set_input_tensor and the like"
            )
        every = (*self.model_inputs, *self.model_outputs)
        return input_name(key, every)

    def _infer(self, given: Given) -> None:
        tokens, talk = self._inputs.take(given), self._conversation
        target = self._logits.target(talk.rows_of(tokens))
        self._logits.take(talk.infer(tokens, target))
        self.transfers.inferences += 1


def _described_copies(nbytes: int) -> str:
    """Describe the bytes copied into the cache: each generated token adds its row by a copy."""
    return f"{nbytes} bytes (rows of generated tokens included)" if nbytes else "0 bytes"
