"""``missampling``: how many sampled negatives are unlabeled entities."""

from pathlib import Path
from typing import Annotated

import spacy
import typer
from spacy.cli._util import setup_gpu
from spacy.language import Language
from spacy.util import load_config, load_model_from_config
from thinc.api import fix_random_seed
from tqdm import tqdm
from wasabi import msg

from ..corpus.io import docbin_paths, read_docs
from ..diagnostics.missampling import (
    SAMPLERS,
    DocPair,
    SamplerOfRepetition,
    find_component,
    measure_missampling,
    pair_corpora,
    parse_sampler,
)
from ..diagnostics.missampling_plot import draw_missampling
from ..diagnostics.missampling_report import LengthClass, MissamplingReport
from ..diagnostics.sparsity_plot import check_drawable
from ..errors import Errors
from ..reader import AnnotationCorpus
from ._app import command, write_json
from ._options import AsJson, ComponentName, GpuId, JsonOutput


def missampling(
    model: str,
    masked: Path,
    gold: Path,
    *,
    samplers: list[str] | None = None,
    repetitions: int = 10,
    batch_size: int = 16,
    epoch: int | None = None,
    component: str | None = None,
    seed: int = 0,
    show_progress: bool = False,
) -> MissamplingReport:
    """Measure missampling with a saved pipeline or an untrained config.

    model (str): The pipeline's directory or package name, or a .cfg file, whose pipeline is
        initialized with the masked corpus.
    masked (Path): The corpus as it is trained on.
    gold (Path): The same documents with all entities.
    samplers (Optional[List[str]]): Samplers beside the component's own, as `parse_sampler` reads
        them.
    repetitions (int): How often to sample the corpus.
    batch_size (int): Documents a batch.
    epoch (Optional[int]): Completed epochs; as saved if not given.
    component (Optional[str]): The component's name.
    seed (int): Seed of the named samplers, and of the weights of a config.
    show_progress (bool): Whether to show a progress bar.
    RETURNS (MissamplingReport): The figures.
    """
    named: dict[str, SamplerOfRepetition] = {}
    for text in samplers or ():
        named.update(parse_sampler(text, seed=seed))
    for path in (masked, gold):
        docbin_paths(path)
    nlp = _load(model, masked, seed)
    find_component(nlp, component, path=model)
    pairs: list[DocPair] = list(
        pair_corpora(read_docs(masked, nlp.vocab), read_docs(gold, nlp.vocab))
    )
    return measure_missampling(
        nlp,
        tqdm(pairs, unit=" docs", disable=None if show_progress else True),
        samplers=named,
        repetitions=repetitions,
        batch_size=batch_size,
        epoch=epoch,
        component=component,
    )


def _load(model: str, masked: Path, seed: int) -> Language:
    path = Path(model)
    if path.suffix != ".cfg":
        try:
            return spacy.load(model)
        except OSError as error:
            if path.exists():
                raise
            raise OSError(Errors.R134.format(path=model)) from error
    if not path.is_file():
        raise OSError(Errors.R134.format(path=model))
    config = load_config(path, overrides={"paths.train": str(masked)}, interpolate=True)
    fix_random_seed(seed)
    nlp = load_model_from_config(config, auto_fill=True)
    corpus = AnnotationCorpus(masked)
    nlp.initialize(lambda: corpus(nlp))
    return nlp


@command("missampling")
def missampling_cli(
    model: Annotated[
        str,
        typer.Argument(
            help="A pipeline with robust_span_ner (directory or package), or a .cfg for an "
            "untrained one."
        ),
    ],
    masked: Annotated[Path, typer.Argument(help="Training corpus as 'mask' writes it.")],
    gold: Annotated[Path, typer.Argument(help="The same documents with all entities.")],
    samplers: Annotated[
        list[str] | None,
        typer.Option(
            "--sampler",
            "-s",
            help=f"Sampler beside the pipe's own, as NAME, NAME=RATE or NAME=RATE,RATE: "
            f"{', '.join(SAMPLERS)}. Can be given several times.",
        ),
    ] = None,
    repetitions: Annotated[
        int, typer.Option("--repetitions", "-n", help="How often to sample the corpus.")
    ] = 10,
    batch_size: Annotated[int, typer.Option(help="Documents a batch, as in training.")] = 16,
    epoch: Annotated[
        int | None,
        typer.Option(help="Completed epochs, for the weighted sampler; as saved by default."),
    ] = None,
    component: ComponentName = None,
    seed: Annotated[int, typer.Option(help="Seed of the samplers and of a config's weights.")] = 0,
    plot: Annotated[
        Path | None, typer.Option(help="Draw the rates by length: a .png, .svg or .pdf file.")
    ] = None,
    gpu_id: GpuId = -1,
    as_json: AsJson = False,
    output: JsonOutput = None,
) -> None:
    """Measure how many of the sampled negatives are unlabeled entities (Li et al. 2022, eq. 12).

    Samplers that read scores depend on the weights, so measure with the trained pipeline, on the
    corpus that it was trained on. The weighted sampler takes first what the model doubts but would
    rather not call an entity; an entity that the model knows is as unlikely as an easy negative.
    So its rate falls far below that of uniform sampling only where the model knows nearly all
    unlabeled entities and doubts enough other spans, and it lies above it where the model doubts
    the unlabeled entities themselves.

    By length the table shows how often a document's sample is clean, which is to say without an
    unlabeled entity, beside what theory says of uniform sampling: eq. 6 with the candidates that
    there are, and the bound of eq. 11, which assumes all spans (no limit of the width) and no more
    than √n entities in a document.

    'weighted-outside' is the weighted sampler with "no entity" among the labels in the maximum of
    eq. 15, as it is printed: its weights hardly differ, and its rate is that of uniform sampling.
    'weighted-sparing' is the one with prefer_hard = false, which only spares what looks like an
    entity.
    """
    if plot is not None:
        check_drawable(plot)
    setup_gpu(gpu_id, silent=True)
    report = missampling(
        model,
        masked,
        gold,
        samplers=samplers,
        repetitions=repetitions,
        batch_size=batch_size,
        epoch=epoch,
        component=component,
        seed=seed,
        show_progress=not as_json,
    )
    if plot is not None:
        draw_missampling(report, plot, title="Sampled negatives that are unlabeled entities")
    if output is not None:
        write_json(report.as_dict(), output)
    if as_json:
        write_json(report.as_dict(), None)
        return
    _show(report)


def _show(report: MissamplingReport) -> None:
    msg.text(
        f"{report.documents:,} documents with {report.entities:,} entities, of which "
        f"{report.unlabeled:,} are unlabeled and can be sampled, {report.unreachable:,} are "
        f"unlabeled and can't; epoch {report.epoch} of {report.max_epochs}"
    )
    msg.table(
        [
            (
                sampler.name,
                f"{100 * sampler.mean:.3f}",
                f"{100 * sampler.sd:.3f}",
                f"{100 * sampler.mean_if_uniform:.3f}",
                f"{sampler.negatives // len(sampler.rates):,}",
            )
            for sampler in report.samplers
            if sampler.rates
        ],
        header=("sampler", "missampling %", "sd", "if uniform %", "negatives"),
        aligns=("l", *"rrrr"),
        divider=True,
    )
    for sampler in report.samplers:
        msg.divider(sampler.name)
        msg.table(
            [_length_row(item) for item in sampler.by_length],
            header=("tokens", "documents", "missampling %", "clean %", "eq. 6 %", "eq. 11 %"),
            aligns=("l", *"rrrrr"),
        )


def _length_row(item: LengthClass) -> tuple[str, ...]:
    return (
        f"{item.low}–{item.high}",
        f"{item.documents:,}",
        f"{100 * item.rate:.3f}",
        f"{100 * item.clean:.1f}",
        f"{100 * item.clean_if_uniform:.1f}",
        "-" if item.clean_bound is None else f"{100 * item.clean_bound:.1f}",
    )
