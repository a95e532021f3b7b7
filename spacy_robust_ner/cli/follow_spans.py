"""``follow-spans``: how probable spans become entities in the course of training."""

import io
import sys
from pathlib import Path
from typing import Annotated

import typer
from spacy.cli._util import setup_gpu
from spacy.util import load_config
from wasabi import msg

from ..corpus.io import docbin_paths
from ..diagnostics.span_course import SpanCourse
from ..diagnostics.span_course_plot import draw_span_course
from ..diagnostics.span_course_training import DOCUMENTS, follow_training
from ..diagnostics.sparsity_plot import check_drawable
from ..errors import Errors
from ._app import command, write_json
from ._options import AsJson, GpuId, JsonOutput


def follow_spans(
    config: Path,
    train: Path,
    *,
    gold: Path | None = None,
    dev: Path | None = None,
    epochs: int = 10,
    texts: list[str] | None = None,
    documents: int = DOCUMENTS,
    seed: int = 0,
    use_gpu: int = -1,
    show_progress: bool = False,
) -> SpanCourse:
    """Train with a config and follow the spans of the training corpus.

    config (Path): A training config whose pipeline has robust_span_ner.
    train (Path): The training corpus.
    gold (Optional[Path]): The same documents with all entities.
    dev (Optional[Path]): The corpus that the training loop evaluates on; a little of the training
        corpus if not given.
    epochs (int): How long to train.
    texts (Optional[List[str]]): Strings whose mentions are to be followed.
    documents (int): How many training documents to follow.
    seed (int): The seed.
    use_gpu (int): The GPU, or -1 for the CPU.
    show_progress (bool): Whether to say which epoch is completed.
    RETURNS (SpanCourse): The stages.
    """
    if epochs < 1:
        raise ValueError(Errors.R086.format(option="epochs", value=epochs, minimum=1))
    if not config.is_file():
        raise OSError(Errors.R134.format(path=config))
    for path in (train, gold, dev):
        if path is not None:
            docbin_paths(path)
    overrides = {
        "paths.train": str(train),
        "paths.dev": str(dev or train),
        "training.max_epochs": epochs,
        "training.max_steps": 0,
        "training.patience": 0,
        "system.seed": seed,
    }
    if dev is None:
        overrides["corpora.dev.limit"] = 20
    log = io.StringIO()
    return follow_training(
        load_config(config, overrides=overrides),
        gold=gold,
        texts=texts or (),
        documents=documents,
        use_gpu=use_gpu,
        on_stage=(lambda epoch: print(f"{epoch} epochs", file=sys.stderr))
        if show_progress
        else None,
        stdout=log,
        stderr=log,
    )


@command("follow-spans")
def follow_spans_cli(
    configs: Annotated[
        list[Path],
        typer.Argument(help="Training configs with robust_span_ner, each trained for itself."),
    ],
    train: Annotated[Path, typer.Option("--train", "-t", help="Training corpus.")],
    gold: Annotated[
        Path | None, typer.Option(help="The same documents with all entities, as 'mask' writes it.")
    ] = None,
    dev: Annotated[
        Path | None,
        typer.Option(help="Corpus for the evaluations of training; by default a bit of --train."),
    ] = None,
    epochs: Annotated[int, typer.Option("--epochs", "-n", help="How long to train.")] = 10,
    texts: Annotated[
        list[str] | None,
        typer.Option("--text", help="Follow the mentions of this string. Can be given repeatedly."),
    ] = None,
    documents: Annotated[
        int, typer.Option(help="How many training documents to follow.")
    ] = DOCUMENTS,
    seed: Annotated[int, typer.Option(help="Seed of training.")] = 0,
    plot: Annotated[
        Path | None, typer.Option(help="Draw the probabilities: a .png, .svg or .pdf file.")
    ] = None,
    gpu_id: GpuId = -1,
    as_json: AsJson = False,
    output: JsonOutput = None,
) -> None:
    """Train, and show how probable spans become entities epoch by epoch (Kang et al. 2022, figures
    4 to 7): labeled entities, unlabeled ones if --gold tells which, the sampled negatives of each
    epoch, and the mentions of any --text.

    Where the probability of unlabeled entities rises at first and falls later, the model memorizes
    that they are none: stop earlier, or train with a more robust method. Several configs are
    drawn side by side. The trained pipelines are not saved.
    """
    if plot is not None:
        check_drawable(plot)
    setup_gpu(gpu_id, silent=True)
    courses = {}
    for path in configs:
        if not as_json:
            msg.info(f"Training {path}")
        courses[path.stem] = follow_spans(
            path,
            train,
            gold=gold,
            dev=dev,
            epochs=epochs,
            texts=texts,
            documents=documents,
            seed=seed,
            use_gpu=gpu_id,
            show_progress=sys.stderr.isatty() and not as_json,
        )
    figures = {name: course.as_dict() for name, course in courses.items()}
    if plot is not None:
        draw_span_course(courses, plot)
    if output is not None:
        write_json(figures, output)
    if as_json:
        write_json(figures, None)
        return
    for name, course in courses.items():
        msg.divider(name)
        _show(course)


def _show(course: SpanCourse) -> None:
    names = list(dict.fromkeys(name for stage in course.stages for name in stage.groups))
    rows = []
    for stage in course.stages:
        cells = [
            f"{group.mean:.3f} ({group.count:,})" if (group := stage.groups.get(name)) else "-"
            for name in names
        ]
        cells += [f"{sum(values) / len(values):.3f}" for values in stage.texts.values()]
        rows.append((str(stage.epochs), *cells))
    header = ("epochs", *names, *(f"'{text}'" for text in course.texts))
    msg.text("Mean probability of being an entity (spans)")
    msg.table(rows, header=header, aligns=tuple("r" for _ in header), divider=True, max_col=60)
