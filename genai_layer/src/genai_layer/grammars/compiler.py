"""Grammar compiler of one tokenizer, over llguidance, and writer of its Lark dialect.

A grammar without recursion, JSON and tags is written as terminals, which are regular expressions.
Any other grammar is written in rules over single characters: llguidance's lexer takes the longest
terminal that matches, and would miss texts in which a shorter one is right.

Source: llguidance's page on its Lark syntax. Its limits bound the time and memory that a grammar
takes.
"""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING, Any, cast

from genai_layer.decoding.stopwatch import Stopwatch
from genai_layer.errors import ConfigError, ModelError
from genai_layer.generation_config import GenerationConfig
from genai_layer.grammars.constraint import GrammarConstraint
from genai_layer.grammars.expressions import (
    CharacterClass,
    Choice,
    Expression,
    FreeText,
    Json,
    Literal,
    Reference,
    Repeat,
    Rules,
    Sequence,
    TextUntil,
    children,
)
from genai_layer.grammars.guided_tokenizer import check_tokenizer, load_tokenizer
from genai_layer.grammars.structural_tag import ROOT, translate
from genai_layer.perf_metrics import PerfMetrics
from genai_layer.structured.config import StructuredOutputConfig
from genai_layer.structured.formats import Format
from genai_layer.tokenizer import Tokenizer

if TYPE_CHECKING:
    from llguidance import LLTokenizer

_log = logging.getLogger(__name__)

_EMPTY = '""'
_OPTIONS = '%llguidance {"no_forcing": true}'
"""Allow each tokenization of a text that the grammar determines, as openvino_genai does."""


def write_lark(rules: Rules, root: str, lenient: bool = False) -> str:
    """Return the grammar whose texts are those of the rule ``root``.

    Args:
        rules: the grammar's expressions.
        root: name of a rule.
        lenient: whether keywords of JSON schemas that llguidance does not support are ignored.
    """
    return _Writer(rules, root, lenient).write()


class _Writer:
    def __init__(self, rules: Rules, root: str, lenient: bool) -> None:
        self._rules = rules
        self._root = root
        self._lenient = lenient
        self._regular = _is_regular(rules, root)
        self._names: dict[str, str] = {}
        self._added: list[str] = []

    def write(self) -> str:
        lines = [_OPTIONS, f"start: {self._name(self._root)}"]
        written = 0
        while written < len(self._names):  # Writing a rule names those that it refers to.
            rule = [*self._names][written]
            lines.append(f"{self._names[rule]}: {self._text(self._rules[rule])}")
            written += 1
        return "\n".join([*lines, *self._added, ""])

    def _name(self, rule: str) -> str:
        letter = "T" if self._regular else "r"
        return self._names.setdefault(rule, f"{letter}{len(self._names)}")

    def _text(self, expression: Expression) -> str:
        match expression:
            case Literal(text):
                parts = [text] if self._regular else text
                return " ".join(map(_quoted, parts)) or _EMPTY
            case CharacterClass(ranges, negated):
                members = "".join(f"\\x{{{first:x}}}-\\x{{{last:x}}}" for first, last in ranges)
                return f"/[{'^' if negated else ''}{members}]/" if members else "/(?s:.)/"
            case Sequence(parts):
                return " ".join(map(self._atom, parts)) or _EMPTY
            case Choice(options):
                return " | ".join(map(self._atom, options))
            case Repeat(body, least, most):
                return f"{self._atom(body)}{{{least},{'' if most is None else most}}}"
            case Reference(rule):
                return self._name(rule)
            case FreeText():
                return "/(?s:.*)/"
            case TextUntil(ends):
                options = " | ".join(map(_quoted, ends))
                return self._add("[lazy]", f"/(?s:.*)/ ({options})")
            case Json(schema):
                return self._add("", f"%json {json.dumps(self._optional(schema))}")

    def _optional(self, schema: Any) -> Any:
        """Return a schema with the option of this writer, which llguidance reads in its root."""
        fields = cast(dict[str, Any], schema) if isinstance(schema, dict) else {}
        options = fields.get("x-guidance")
        if not (self._lenient and isinstance(options, dict)):
            return cast(Any, schema)
        return {**fields, "x-guidance": {**cast(dict[str, Any], options), "lenient": True}}

    def _atom(self, expression: Expression) -> str:
        return f"({self._text(expression)})"

    def _add(self, options: str, body: str) -> str:
        """Add a rule of its own, and return its name."""
        name = f"a{len(self._added)}"
        self._added.append(f"{name}{options}: {body}")
        return name


def _quoted(text: str) -> str:
    # llguidance rejects a plain U+007F, which JSON does not escape.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _is_regular(rules: Rules, root: str) -> bool:
    """Return whether a rule, with all that it refers to, has no recursion, JSON and tags."""
    found: dict[str, bool] = {}

    def regular(expression: Expression) -> bool:
        if isinstance(expression, Json | TextUntil):
            return False
        if isinstance(expression, Reference):
            return rule(expression.rule)
        return all(map(regular, children(expression)))

    def rule(name: str) -> bool:
        if name not in found:
            found[name] = False  # A rule that is met again while it is read is recursive.
            found[name] = regular(rules[name])
        return found[name]

    return rule(root)


BACKEND = "llguidance"
_MAX_CHARACTERS = 1 << 18
_MAX_WRITTEN = 1 << 22
"""Characters in llguidance's form, in which formats and distinct items are longer."""
_STEP_ITEMS = 2_000_000
"""Parser items per mask, about 0.1 s: grammars over characters need more than the default."""


class GrammarCompiler:
    """Compiler of constraints; llguidance is imported and loaded when the first one is needed.

    Args:
        tokenizer: the model's.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        try:
            check_tokenizer(tokenizer)
        except ModelError as error:
            _log.warning("structured output is not available: %s", error)
        self._loaded: LLTokenizer | None = None
        self._load_time = 0.0

    def constraint(
        self, config: GenerationConfig, metrics: PerfMetrics
    ) -> GrammarConstraint | None:
        """Compile the grammar of a generation; None if it has none.

        Args:
            config: parameters of the generation.
            metrics: receives the times.

        Raises:
            ConfigError: the grammar is broken, not supported, or too complex; or the generation has
                no stop token.
            ModelError: no text of the tokenizer can follow a grammar.
        """
        structured, stops = config.structured_output_config, config.stop_token_ids
        if structured is None:
            return None
        if not stops:
            raise ConfigError(
                "structured_output_config: no stop token ends the text; set stop_token_ids"
            )
        from llguidance import LLMatcher, LLParserLimits

        tokenizer = self._load(min(stops))
        watch = Stopwatch()
        limits = LLParserLimits(step_max_items=_STEP_ITEMS, verbose_errors=False)
        matcher = LLMatcher(tokenizer, grammar_of(structured), log_level=0, limits=limits)
        for warning in matcher.get_grammar_warnings():
            _log.warning(
                "structured_output_config: llguidance warns: %s", " ".join(warning.split())
            )
        constraint = GrammarConstraint(matcher, stops, tokenizer.eos_token)
        # A grammar that is too complex is found with the first mask, before the device runs.
        constraint.prepare()
        metrics.raw_metrics.grammar_compile_times.append(watch.microseconds())
        metrics.grammar_compiler_init_times[BACKEND] = self._load_time
        return constraint

    def _load(self, stop: int) -> LLTokenizer:
        """Return llguidance's form of the tokenizer, which any token can end."""
        if self._loaded is None:
            watch = Stopwatch()
            self._loaded = load_tokenizer(self._tokenizer, stop)
            self._load_time = watch.microseconds() / 1000
        return self._loaded


def grammar_of(config: StructuredOutputConfig) -> str:
    """Return the grammar of a configuration in llguidance's Lark dialect.

    Raises:
        ConfigError: the grammar is broken, not supported, or too large.
    """
    try:
        tag = config.to_format()
        _check_characters(tag)
        _check_size(json.dumps(tag), _MAX_CHARACTERS)
        written = write_lark(translate(tag), ROOT, config.lenient)
        _check_size(written, _MAX_WRITTEN)
        return written
    except RecursionError:
        raise ConfigError(
            "structured_output_config: the grammar is nested too deep; simplify it"
        ) from None


def _check_size(text: str, most: int) -> None:
    if len(text) > most:
        raise ConfigError(
            f"structured_output_config: the grammar has {len(text)} characters; at most {most} are "
            "supported, shorten it"
        )


def _check_characters(tag: Format) -> None:
    """Reject texts that are not Unicode.

    Raises:
        ConfigError: a text has a lone surrogate.
    """
    try:
        json.dumps(tag, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise ConfigError(
            f"structured_output_config: {error.object[error.start]!r} is a lone surrogate, which "
            "is no character; remove it"
        ) from None
