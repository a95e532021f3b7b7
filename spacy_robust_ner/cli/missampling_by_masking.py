"""``missampling-by-masking``: missampling rates as more and more entities lose their label."""

import sys
import tempfile
from pathlib import Path
from typing import Annotated

import typer
from spacy.cli._util import setup_gpu
from wasabi import msg

from ..corpus.mask import mask_corpus
from ..diagnostics.missampling import SAMPLERS
from ..diagnostics.missampling_plot import draw_missampling_by_masking
from ..diagnostics.missampling_report import MissamplingReport
from ..diagnostics.sparsity_plot import check_drawable
from ._app import command, write_json
from ._options import AsJson, GpuId, JsonOutput
from .missampling import missampling

SHARES = (0.1, 0.3, 0.5, 0.7, 0.9)


def missampling_by_masking(
    model: str,
    gold: Path,
    *,
    shares: list[float] | None = None,
    samplers: list[str] | None = None,
    repetitions: int = 10,
    seed: int = 0,
    mask_seed: int = 0,
    show_progress: bool = False,
) -> dict[float, MissamplingReport]:
    """Mask a corpus at several shares, and measure missampling on each.

    model (str): As `missampling` takes it; "{share}" in it stands for the share.
    gold (Path): A corpus with all entities.
    shares (Optional[List[float]]): The probabilities of an entity to be masked.
    samplers (Optional[List[str]]): Samplers beside the component's own.
    repetitions (int): How often to sample each corpus.
    seed (int): Seed of the named samplers, and of the weights of a config.
    mask_seed (int): Seed of the masking.
    show_progress (bool): Whether to show progress bars.
    RETURNS (Dict[float, MissamplingReport]): The figures at each share.
    """
    reports = {}
    for share in shares or SHARES:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            masked, copy = folder / "train.spacy", folder / "gold.spacy"
            dropped = folder / "dropped.jsonl"
            mask_corpus(gold, masked, copy, dropped, probability=share, seed=mask_seed)
            reports[share] = missampling(
                model.replace("{share}", f"{share:g}"),
                masked,
                copy,
                samplers=samplers,
                repetitions=repetitions,
                seed=seed,
                show_progress=show_progress,
            )
    return reports


@command("missampling-by-masking")
def missampling_by_masking_cli(
    model: Annotated[
        str,
        typer.Argument(
            help="A pipeline with robust_span_ner, or a .cfg for an untrained one. '{share}' in it "
            "stands for the share of masked entities."
        ),
    ],
    gold: Annotated[Path, typer.Argument(help="Corpus with all entities.")],
    shares: Annotated[
        list[float] | None,
        typer.Option(
            "--probability",
            "-p",
            min=0,
            max=1,
            help="Chance of an entity to be masked. Can be given several times; "
            f"{', '.join(map(str, SHARES))} by default.",
        ),
    ] = None,
    samplers: Annotated[
        list[str] | None,
        typer.Option("--sampler", "-s", help=f"Beside the pipe's own: {', '.join(SAMPLERS)}."),
    ] = None,
    repetitions: Annotated[
        int, typer.Option("--repetitions", "-n", help="How often to sample each corpus.")
    ] = 10,
    seed: Annotated[int, typer.Option(help="Seed of the samplers and of a config's weights.")] = 0,
    mask_seed: Annotated[int, typer.Option(help="Seed of the masking, as of 'mask'.")] = 0,
    plot: Annotated[
        Path | None, typer.Option(help="Draw the rates: a .png, .svg or .pdf file.")
    ] = None,
    gpu_id: GpuId = -1,
    as_json: AsJson = False,
    output: JsonOutput = None,
) -> None:
    """Measure missampling by the share of masked entities (Li et al. 2022, figures 4 and 5), with
    the rate that is to be expected of uniform sampling beside it.

    Samplers that read scores want the pipelines that were trained on the masked corpora: train one
    for each share, and give their directories as training/masked-{share}/model-best. Masking with
    the same seed masks the same entities again.
    """
    if plot is not None:
        check_drawable(plot)
    setup_gpu(gpu_id, silent=True)
    reports = missampling_by_masking(
        model,
        gold,
        shares=shares,
        samplers=samplers,
        repetitions=repetitions,
        seed=seed,
        mask_seed=mask_seed,
        show_progress=sys.stderr.isatty() and not as_json,
    )
    figures = {f"{share:g}": report.as_dict() for share, report in reports.items()}
    if plot is not None:
        draw_missampling_by_masking(reports, plot)
    if output is not None:
        write_json(figures, output)
    if as_json:
        write_json(figures, None)
        return
    rows = [
        (
            f"{100 * share:g}%",
            f"{report.unlabeled:,}",
            sampler.name,
            f"{100 * sampler.mean:.3f}",
            f"{100 * sampler.sd:.3f}",
            f"{100 * sampler.mean_if_uniform:.3f}",
        )
        for share, report in reports.items()
        for sampler in report.samplers
    ]
    header = ("masked", "unlabeled", "sampler", "missampling %", "sd", "if uniform %")
    msg.table(rows, header=header, aligns=("r", "r", "l", *"rrr"), divider=True)
