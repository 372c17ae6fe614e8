"""Models of the server, as observation needs them; errors of models that cannot be observed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from genai_layer.batching.pipeline import ContinuousBatchingPipeline
from genai_layer.perf_metrics import PerfMetrics
from genai_layer.serve.engine.contract import ModelCard
from genai_layer.serve.errors import ServeError


class NotLoaded(ServeError):
    """The model is not loaded, so there is nothing to observe."""

    status = 409
    type = "invalid_request_error"
    code = "model_not_loaded"


class NotObservable(ServeError):
    """The model's runtime does not show what it does."""

    status = 409
    type = "invalid_request_error"
    code = "model_not_observable"


class ObservedModel(Protocol):
    """Loaded language model."""

    @property
    def name(self) -> str:
        """Name by which clients request the model."""
        ...

    @property
    def device(self) -> str:
        """Device of the model."""
        ...

    @property
    def pipeline(self) -> ContinuousBatchingPipeline:
        """Pipeline of the model."""
        ...

    @property
    def queue(self) -> int:
        """Number of requests that wait for a place."""
        ...

    @property
    def queue_limit(self) -> int:
        """Maximum number of requests that wait."""
        ...

    @property
    def changes(self) -> int:
        """Number of steps and of changes of the queue."""
        ...

    @property
    def last_metrics(self) -> PerfMetrics | None:
        """Durations of the last completed request."""
        ...

    def request_ids(self) -> Mapping[int, str]:
        """Return the names of unfinished requests, by their numbers in the pipeline."""
        ...


class ObservedModels(Protocol):
    """Models of the server."""

    @property
    def ready(self) -> bool:
        """True if a model is loaded, and the server is not shutting down."""
        ...

    def names(self) -> Sequence[ModelCard]:
        """Return the models, in the order of the command line."""
        ...

    def loaded_text(self, name: str) -> ObservedModel | None:
        """Return a language model if it is loaded; this does not count as a use.

        Raises:
            UnknownModel: there is no model of this name.
            WrongKind: the model is of another kind.
        """
        ...


def default_name(models: ObservedModels) -> str:
    """Return the name of the model to observe: the first loaded language model, else the first.

    Raises:
        NotLoaded: the server has no language model.
    """
    texts = [card for card in models.names() if card.kind == "text"]
    if not texts:
        raise NotLoaded("the server has no language model to observe; start it with one")
    return next((card.name for card in texts if card.loaded), texts[0].name)


def loaded(models: ObservedModels, name: str) -> ObservedModel:
    """Return a loaded language model.

    Raises:
        UnknownModel, WrongKind: see ``ObservedModels.loaded_text``.
        NotLoaded: the model is not loaded.
    """
    model = models.loaded_text(name)
    if model is None:
        raise NotLoaded(
            f"model {name!r}: not loaded; send it a request, which loads it", param="model"
        )
    return model
