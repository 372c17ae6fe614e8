"""Counterpart of OpenVINO's ``InferRequest`` for a language model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from npuw_layer.api.given_inputs import Given, input_name
from npuw_layer.api.model_port import OpenPort, PortKey
from npuw_layer.api.request import Request
from npuw_layer.api.transfers import Transfers
from npuw_layer.backends.protocols import Array, ability
from npuw_layer.backends.tensor import Tensor
from npuw_layer.errors import TensorError
from npuw_layer.execution.devices.report import devices_report
from npuw_layer.execution.offload.report import ReportsOffload
from npuw_layer.llm.compiled import CompiledLLM
from npuw_layer.llm.request.conversation import Conversation
from npuw_layer.llm.request.input_ports import InputPorts
from npuw_layer.llm.request.logits_port import LogitsPort
from npuw_layer.llm.request.model_ports import inputs_of, outputs_of
from npuw_layer.llm.request.rows import Rows
from npuw_layer.llm.request.state_file import load_state, save_state
from npuw_layer.llm.request.variable_state import RequestState, StoredTokensState, VariableState
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
    """A conversation, or several in the rows of a batch.

    Two requests of a compiled model share no state that changes results.

    An inference takes new tokens of one row, or of several rows with the same number of tokens.
    Rows run one after the other, each as a conversation of its own. Row b continues a copy of row
    beam_idx[b] of the last inference; after ``reset_state`` there are as many empty rows as
    beam_idx has. One row may be inferred without beam_idx.

    The inputs are input_ids i64 [1, n] or inputs_embeds f32 [1, n, width], whichever the model has;
    attention_mask i64 [1, stored + n]; and position_ids i64 [1, n], which continue the stored
    tokens, or begin earlier to rewind. With position_ids of several axes, i64 [3 or 4, 1, n]
    (M-RoPE), the mask determines how many stored tokens stay. If the model has them: token_type_ids
    i64 [1, n]; visual_pos_masks boolean [1, n], with deepstack_visual_embeds f32 [levels, marked
    tokens, width], any number of rows if no token is marked; per_layer_inputs f32 [1, n, layers,
    width]; hidden_states f32 [1, n, width]; eagle_tree_mask f32 or f16 [1, 1, n, stored + n], or
    fewer columns that end with the last new token, which is added to scores. beam_idx is i32 [1].
    With B rows, the dimension before n is B, as are those of attention_mask and beam_idx; models
    with inputs of images or token trees accept one row.

    It returns logits f32 [B, 1, V] of the last tokens, or [B, n, V] after a generate step of
    several tokens; absent if set to a remote tensor. Also the model's other outputs that follow
    tokens, e.g. last_hidden_state f32 [B, n, width].

    It raises the errors of any request (``Request.infer``), a TensorError also if an id is not in
    the vocabulary or the last inference had no row beam_idx[b], and PromptTooLong or CapacityError
    if the conversation is too long.

    Args:
        compiled: the static models.
    """

    def __init__(self, compiled: CompiledLLM) -> None:
        super().__init__(compiled.options)
        self._compiled = compiled
        self._rows = Rows(self._make_conversation(), self._run.check_wanted)
        self.transfers = Transfers()
        """Bytes copied, and bytes written in place."""
        self._inputs = self._make_inputs()
        self._logits = LogitsPort(compiled, self.transfers.of(LOGITS))
        self._input_ports, self._output_ports = self._make_ports()

    @property
    def _conversation(self) -> Conversation:
        """Conversation of row 0."""
        return self._rows.first

    @property
    def model_inputs(self) -> Sequence[OpenPort]:
        """Inputs of the model as exported."""
        return self._input_ports

    @property
    def model_outputs(self) -> Sequence[OpenPort]:
        """Outputs of the model as exported."""
        return self._output_ports

    def cancel(self) -> None:
        """Cancel the running inference before its next chunk or token.

        ``wait``, or ``infer``, then raises InferenceCancelled. Tokens stored so far stay: continue
        by positions, or call ``reset_state``. Of several rows, some may have run, and all are in
        the new order: continue with beam_idx 0, 1, 2, …
        """
        super().cancel()

    def set_tensor(self, key: PortKey, tensor: AnyTensor, /) -> None:
        """Set an input, or the tensor for logits, for the next inferences.

        An inference reads the inputs and copies them to the programs' padded inputs. The device
        writes logits directly into a remote tensor of the same Core, f32 [1, n, V], if a program
        makes n rows (one row always works); otherwise they are copied. An inference with another
        number of logits is rejected. ``transfers`` counts all bytes.

        Raises:
            TensorError: there is no such input or output, or logits do not fit the tensor.
            RemoteError: the remote tensor was made for the other direction.
            RequestBusy: the request is running.
        """
        self._run.check_idle()
        name = self._name_of(key)
        if name == LOGITS:
            self._logits.set(tensor)
        else:
            self._inputs.set(name, tensor)

    def get_tensor(self, key: PortKey, /) -> Tensor | RemoteTensor:
        """Return the tensor set for an input or the logits, or an output of the last inference.

        Raises:
            TensorError: there is no tensor of that name.
            RequestBusy: the request is running.
        """
        self._run.check_idle()
        name = self._name_of(key)
        if name != LOGITS and (rows := self._rows.outputs().get(name)) is not None:
            return Tensor(rows)
        found = self._logits.tensor if name == LOGITS else self._inputs.get(name)
        if found is None:
            raise TensorError(f"{name!r} has no value before the first inference")
        return found

    def query_state(self) -> Sequence[RequestState]:
        """Return the variables: each layer's K and V, then those of traits.

        They are the variables of row 0; adapters apply to all rows. They include
        npuw_stored_tokens_state, which is writable only with NPUW_LLM_ENABLE_CONTINUOUS_PREFILL.
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
        """Save the conversation to a file that ``load_state`` of a request continues.

        The file contains no adapters; set them again before loading it.

        Raises:
            RequestBusy: the request is running.
            StateError: the last inference had several rows.
            NpuwFault: the file cannot be written.
        """
        self._run.check_idle()
        self._rows.check_one("save_state")
        save_state(self._conversation, Path(path))

    def load_state(self, path: str | Path, /) -> None:
        """Continue a conversation from a file of the same model.

        Raises:
            RequestBusy: the request is running.
            StateError: the file is damaged, of another model, of other adapters than those set, or
                too long, or the last inference had several rows; nothing has changed.
            NpuwFault: the file cannot be read.
        """
        self._run.check_idle()
        self._rows.check_one("load_state")
        load_state(self._conversation, Path(path))

    def reset_state(self) -> None:
        """Begin a new conversation of one row, and free the memory of other rows.

        Settings such as adapters stay until their own reset.

        Raises:
            RequestBusy: the request is running.
        """
        self._run.check_idle()
        self._rows.reset()

    def memory(self) -> RequestMemory:
        """Return the device memory of caches, adapters and shared weights."""
        pool = self._rows.pool
        caches, adapters = (
            sum(one.parts.nbytes(persists) for one in pool) for persists in (False, True)
        )
        stored = sum(one.cache.nbytes for one in pool)
        return RequestMemory(stored + caches, self._compiled.bank.nbytes, adapters)

    def execution_report(self) -> Mapping[str, str]:
        """Return a readable report of the last inferences."""
        first, compiled = self._conversation, self._compiled
        prefill, copied = first.reader.prefill.counts, first.cache.copied_bytes
        capacities = compiled.plan.capacities
        ladder = "/".join(map(str, capacities))
        report = {
            "blobs": str(compiled.origin),
            "prefill": " + ".join(prefill.prefills) or "none",
            "padding": f"{prefill.padding} rows of prefill",
            "KV variant": f"{capacities[first.reader.generate.variant]} of {ladder}",
            # Each generated token's row is copied.
            "KV copied": f"{copied} bytes (rows of generated tokens included)"
            if copied
            else "0 bytes",
        }
        if len(self._rows.active) > 1:
            report["rows"] = f"{len(self._rows.active)}; the values above are of row 0"
        if compiled.prefixes is not None:
            report["prefix cache"] = f"{prefill.cached_tokens} tokens"
        offload = ability(compiled.device, ReportsOffload)
        if offload is not None:
            report |= offload.offload_report().described()
        report |= devices_report(compiled.submodels)
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
        del shared  # each inference makes its own arrays
        values = self._logits.value
        logits = {} if values is None else {LOGITS: values}
        return logits | self._rows.outputs()

    def _name_of(self, key: PortKey) -> str:
        """Return the name of an input or output."""
        if isinstance(key, int):
            raise TensorError(
                f"{key} names an input and an output; use set_input_tensor or a similar method"
            )
        every = (*self.model_inputs, *self.model_outputs)
        return input_name(key, every)

    def _infer(self, given: Given) -> None:
        sources = self._inputs.sources(given)
        if sources == (0,) and len(self._rows.active) == 1:
            tokens, talk = self._inputs.take(given), self._conversation
            target = self._logits.target(talk.rows_of(tokens))
            self._logits.take(talk.infer(tokens, target))
        else:
            rows = self._inputs.take_rows(given, len(sources))
            self._logits.target(self._rows.check(sources, rows), len(sources))  # before a row runs
            self._logits.take(self._rows.infer(sources, rows))
        self.transfers.inferences += 1
