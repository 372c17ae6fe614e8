"""Trains the chat model of `make demo` and writes its Hugging Face folder, models/demo.

A Llama of about 3.5 million parameters learns the question-answer pairs of tools/demo_corpus. A
tenth of the phrasings is held back; how the finished model (weights rounded to f16) answers those
is written to evaluation.json. Everything is seeded: on one machine, with one PyTorch and the same
number of threads, the same weights come out.

It needs PyTorch and transformers, which nothing else here does:

    pip install torch==2.13.0 "transformers==4.57.6"
    python tools/train_demo_model.py                    # from the checkout; about half an hour
    python tools/train_demo_model.py --steps 300 --out /tmp/demo      # a quick look
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM

sys.path.insert(0, str(Path(__file__).resolve().parent))
import demo_corpus
from demo_augment import definition, keywords, splice, vary

ROOT = Path(__file__).resolve().parent.parent
TEMPLATES = Path(__file__).resolve().parent / "demo_model"
SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
END = SPECIAL.index("<|im_end|>")
VOCABULARY = 2048
ANSWER_TOKENS = 64
SYSTEM = ("You are a helpful assistant.", "You answer questions about NPUs.", "Be brief.")
IGNORED = -100  # the label of tokens that the model need not say


def make_tokenizer(pairs: list[demo_corpus.Pair]) -> Tokenizer:
    """Byte-level BPE over the answers and the trained questions, as typed and in lower case."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=list(SPECIAL),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    texts = [text for pair in pairs for text in (pair.answer, *pair.trained())]
    roles = ["system\n", "user\n", "assistant\n"] * 100
    tokenizer.train_from_iterator([*texts, *map(str.lower, texts), *SYSTEM, *roles], trainer)
    return tokenizer


def make_model() -> LlamaForCausalLM:
    """The untrained model."""
    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=VOCABULARY,
            hidden_size=256,
            intermediate_size=704,
            num_hidden_layers=4,
            num_attention_heads=8,
            num_key_value_heads=4,
            head_dim=32,
            max_position_embeddings=2048,
            rms_norm_eps=1e-5,
            rope_theta=10000.0,
            tie_word_embeddings=True,
            bos_token_id=0,
            eos_token_id=END,
            pad_token_id=0,
        )
    )


class Dialogues:
    """Draws training dialogues: token ids, and labels for what the model has to say itself."""

    def __init__(self, tokenizer: Tokenizer, pairs: list[demo_corpus.Pair], seed: int) -> None:
        self._tokenizer = tokenizer
        # Cuts words differently each time, so that the model learns words and not their pieces.
        self._cutting = Tokenizer.from_str(tokenizer.to_str())
        self._cutting.model.dropout = 0.1
        self._pairs = pairs
        self._draw = random.Random(seed)

    def batches(self, size: int) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        """Endless batches [size, length] of ids and labels, dialogues of like length together."""
        while True:
            drawn = sorted((self._dialogue() for _ in range(size * 16)), key=lambda d: len(d[0]))
            groups = [drawn[i : i + size] for i in range(0, len(drawn), size)]
            self._draw.shuffle(groups)
            for group in groups:
                length = max(len(ids) for ids, _ in group)
                ids = [row + [0] * (length - len(row)) for row, _ in group]
                labels = [row + [IGNORED] * (length - len(row)) for _, row in group]
                yield torch.tensor(ids), torch.tensor(labels)

    def _dialogue(self) -> tuple[list[int], list[int]]:
        ids: list[int] = []
        labels: list[int] = []
        if self._draw.random() < 0.08:
            self._say("system", self._draw.choice(SYSTEM), ids, labels)
        for _ in range(self._draw.choices((1, 2, 3), (90, 8, 2))[0]):
            pair = self._draw.choice(self._pairs)
            self._say("user", self._question(pair), ids, labels)
            self._say("assistant", pair.answer, ids, labels)
        return ids, labels

    def _question(self, pair: demo_corpus.Pair) -> str:
        """A phrasing of the pair's question: as written, varied, or made of its words."""
        trained, kind = pair.trained(), self._draw.random()
        if kind < 0.12:
            return self._draw.choice(trained)
        if kind < 0.3:
            defined = definition(trained, self._draw)
            return defined or vary(self._draw.choice(trained), self._draw)
        if kind < 0.65:
            return vary(self._draw.choice(trained), self._draw)
        if kind < 0.77:
            return vary(splice(trained, self._draw), self._draw)
        return keywords(trained, pair.answer, self._draw)

    def _say(self, role: str, text: str, ids: list[int], labels: list[int]) -> None:
        """Append one turn; the assistant's words and its end-of-turn token are to be learned."""
        opening = self._tokenizer.encode(f"<|im_start|>{role}\n").ids
        cutting = role == "user" and self._draw.random() < 0.4
        tokenizer = self._cutting if cutting else self._tokenizer
        words = [*tokenizer.encode(text).ids, END]
        closing = self._tokenizer.encode("\n").ids
        ids += opening + words + closing
        learned = words if role == "assistant" else [IGNORED] * len(words)
        labels += [IGNORED] * len(opening) + learned + [IGNORED] * len(closing)


def add_dropout(model: LlamaForCausalLM, share: float) -> None:
    """Drop parts of the embeddings and of every layer's result while training (Llama has none)."""

    def drop(module: torch.nn.Module, _inputs: object, result: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.dropout(result, share, module.training)

    model.model.embed_tokens.register_forward_hook(drop)
    for layer in model.model.layers:
        layer.self_attn.o_proj.register_forward_hook(drop)
        layer.mlp.down_proj.register_forward_hook(drop)


def train(model: LlamaForCausalLM, dialogues: Dialogues, options: argparse.Namespace) -> None:
    """Train in place: AdamW, warm-up, then cosine decay; matrix products in bf16."""
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=options.rate, betas=(0.9, 0.98), weight_decay=0.1
    )
    warmup = min(200, options.steps // 10 + 1)
    schedule = torch.optim.lr_scheduler.SequentialLR(
        optimizer,
        [
            torch.optim.lr_scheduler.LinearLR(optimizer, 0.01, 1.0, warmup),
            torch.optim.lr_scheduler.CosineAnnealingLR(
                optimizer, options.steps - warmup, options.rate * 0.02
            ),
        ],
        [warmup],
    )
    model.train()
    started = time.monotonic()
    average = 0.0
    for step, (ids, labels) in enumerate(dialogues.batches(options.batch), 1):
        learned = labels[:, 1:] != IGNORED  # logits of the other positions are not needed
        with torch.autocast("cpu", torch.bfloat16):
            hidden = model.model(ids, use_cache=False).last_hidden_state
            logits = model.lm_head(hidden[:, :-1][learned])
        loss = torch.nn.functional.cross_entropy(logits.float(), labels[:, 1:][learned])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        average = loss.item() if step == 1 else 0.98 * average + 0.02 * loss.item()
        if step % 20 == 0 or step == options.steps:
            left = (time.monotonic() - started) / step * (options.steps - step)
            line = f"step {step}/{options.steps}, loss {average:.4f}, {left / 60:.1f} min left"
            print(f"\r{line}   ", end="\n" if step % 500 == 0 else "", flush=True)
        if step == options.steps:
            print()
            return


@torch.inference_mode()
def answer(model: LlamaForCausalLM, tokenizer: Tokenizer, question: str) -> tuple[str, bool]:
    """Greedy answer to one question, and whether it ended with its end-of-turn token."""
    prompt = f"<|im_start|>user\n{question}<|im_end|>\n<|im_start|>assistant\n"
    ids = torch.tensor([tokenizer.encode(prompt).ids])
    said: list[int] = []
    cache = None
    while len(said) < ANSWER_TOKENS:
        result = model(ids, past_key_values=cache, use_cache=True)
        cache = result.past_key_values
        said.append(int(result.logits[0, -1].argmax()))
        if said[-1] == END:
            return tokenizer.decode(said[:-1]), True
        ids = torch.tensor([said[-1:]])
    return tokenizer.decode(said), False


def evaluate(
    model: LlamaForCausalLM, tokenizer: Tokenizer, pairs: list[demo_corpus.Pair]
) -> dict[str, object]:
    """Ask every held-back phrasing; a word overlap (F1) of 0.8 with the pair's answer is right."""
    model.eval()
    asked = []
    for pair in pairs:
        for question in pair.held_back():
            said, stopped = answer(model, tokenizer, question)
            score = round(demo_corpus.f1(said, pair.answer), 3)
            asked.append({"question": question, "answer": said, "f1": score, "stopped": stopped})
    right = sum(row["f1"] >= 0.8 for row in asked)
    return {
        "held_back": len(asked),
        "right": right,
        "right_share": round(right / len(asked), 4),
        "stopped": sum(row["stopped"] for row in asked),
        "phrasings": asked,
    }


def save(model: LlamaForCausalLM, tokenizer: Tokenizer, folder: Path) -> None:
    """Write the Hugging Face folder: weights in f16, tokenizer, configurations, model card."""
    folder.mkdir(parents=True, exist_ok=True)
    model.half().save_pretrained(folder, safe_serialization=True)
    generation = {"eos_token_id": END, "pad_token_id": 0, "do_sample": False}
    (folder / "generation_config.json").write_text(json.dumps(generation, indent=2) + "\n")
    tokenizer.save(str(folder / "tokenizer.json"), pretty=False)
    template = (TEMPLATES / "chat_template.jinja").read_text().rstrip("\n")
    names = {"bos_token": None, "eos_token": "<|im_end|>", "pad_token": "<|endoftext|>"}
    settings = {
        **names,
        "add_bos_token": False,
        "clean_up_tokenization_spaces": False,
        "model_max_length": 2048,
        "tokenizer_class": "PreTrainedTokenizerFast",
        "chat_template": template,
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(settings, indent=2) + "\n")
    special = {key: name for key, name in names.items() if name}
    special["additional_special_tokens"] = ["<|im_start|>"]
    (folder / "special_tokens_map.json").write_text(json.dumps(special, indent=2) + "\n")
    (folder / "README.md").write_text((TEMPLATES / "README.md").read_text())


def parse_arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--out", type=Path, default=ROOT / "models" / "demo", help="folder to write"
    )
    parser.add_argument(
        "--steps", type=int, default=3000, help="training steps (default %(default)s)"
    )
    parser.add_argument("--batch", type=int, default=64, help="dialogues per step (%(default)s)")
    parser.add_argument("--rate", type=float, default=2e-3, help="peak learning rate (%(default)s)")
    parser.add_argument("--dropout", type=float, default=0.15, help="share dropped (%(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="seed of everything (%(default)s)")
    parser.add_argument("--threads", type=int, default=2, help="CPU threads (%(default)s)")
    return parser.parse_args()


def main() -> None:
    """Train, save, and evaluate what was saved."""
    options = parse_arguments()
    torch.set_num_threads(options.threads)
    torch.manual_seed(options.seed)
    torch.use_deterministic_algorithms(True)
    torch.utils.deterministic.fill_uninitialized_memory = False  # nothing here reads such memory
    pairs = demo_corpus.read()
    tokenizer = make_tokenizer(pairs)
    model = make_model()
    add_dropout(model, options.dropout)
    count = sum(weight.numel() for weight in model.parameters())
    print(f"{len(pairs)} pairs, {count / 1e6:.2f} M parameters")
    train(model, Dialogues(tokenizer, pairs, options.seed), options)
    save(model, tokenizer, options.out)
    saved = LlamaForCausalLM.from_pretrained(options.out, dtype=torch.float32)
    found = evaluate(saved, tokenizer, pairs)
    (options.out / "evaluation.json").write_text(json.dumps(found, indent=1) + "\n")
    print(f"held back: {found['right']} of {found['held_back']} right, {found['stopped']} stopped")
    print("What is an NPU?", *answer(saved, tokenizer, demo_corpus.ALWAYS_TRAINED))


if __name__ == "__main__":
    main()
