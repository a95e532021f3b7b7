"""``fit-centroids``: fit the centroids of retrieval on a training corpus."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import spacy
import typer
from spacy.cli._util import setup_gpu
from spacy.language import Language
from wasabi import msg

from ..corpus.io import docbin_paths
from ..diagnostics.missampling import find_component
from ..errors import Errors
from ..pipeline.registered import Retrieval, make_retrieval_v1
from ..reader import AnnotationCorpus
from ..span.retrieval import MixingForm
from ._app import command
from ._options import ComponentName, GpuId

_BLOCK = "spacy_robust_ner.Retrieval.v1"


@dataclass(frozen=True)
class FittedCentroids:
    """What was fitted.

    component (str): The component's name.
    spans (Dict[str, int]): How many spans make up the centroid of each label; "O" for negatives.
    retrieval (Retrieval): The settings of retrieval that were saved.
    """

    component: str
    spans: dict[str, int]
    retrieval: Retrieval


def fit_centroids(
    model: str,
    train: Path,
    output: Path,
    *,
    alpha: float | None = None,
    form: MixingForm | None = None,
    add: bool = False,
    component: str | None = None,
    limit: int = 0,
) -> FittedCentroids:
    """Fit centroids with the weights of a pipeline, and save the pipeline with them.

    model (str): The pipeline's directory or package name.
    train (Path): The training corpus.
    output (Path): Where to save the pipeline; may be the same directory.
    alpha (Optional[float]): Share of retrieval from now on; as it was if not given.
    form (Optional[str]): "probability" or "log" from now on; as it was if not given.
    add (bool): Give the component a retrieval block if it has none.
    component (Optional[str]): The component's name; the first of its kind if not given.
    limit (int): Read that many examples at most; 0 for all.
    RETURNS (FittedCentroids): Counts and settings.
    """
    docbin_paths(train)
    nlp = _load(model)
    pipe = find_component(nlp, component, path=model)
    if pipe.retrieval is None and not add:
        raise ValueError(Errors.R132.format(name=pipe.name))
    retrieval = _changed(pipe.retrieval or make_retrieval_v1(), alpha, form)
    pipe.retrieval = retrieval
    # What is saved is the component's config, not the settings of the object.
    nlp.get_pipe_config(pipe.name)["retrieval"] = {"@misc": _BLOCK, **vars(retrieval)}
    centroids = pipe.fit_centroids(nlp, AnnotationCorpus(train)(nlp), limit=limit)
    nlp.to_disk(output)
    spans = dict(zip(("O", *pipe.labels), centroids.counts.astype(int).tolist(), strict=True))
    return FittedCentroids(pipe.name, spans, retrieval)


def _load(model: str) -> Language:
    try:
        return spacy.load(model)
    except OSError as error:
        if Path(model).exists():
            raise
        raise OSError(Errors.R134.format(path=model)) from error


def _changed(retrieval: Retrieval, alpha: float | None, form: MixingForm | None) -> Retrieval:
    if alpha is not None and not 0 <= alpha <= 1:
        raise ValueError(Errors.R103.format(name="alpha", value=alpha, wanted="between 0 and 1"))
    if form not in (None, "probability", "log"):
        raise ValueError(Errors.R105.format(name="form", value=form, choices="probability, log"))
    return make_retrieval_v1(
        retrieval.alpha if alpha is None else alpha,
        retrieval.form if form is None else form,
        retrieval.decay,
    )


@command("fit-centroids")
def fit_centroids_cli(
    model: Annotated[str, typer.Argument(help="Trained pipeline: a directory or a package.")],
    train: Annotated[Path, typer.Argument(help="Training corpus: .spacy file or directory.")],
    output: Annotated[Path, typer.Argument(help="Directory to save the pipeline to.")],
    alpha: Annotated[
        float | None, typer.Option(help="Share of retrieval, from 0 to 1; as saved by default.")
    ] = None,
    form: Annotated[
        str | None,
        typer.Option(help="How to mix: probability or log; as saved by default."),
    ] = None,
    add: Annotated[
        bool, typer.Option("--add", help="Add a retrieval block if the component has none.")
    ] = False,
    component: ComponentName = None,
    limit: Annotated[int, typer.Option(help="Examples to read at most; 0 for all.")] = 0,
    gpu_id: GpuId = -1,
) -> None:
    """Fit the centroids of retrieval-augmented inference with a pipeline's final weights.

    Give the corpus that the pipeline was trained on. A pipeline that was trained without retrieval
    gets it only with --add, since it changes what the pipeline predicts: check the effect with
    'evaluate', and lower --alpha if it finds too much.
    """
    setup_gpu(gpu_id, silent=True)
    fitted = fit_centroids(
        model,
        train,
        output,
        alpha=alpha,
        form=form,  # type: ignore[arg-type]
        add=add,
        component=component,
        limit=limit,
    )
    msg.table(
        [(label, f"{count:,}") for label, count in fitted.spans.items()],
        header=("label", "spans"),
        aligns=("l", "r"),
        divider=True,
    )
    settings = fitted.retrieval
    msg.text(f"Retrieval: alpha = {settings.alpha}, form = {settings.form}")
    msg.good(f"Saved '{fitted.component}' with its centroids to {output}")
