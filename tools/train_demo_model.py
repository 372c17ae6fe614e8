"""Train the chat model of `make demo`, and write its Hugging Face folder, models/demo.

A Llama of about 3.5 million parameters learns the question-answer pairs of tools/demo_corpus. A
tenth of the phrasings is held back; evaluation.json has the final model's answers to them (weights
rounded to f16). Everything is seeded: one machine with one PyTorch version and one number of
threads always produces the same weights.

Needs PyTorch and transformers, which only such scripts need:

    pip install torch==2.13.0 "transformers==4.57.6"
    python tools/train_demo_model.py                # from the checkout; about 90 minutes
    python tools/train_demo_model.py --steps 300 --out /tmp/demo  # a quick look
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM

sys.path.insert(0, str(Path(__file__).resolve().parent))
import demo_corpus
from demo_dialogues import CONVERSATIONS, END, QUESTIONS, SPECIAL, SYSTEM, Dialogues
from demo_training import Objective, prepare, train

ROOT = Path(__file__).resolve().parent.parent
TEMPLATES = Path(__file__).resolve().parent / "demo_model"
VOCABULARY = 2048

ANSWER_TOKENS = 80
"""Limit of generated tokens; written answers have at most 66, end-of-turn token included."""

RECOGNISING = 0.5
"""Weight of recognition relative to generation in the loss."""

CONVERSING = 0.05
"""Steps of the second course, as a share of the first's."""

CONVERSING_RATE = 0.2
"""Peak learning rate of the second course, as a share of the first's."""


def make_tokenizer(pairs: list[demo_corpus.Pair]) -> Tokenizer:
    """Train a byte-level BPE on answers and trained questions, unchanged and in lower case."""
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
    """Return the untrained model."""
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


@torch.inference_mode()
def answer(model: LlamaForCausalLM, tokenizer: Tokenizer, question: str) -> tuple[str, bool]:
    """Return the greedy answer to a question, and whether it ended with the end-of-turn token."""
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
    """Evaluate all held-back phrasings; an answer with a word overlap (F1) of 0.8 is right."""
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
    """Write the Hugging Face folder: f16 weights, tokenizer, configurations, model card."""
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


def learn_answers(
    tokenizer: Tokenizer, pairs: list[demo_corpus.Pair], options: argparse.Namespace
) -> None:
    """Run the first course, most of the training: a new model learns the answers."""
    model = make_model()
    count = sum(weight.numel() for weight in model.parameters())
    print(f"{len(pairs)} pairs, {count / 1e6:.2f} M parameters")
    prepare(model, options.dropout, options.seed)
    dialogues = Dialogues(tokenizer, pairs, options.seed, QUESTIONS)
    objective = Objective(model, len(pairs), RECOGNISING)
    train(objective, dialogues.batches(options.batch), options.steps, options.rate)
    save(model, tokenizer, options.out)


def learn_to_converse(
    tokenizer: Tokenizer, pairs: list[demo_corpus.Pair], options: argparse.Namespace
) -> None:
    """Run the second course: the saved model learns to answer the last of many questions."""
    model = LlamaForCausalLM.from_pretrained(options.out, dtype=torch.float32)
    prepare(model, options.dropout, options.seed + 1)
    dialogues = Dialogues(tokenizer, pairs, options.seed + 1, CONVERSATIONS)
    objective = Objective(model, len(pairs), recognising=0.0)
    steps = round(options.steps * CONVERSING)
    train(objective, dialogues.batches(options.batch), steps, options.rate * CONVERSING_RATE)
    save(model, tokenizer, options.out)


def parse_arguments() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--out", type=Path, default=ROOT / "models" / "demo", help="folder to write"
    )
    parser.add_argument(
        "--steps", type=int, default=10000, help="training steps (default %(default)s)"
    )
    parser.add_argument("--batch", type=int, default=64, help="dialogues per step (%(default)s)")
    parser.add_argument("--rate", type=float, default=2e-3, help="peak learning rate (%(default)s)")
    parser.add_argument("--dropout", type=float, default=0.15, help="dropout share (%(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="random seed (%(default)s)")
    parser.add_argument("--threads", type=int, default=2, help="CPU threads (%(default)s)")
    return parser.parse_args()


def main() -> None:
    """Train, save, and evaluate the saved model."""
    options = parse_arguments()
    torch.set_num_threads(options.threads)
    torch.manual_seed(options.seed)
    torch.use_deterministic_algorithms(True)
    torch.utils.deterministic.fill_uninitialized_memory = False  # never read here
    pairs = demo_corpus.read()
    tokenizer = make_tokenizer(pairs)
    learn_answers(tokenizer, pairs, options)
    learn_to_converse(tokenizer, pairs, options)
    saved = LlamaForCausalLM.from_pretrained(options.out, dtype=torch.float32)
    found = evaluate(saved, tokenizer, pairs)
    (options.out / "evaluation.json").write_text(json.dumps(found, indent=1) + "\n")
    print(f"held back: {found['right']} of {found['held_back']} right, {found['stopped']} stopped")
    print("What is an NPU?", *answer(saved, tokenizer, demo_corpus.ALWAYS_TRAINED))


if __name__ == "__main__":
    main()
