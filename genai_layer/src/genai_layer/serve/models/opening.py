"""Opening of models: the pipeline in a thread of its own, the model in the event loop's."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from genai_layer.batching.pipeline import ContinuousBatchingPipeline
from genai_layer.batching.vision import has_vision
from genai_layer.errors import ModelError
from genai_layer.runtime import Core
from genai_layer.runtimes import load_core
from genai_layer.scheduler import SchedulerConfig
from genai_layer.serve.engine.activity import Commons
from genai_layer.serve.engine.speech import ServedSpeechModel
from genai_layer.serve.engine.text_model import ServedTextModel
from genai_layer.serve.engine.text_tasks import ServedEmbeddingModel, ServedRerankModel
from genai_layer.serve.models.spec import ModelSpec
from genai_layer.texts.embedding import TextEmbeddingPipeline
from genai_layer.texts.rerank import TextRerankPipeline
from genai_layer.whisper.pipeline import WhisperPipeline

ServedModel = ServedTextModel | ServedEmbeddingModel | ServedRerankModel | ServedSpeechModel
Finish = Callable[[Commons], ServedModel]
"""Makes a model of its pipeline; to call in the event loop's thread."""
ShowsLoading = Callable[[Core], AbstractContextManager[None]]
"""Returns a context in which the models that a runtime loads are shown to the user."""


def show_nothing(_: Core) -> AbstractContextManager[None]:
    """Show no loading."""
    return nullcontext()


def open_model(
    spec: ModelSpec, core: Core | None = None, show: ShowsLoading = show_nothing
) -> Finish:
    """Read and compile a model.

    Args:
        spec: the model.
        core: a runtime, instead of the device's.
        show: shows the progress.

    Raises:
        GenAIError: the model cannot be read or compiled.
        OSError: a file cannot be read.
    """
    core = load_core(spec.device) if core is None else core
    with show(core):
        return _OF_KIND[spec.kind](spec, core)


def _open_text(spec: ModelSpec, core: Core) -> Finish:
    if has_vision(spec.folder):
        raise ModelError(f"{spec.folder}: a model of images; the server runs models of texts only")
    scheduler = SchedulerConfig()
    scheduler.max_num_seqs = spec.slots
    scheduler.enable_prefix_caching = True
    pipeline = ContinuousBatchingPipeline(
        spec.folder, scheduler, spec.device, _of_runtime(spec), core=core
    )
    return lambda commons: ServedTextModel(spec.name, spec.device, pipeline, commons)


def _open_embedding(spec: ModelSpec, core: Core) -> Finish:
    pipeline = TextEmbeddingPipeline(spec.folder, spec.device, core=core, **_of_texts(spec))
    return lambda commons: ServedEmbeddingModel(spec.name, pipeline, commons)


def _open_rerank(spec: ModelSpec, core: Core) -> Finish:
    pipeline = TextRerankPipeline(spec.folder, spec.device, core=core, **_of_texts(spec))
    return lambda commons: ServedRerankModel(spec.name, pipeline, commons)


def _open_speech(spec: ModelSpec, core: Core) -> Finish:
    pipeline = WhisperPipeline(spec.folder, spec.device, core=core, **_of_speech(spec))
    config = pipeline.get_generation_config()
    if config.is_multilingual and not config.lang_to_id:
        raise ModelError(
            f"{spec.folder / 'generation_config.json'}: has no lang_to_id, the tokens of a "
            "multilingual model's languages; add it, or set is_multilingual to false"
        )
    return lambda commons: ServedSpeechModel(spec.name, pipeline, commons)


def _of_runtime(spec: ModelSpec) -> dict[str, Any]:
    """Return the properties of the runtime; those in lower case are parameters of pipelines."""
    return {name: value for name, value in spec.properties.items() if not name.islower()}


_WORDS = "word_timestamps"
"""Parameter of speech recognisers; others are for models of texts."""
_LENGTHS = ("MAX_PROMPT_LEN", "MIN_RESPONSE_LEN", "NPUW_LLM_")
"""Begins of the names of properties that describe the static models of a language model."""


def _of_texts(spec: ModelSpec) -> dict[str, Any]:
    """Return the properties of the runtime, and the parameters of models of texts."""
    return {name: value for name, value in spec.properties.items() if name != _WORDS}


def _of_speech(spec: ModelSpec) -> dict[str, Any]:
    """Return the properties of the runtime but lengths, and the parameter of recognisers."""
    words = {_WORDS: spec.properties[_WORDS]} if _WORDS in spec.properties else {}
    others = _of_runtime(spec)
    return words | {name: others[name] for name in others if not name.startswith(_LENGTHS)}


_OF_KIND = {
    "text": _open_text,
    "embedding": _open_embedding,
    "rerank": _open_rerank,
    "speech": _open_speech,
}
