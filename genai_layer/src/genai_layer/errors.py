"""genai's errors; all are RuntimeErrors, as those of openvino_genai are.

GenAIError (RuntimeError)
├── GenAIUsageError         you called it wrongly
│   ├── BusyError           the pipeline is generating already
│   ├── ConfigError         a generation parameter is unknown or out of range
│   └── PropertyError       a pipeline property or device is unknown or wrong
├── GenAIInputError         what you gave cannot be used
│   ├── ModelError          a folder without model or tokenizer, or with broken ones
│   ├── AdapterError        a LoRA adapter that is damaged, or not one of this model
│   ├── TemplateError       a chat template that is missing or fails
│   └── PromptError         a prompt that is empty, too long, or not of the vocabulary
└── RuntimeFailure          the runtime below could not compile or run the model
"""

from __future__ import annotations


class GenAIError(RuntimeError):
    """Anything that goes wrong in genai."""


class GenAIUsageError(GenAIError):
    """The caller broke a rule of the interface."""


class GenAIInputError(GenAIError):
    """Something given cannot be used."""


class RuntimeFailure(GenAIError):
    """The runtime refused the model or failed while running it; ``__cause__`` is what it said."""


class BusyError(GenAIUsageError):
    """A pipeline is used while it generates."""


class ConfigError(GenAIUsageError):
    """A generation parameter is unknown, out of range, or contradicts another."""


class PropertyError(GenAIUsageError):
    """A pipeline property or a device is unknown, or has a wrong value."""


class ModelError(GenAIInputError):
    """A model folder lacks something, or something in it is broken."""


class AdapterError(GenAIInputError):
    """A LoRA adapter is missing or damaged, or does not fit the model."""


class TemplateError(GenAIInputError):
    """A chat template is missing, or fails on these messages."""


class PromptError(GenAIInputError):
    """A prompt is empty, too long, or has token ids that the model does not know."""
