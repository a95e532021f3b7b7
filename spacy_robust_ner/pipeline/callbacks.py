"""Callbacks for a config's [training] block."""

from collections.abc import Callable
from typing import Any

from spacy.language import Language
from spacy.util import registry, resolve_dot_names
from thinc.api import Config

from .span_ner import RobustSpanNER


def make_track_epochs_v1() -> Callable[[Language, dict[str, Any]], None]:
    """For [training.before_update]: tell robust components the true epoch.

    RETURNS (Callable[[Language, Dict[str, Any]], None]): The callback.
    """
    return track_epochs


def track_epochs(nlp: Language, args: dict[str, Any]) -> None:
    """Tell every robust component of a pipeline the epoch that the training loop is in.

    nlp (Language): The pipeline.
    args (Dict[str, Any]): What the loop passes: "step" and "epoch".
    """
    for _, component in nlp.pipeline:
        progress = getattr(component, "progress", None)
        if progress is not None and hasattr(progress, "tell"):
            progress.tell(args["epoch"])


def make_fit_centroids_v1(limit: int = 0) -> Callable[[Language], Language]:
    """For [training.before_to_disk]: fit the centroids of retrieval with the weights that are
    about to be saved, by one pass over the training corpus.

    limit (int): Read that many training examples at most; 0 for all.
    RETURNS (Callable[[Language], Language]): The callback.
    """

    def fit_centroids(nlp: Language) -> Language:
        components = [
            component
            for _, component in nlp.pipeline
            if isinstance(component, RobustSpanNER) and component.retrieval is not None
        ]
        if components:
            config = nlp.config.interpolate()
            corpora = Config(registry.resolve({"corpora": config["corpora"]}))
            (corpus,) = resolve_dot_names(corpora, [config["training"]["train_corpus"]])
            for component in components:
                component.fit_centroids(nlp, corpus(nlp), limit=limit)
        return nlp

    return fit_centroids
