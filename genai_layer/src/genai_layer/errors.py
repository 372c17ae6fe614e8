"""genai's errors; all are RuntimeErrors, like those of openvino_genai.

GenAIError (RuntimeError)
├── GenAIUsageError         a call breaks a rule of the interface
│   ├── BusyError           the pipeline is generating already
│   ├── ConfigError         a generation parameter is unknown or out of range
│   └── PropertyError       a pipeline property or device is unknown or wrong
├── GenAIInputError         an input cannot be used
│   ├── ModelError          a folder without model or tokenizer, or with broken ones
│   ├── AdapterError        a LoRA adapter is damaged, or belongs to another model
│   ├── ParseError          a parser cannot read a generated text
│   ├── TemplateError       a chat template is missing or fails
│   ├── TranscriptError     a file is not a saved chat, or would be replaced by one
│   └── PromptError         a prompt is empty, too long, or outside the vocabulary
│       └── PromptTooLong   a prompt exceeds the lengths of the model
├── ArgumentError           an argument is of a wrong kind: a ConfigError, PropertyError,
│                           AdapterError, PromptError and TypeError at a time
└── RuntimeFailure          the runtime below could not compile or run the model
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager


class GenAIError(RuntimeError):
    """Base class of genai's errors."""


class GenAIUsageError(GenAIError):
    """The caller broke a rule of the interface."""


class GenAIInputError(GenAIError):
    """An input cannot be used."""


class RuntimeFailure(GenAIError):
    """The runtime rejected the model or failed to run it; ``__cause__`` is the runtime's error."""


class BusyError(GenAIUsageError):
    """A pipeline was used while it generates."""


class ConfigError(GenAIUsageError):
    """A generation parameter is unknown, out of range, or contradicts another."""


class PropertyError(GenAIUsageError):
    """A pipeline property or a device is unknown, or has a wrong value."""


class ModelError(GenAIInputError):
    """A model folder lacks a file, or one of its files is broken."""


class AdapterError(GenAIInputError):
    """A LoRA adapter is missing or damaged, or does not fit the model."""


class ParseError(GenAIInputError):
    """A generated text does not have the form that a parser expects."""


class TemplateError(GenAIInputError):
    """A chat template is missing, or fails on these messages.

    Args:
        problem: the template, its line, and the reason.
        remedy: what a caller of the library can do.
    """

    def __init__(self, problem: str, remedy: str = "") -> None:
        super().__init__(f"{problem}; {remedy}" if remedy else problem)
        self.problem = problem


class TranscriptError(GenAIInputError):
    """A file is not a saved chat, cannot be accessed, or would be replaced by a saved chat."""


class PromptError(GenAIInputError):
    """A prompt is empty, too long, or has token ids outside the vocabulary."""


class PromptTooLong(PromptError):
    """A prompt exceeds the lengths of the model."""


class ArgumentError(ConfigError, PropertyError, AdapterError, PromptError, TypeError):
    """An argument is of a wrong kind, e.g. a text in place of a list of texts.

    Python's TypeError, as in openvino_genai; and the error of any value that the argument rejects.
    """


@contextmanager
def runtime_failures(subject: str = "") -> Generator[None]:
    """Raise the runtime's errors as RuntimeFailure; errors of this layer pass.

    Args:
        subject: what the message begins with.

    Raises:
        RuntimeFailure: the block raised another RuntimeError.
    """
    try:
        yield
    except GenAIError:
        raise
    except RuntimeError as error:
        raise RuntimeFailure(f"{subject}: {error}" if subject else str(error)) from error
