"""From a Hugging Face folder to the stateful graph that the exporter would write."""

from __future__ import annotations

import re
from pathlib import Path

from xdsl.ir import SSAValue

from compiler_layer.dialects.ov import elementwise
from compiler_layer.dialects.ov.types import Shape, tensor
from compiler_layer.errors import BadModel
from compiler_layer.frontends.builder import GraphBuilder
from compiler_layer.frontends.huggingface import blocks
from compiler_layer.frontends.huggingface.config import LlamaConfig, read_config
from compiler_layer.frontends.huggingface.safetensors import StoredTensor, read_folder_tensors
from compiler_layer.model import Model

_INPUTS = (
    ("input_ids", tensor("i64", (-1, -1))),
    ("attention_mask", tensor("i64", (-1, -1))),
    ("position_ids", tensor("i64", (-1, -1))),
    ("beam_idx", tensor("i32", (-1,))),
)


def read_folder(path: str | Path) -> Model:
    """Read a Hugging Face folder of a Llama-family model.

    Args:
        path: the folder, with ``config.json`` and ``*.safetensors``.

    Raises:
        BadModel: a file or tensor is missing, broken or of another shape than the config says.
        UnsupportedModel: an architecture that is not understood.
    """
    folder = Path(path)
    config = read_config(folder)
    return _Reader(folder, config, read_folder_tensors(folder)).read()


class _Reader:
    """Builds one model."""

    def __init__(self, folder: Path, config: LlamaConfig, tensors: dict[str, StoredTensor]) -> None:
        self._folder = folder
        self._config = config
        self._tensors = tensors
        self._shapes = weight_shapes(config)
        model, arguments = Model.build(_INPUTS)
        self._model = model
        self._ids, self._attention_mask, self._positions, self._beam_idx = arguments
        self._g = GraphBuilder(model)

    def read(self) -> Model:
        g, config = self._g, self._config
        table = self._weight("model.embed_tokens.weight")
        x = g.gather(table, g.convert(self._ids, "i32"), 0, name="model.embed_tokens")
        angles = blocks.rotary(g, config, self._positions)
        caches = [self._caches(layer) for layer in range(config.num_hidden_layers)]
        mask = blocks.mask(g, self._attention_mask, caches[0][0][1], self._ids)
        for layer, (key, value) in enumerate(caches):
            x = self._layer(x, layer, blocks.Attention(angles, mask, key, value))
        x = blocks.rms_norm(g, config, x, self._weight, "model.norm")
        head = table if config.tie_word_embeddings else self._weight("lm_head.weight")
        logits = g.matmul(x, head, transpose_b=True, name="lm_head")
        self._model.set_outputs([("logits", logits)])
        return self._model

    def _caches(self, layer: int) -> tuple[tuple[str, SSAValue], tuple[str, SSAValue]]:
        key, value = (
            blocks.cache(self._g, self._config, self._ids, self._beam_idx, layer, kind)
            for kind in ("key", "value")
        )
        return key, value

    def _layer(self, x: SSAValue, layer: int, attention: blocks.Attention) -> SSAValue:
        g, config, name = self._g, self._config, f"model.layers.{layer}"
        normal = blocks.rms_norm(g, config, x, self._weight, f"{name}.input_layernorm")
        context = blocks.self_attention(
            g, config, normal, self._weight, f"{name}.self_attn", attention
        )
        x = g.op(elementwise.Add, x, context, name=f"{name}.residual_attn")
        normal = blocks.rms_norm(g, config, x, self._weight, f"{name}.post_attention_layernorm")
        hidden = blocks.mlp(g, normal, self._weight, f"{name}.mlp")
        return g.op(elementwise.Add, x, hidden, name=f"{name}.residual_mlp")

    def _weight(self, name: str) -> SSAValue:
        stored = self._tensors.get(name)
        if stored is None:
            raise BadModel(self._folder, "the checkpoint has no such tensor", name)
        expected = self._shapes[re.sub(r"^model\.(layers\.\d+\.)?", "", name)]
        if stored.shape != expected:
            raise BadModel(
                self._folder, f"is {list(stored.shape)}, the config says {list(expected)}", name
            )
        if stored.element not in ("f32", "f16", "bf16"):
            raise BadModel(self._folder, f"weights of {stored.element} are not supported", name)
        return self._g.weight(stored.view, stored.element, stored.shape, name)


def weight_shapes(config: LlamaConfig) -> dict[str, Shape]:
    """The shapes that the config gives to weights, by their names without ``model.layers.N.``."""
    hidden, inner, vocab = config.hidden_size, config.intermediate_size, config.vocab_size
    q = config.num_attention_heads * config.head_dim
    kv = config.num_key_value_heads * config.head_dim
    return {
        "embed_tokens.weight": (vocab, hidden),
        "norm.weight": (hidden,),
        "lm_head.weight": (vocab, hidden),
        "input_layernorm.weight": (hidden,),
        "post_attention_layernorm.weight": (hidden,),
        "self_attn.q_proj.weight": (q, hidden),
        "self_attn.k_proj.weight": (kv, hidden),
        "self_attn.v_proj.weight": (kv, hidden),
        "self_attn.o_proj.weight": (hidden, q),
        "mlp.gate_proj.weight": (inner, hidden),
        "mlp.up_proj.weight": (inner, hidden),
        "mlp.down_proj.weight": (hidden, inner),
    }
