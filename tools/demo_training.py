"""Training of a small Llama on dialogues: the objective, and the steps."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import numpy as np
import torch
from demo_dialogues import IGNORED, Batch
from tqdm import tqdm
from transformers import LlamaForCausalLM


def add_dropout(model: LlamaForCausalLM, share: float, seed: int) -> None:
    """Add dropout to the embeddings and to every layer's result in training (Llama has none).

    NumPy draws the masks as bytes: PyTorch's own dropout draws one number at a time, an eighth of
    the training time. The share is thereby rounded to a multiple of 1/256.
    """
    bound = round(256 * share)
    scale = 256 / (256 - bound)
    draw = np.random.Generator(np.random.SFC64(seed))

    def drop(module: torch.nn.Module, _inputs: object, result: torch.Tensor) -> torch.Tensor:
        if not module.training:
            return result
        drawn = torch.from_numpy(draw.integers(0, 256, result.shape, dtype=np.uint8))
        return result * ((drawn >= bound).to(result.dtype) * scale)

    model.model.embed_tokens.register_forward_hook(drop)
    for layer in model.model.layers:
        layer.self_attn.o_proj.register_forward_hook(drop)
        layer.mlp.down_proj.register_forward_hook(drop)


def prepare(model: LlamaForCausalLM, dropout: float, seed: int) -> None:
    """Prepare a model for training."""
    model.set_attn_implementation("eager")  # several times faster for short dialogues
    add_dropout(model, dropout, seed)
    model.train()


class Objective:
    """Training objective: to generate the answers, and to recognise the answer to a question.

    Recognition only helps in training: a linear layer, which is dropped afterwards, predicts the
    pair's number from the state at which the answer begins.
    """

    def __init__(self, model: LlamaForCausalLM, pairs: int, recognising: float) -> None:
        self._model = model
        self._recognising = recognising
        self._recognise = torch.nn.Linear(model.config.hidden_size, pairs)

    def parameters(self) -> list[torch.nn.Parameter]:
        """Return the trained parameters."""
        return [*self._model.parameters(), *self._recognise.parameters()]

    def __call__(self, batch: Batch) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the cross entropy of the answers' tokens, and the loss to minimise."""
        learned = batch.labels[:, 1:] != IGNORED  # logits of the other positions are not needed
        with torch.autocast("cpu", torch.bfloat16):
            hidden = self._model.model(batch.ids, use_cache=False).last_hidden_state
            logits = self._model.lm_head(hidden[:, :-1][learned])
        said = torch.nn.functional.cross_entropy(logits.float(), batch.labels[:, 1:][learned])
        dialogue, last, pair = batch.turns.T
        numbers = self._recognise(hidden[dialogue, last].float())
        recognised = torch.nn.functional.cross_entropy(numbers, pair)
        return said, said + self._recognising * recognised


def train(objective: Objective, batches: Iterator[Batch], steps: int, rate: float) -> None:
    """Train in place: AdamW, warm-up, then cosine decay; matmuls in bf16."""
    parameters = objective.parameters()
    optimizer = torch.optim.AdamW(parameters, lr=rate, betas=(0.9, 0.98), weight_decay=0.1)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda n: pace(n, steps))
    average = math.nan
    bar = tqdm(itertools.islice(batches, steps), total=steps, unit="step", mininterval=1)
    for batch in bar:
        said, loss = objective(batch)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        schedule.step()
        average = said.item() if math.isnan(average) else 0.98 * average + 0.02 * said.item()
        bar.set_postfix(loss=f"{average:.4f}", refresh=False)


def pace(step: int, steps: int) -> float:
    """Return the share of the peak learning rate: linear warm-up, then a cosine down to 1/50."""
    warmup = min(200, steps // 10 + 1)
    if step < warmup:
        return (step + 1) / warmup
    return 0.02 + 0.98 * (1 + math.cos(math.pi * (step - warmup) / max(steps - warmup, 1))) / 2
