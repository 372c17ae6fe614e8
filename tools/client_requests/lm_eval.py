"""lm-evaluation-harness: scores of continuations, and texts.

It gets ids from a tokenizer of the model's, for which bytes stand here.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from lm_eval.api.instance import Instance
from lm_eval.models.openai_completions import LocalChatCompletion, LocalCompletionsAPI

CLIENT, DISTRIBUTION = "lm-eval", "lm_eval"
UNTIL = {"until": ["\n\n", "Question:", "</s>", "<|im_end|>", "Q:"], "max_gen_toks": 8}


class _Bytes:
    """Tokenizer of bytes, above the special tokens of the toy."""

    eos_token = "<eos>"
    eos_token_id = 2
    bos_token_id = 1

    def __call__(self, text: Any, **_: Any) -> Any:
        one = isinstance(text, str)
        ids = self.encode(text) if one else [self.encode(each) for each in text]
        return SimpleNamespace(input_ids=ids)

    def encode(self, text: str, **_: Any) -> list[int]:
        return [byte + 6 for byte in text.encode()]

    def decode(self, ids: list[int], **_: Any) -> str:
        return bytes(one - 6 for one in ids).decode()


def _model(kind: Any, base_url: str, path: str, **values: Any) -> Any:
    return kind(
        model="toy",
        base_url=f"{base_url}{path}",
        tokenizer_backend="None",
        max_retries=1,
        **values,
    )


def _loglikelihood(base_url: str) -> None:
    for size in (1, 2):
        model = _model(LocalCompletionsAPI, base_url, "/completions", batch_size=size)
        model.tokenizer, model.tokenizer_backend = _Bytes(), "huggingface"
        model.tokenized_requests = True
        pairs = [("Oslo is", " cold"), ("Oslo is in", " Norway")]
        requests = [Instance("loglikelihood", {}, pair, n) for n, pair in enumerate(pairs)]
        model.loglikelihood(requests, disable_tqdm=True)


def _generate(base_url: str) -> None:
    model = _model(LocalCompletionsAPI, base_url, "/completions")
    model.generate_until([Instance("generate_until", {}, ("Oslo is", dict(UNTIL)), 0)])


def _chat(base_url: str) -> None:
    model = _model(LocalChatCompletion, base_url, "/chat/completions")
    prompt = model.apply_chat_template([{"role": "user", "content": "Where is Oslo?"}])
    model.generate_until([Instance("generate_until", {}, (prompt, dict(UNTIL)), 0)])


CASES = {"loglikelihood": _loglikelihood, "generate": _generate, "chat": _chat}
