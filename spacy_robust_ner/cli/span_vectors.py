"""``span-vectors``: how far a model keeps the vectors of labels apart."""

from collections.abc import Sequence
from itertools import takewhile
from pathlib import Path, PurePath
from typing import Annotated

import spacy
import typer
from spacy.cli._util import setup_gpu
from wasabi import msg

from ..corpus.io import docbin_paths, read_docs
from ..diagnostics.missampling import find_component
from ..diagnostics.projection import SPANS, Projection, collect_span_vectors, project
from ..diagnostics.projection_plot import draw_projections
from ..diagnostics.sparsity_plot import check_drawable
from ..errors import Errors
from ._app import command, write_json
from ._options import AsJson, ComponentName, GpuId, JsonOutput


def span_vectors(
    model: str, data: Path, *, spans: int = SPANS, component: str | None = None, seed: int = 0
) -> Projection:
    """Project the span vectors of a saved pipeline.

    model (str): The pipeline's directory or package name.
    data (Path): A corpus with all entities.
    spans (int): How many spans at most, half of them entities.
    component (Optional[str]): The component's name; the first of its kind if not given.
    seed (int): Seed of the choice of spans that are no entities.
    RETURNS (Projection): The spans in a plane.
    """
    docbin_paths(data)
    try:
        nlp = spacy.load(model)
    except OSError as error:
        if Path(model).exists():
            raise
        raise OSError(Errors.R134.format(path=model)) from error
    pipe = find_component(nlp, component, path=model)
    docs = read_docs(data, nlp.vocab)
    return project(collect_span_vectors(nlp, pipe, docs, spans=spans, seed=seed))


@command("span-vectors")
def span_vectors_cli(
    data: Annotated[Path, typer.Argument(help="Gold corpus: .spacy file or directory.")],
    models: Annotated[
        list[str],
        typer.Argument(help="Pipelines with robust_span_ner: directories or packages."),
    ],
    spans: Annotated[
        int, typer.Option("--spans", "-n", help="Spans at most, half of them entities.")
    ] = SPANS,
    component: ComponentName = None,
    seed: Annotated[int, typer.Option(help="Seed of the choice of other spans.")] = 0,
    plot: Annotated[
        Path | None, typer.Option(help="Draw the spans: a .png, .svg or .pdf file.")
    ] = None,
    gpu_id: GpuId = -1,
    as_json: AsJson = False,
    output: JsonOutput = None,
) -> None:
    """Project the span vectors of pipelines to a plane, by label (Si et al. 2022, figure 4).

    Compare a pipeline that was trained with the contrastive term with one that was not: the term
    is to draw entities of a label together, and away from others. The mean cosines say so in
    numbers. The projection is a principal component analysis of the vectors, scaled to length one.
    """
    if plot is not None:
        check_drawable(plot)
    setup_gpu(gpu_id, silent=True)
    found = {
        name: span_vectors(model, data, spans=spans, component=component, seed=seed)
        for model, name in zip(models, tell_apart(models), strict=True)
    }
    figures = {name: projection.as_dict() for name, projection in found.items()}
    if plot is not None:
        draw_projections(found, plot)
    if output is not None:
        write_json(figures, output)
    if as_json:
        write_json(figures, None)
        return
    msg.text("Mean cosine of entities")
    rows = [
        (name, *(f"{value:.3f}" for value in (p.within, p.between, p.to_outside)), len(p.labels))
        for name, p in found.items()
    ]
    header = ("pipeline", "same label", "other label", "no entity", "spans")
    msg.table(rows, header=header, aligns=("l", *"rrrr"), divider=True, max_col=100)


def tell_apart(models: Sequence[str]) -> list[str]:
    """Shorten the names of pipelines to what tells them apart.

    models (Sequence[str]): Directories or packages.
    RETURNS (List[str]): The same without the first and last directories that all have in common.
    """
    parts = [PurePath(model).parts for model in models]
    if len(set(parts)) < len(parts) or len(parts) < 2:
        return list(models)
    first = _common(parts)
    last = _common([own[first:][::-1] for own in parts])
    names = ["/".join(own[first : len(own) - last]) for own in parts]
    return names if all(names) else list(models)


def _common(parts: Sequence[Sequence[str]]) -> int:
    """RETURNS (int): How many items all sequences begin with."""
    alike = (len(set(items)) == 1 for items in zip(*parts, strict=False))
    return sum(1 for _ in takewhile(bool, alike))
