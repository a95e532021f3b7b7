"""``o-values``: whether low O-values find the entities that nobody labeled."""

import importlib.util
import sys
from pathlib import Path
from typing import Annotated

import typer
from spacy.cli._util import setup_gpu
from spacy.util import load_config
from thinc.api import Config
from tqdm import tqdm
from wasabi import msg

from ..corpus.io import docbin_paths
from ..diagnostics.detection import SHARES
from ..diagnostics.exploration import EpochValues, explore
from ..diagnostics.o_value_page import o_value_page
from ..diagnostics.o_value_study import OValueStudy, check_claims
from ..errors import Errors
from ..recipes import METHODS, make_config
from ._app import command, write_json
from ._options import EncoderName, GpuId, Lang, TransformerName

_METHODS = ("two-step", "two-step-angle")


def read_configs(
    methods: list[str],
    paths: list[Path],
    *,
    encoder: str = "cnn",
    lang: str = "en",
    gpu: bool = True,
    transformer: str | None = None,
) -> dict[str, Config]:
    """methods (List[str]): Recipes.
    paths (List[Path]): Config files.
    encoder (str): The encoder of the recipes; this and the settings that follow as in
        `make_config`.
    RETURNS (Dict[str, Config]): The configs, by the recipe's title or the file's name.
    """
    configs = {}
    for method in methods:
        config = make_config(method, encoder, lang=lang, gpu=gpu, transformer=transformer)
        configs[METHODS[method].title] = config
    for path in paths:
        if not path.is_file():
            raise OSError(Errors.R134.format(path=path))
        configs[path.stem] = load_config(path)
    return configs


def study_o_values(
    configs: dict[str, Config],
    masked: Path,
    gold: Path,
    *,
    epochs: int = 10,
    seeds: tuple[int, ...] = (0,),
    run_epochs: int = 20,
    use_gpu: int = -1,
    show_progress: bool = False,
) -> OValueStudy:
    """Explore with each config and seed.

    configs (Dict[str, Config]): From `read_configs`.
    masked (Path): The training corpus.
    gold (Path): The same documents with all entities.
    epochs (int): How long to train.
    seeds (Tuple[int, ...]): The seeds.
    run_epochs (int): Epochs of the training run that exploration is compared with.
    use_gpu (int): The GPU, or -1 for the CPU.
    show_progress (bool): Whether to say how each epoch went.
    RETURNS (OValueStudy): The runs.
    """
    for option, value in (("epochs", epochs), ("run-epochs", run_epochs)):
        if value < 1:
            raise ValueError(Errors.R086.format(option=option, value=value, minimum=1))
    for path in (masked, gold):
        docbin_paths(path)
    runs = [
        explore(
            config,
            masked,
            gold,
            name=name,
            epochs=epochs,
            seed=seed,
            use_gpu=use_gpu,
            after_epoch=_tell if show_progress else None,
        )
        for name, config in configs.items()
        for seed in dict.fromkeys(seeds)
    ]
    return OValueStudy(runs, run_epochs)


def _tell(values: EpochValues) -> None:
    found = values.detection.at(SHARES[3])
    tqdm.write(
        f"epoch {values.epoch}: difference {values.gap:.2f}, precision {found.precision:.1%} and "
        f"recall {found.recall:.1%} with {found.share:.1%} removed",
        file=sys.stderr,
    )


@command("o-values")
def o_values_cli(
    masked: Annotated[Path, typer.Argument(help="Training corpus as 'mask' writes it.")],
    gold: Annotated[Path, typer.Argument(help="The same documents with all entities.")],
    output: Annotated[
        Path, typer.Argument(help="Directory for o-values.html, .md, .json and the drawings.")
    ],
    methods: Annotated[
        list[str] | None,
        typer.Option(
            "--method",
            "-m",
            help=f"Token method; by default {' and '.join(_METHODS)}. Can be repeated.",
        ),
    ] = None,
    configs: Annotated[
        list[Path] | None,
        typer.Option("--config", "-c", help="Training config instead. Can be repeated."),
    ] = None,
    encoder: EncoderName = "cnn",
    lang: Lang = "en",
    transformer: TransformerName = None,
    epochs: Annotated[int, typer.Option("--epochs", "-n", help="How long to train.")] = 10,
    seeds: Annotated[
        list[int] | None, typer.Option("--seed", "-s", help="Seed, 0 by default. Can be repeated.")
    ] = None,
    run_epochs: Annotated[
        int, typer.Option(help="Epochs of the run that the extra time is compared with.")
    ] = 20,
    gpu_id: GpuId = -1,
) -> None:
    """Explore as two-step learning does, and see whether low O-values are unlabeled entities.

    Trains on the masked corpus as it is, with the settings of the run, and compares the O-values
    of tokens of unlabeled entities with those of true O after each epoch; then precision and
    recall of removing the lowest. Says which claims of the paper hold on these data. Give several
    methods to see them side by side, and several seeds to see what is chance.
    """
    setup_gpu(gpu_id, silent=True)
    has_plots = importlib.util.find_spec("matplotlib") is not None
    if not has_plots:
        msg.warn("No drawings: they need matplotlib (pip install 'spacy-robust-ner[plots]').")
    study = study_o_values(
        read_configs(
            methods or ([] if configs else list(_METHODS)),
            configs or [],
            encoder=encoder,
            lang=lang,
            gpu=gpu_id >= 0,
            transformer=transformer,
        ),
        masked,
        gold,
        epochs=epochs,
        seeds=tuple(seeds or (0,)),
        run_epochs=run_epochs,
        use_gpu=gpu_id,
        show_progress=True,
    )
    page = o_value_page(study, corpus=masked.stem, plots=has_plots)
    page.write_markdown(output / "o-values.md")
    page.write_html(output / "o-values.html")
    write_json(
        {"run_epochs": study.run_epochs, "runs": [run.to_dict() for run in study.runs]},
        output / "o-values.json",
    )
    for claim in check_claims(study):
        msg.text(f"{claim.topic}, {claim.method}: {claim.verdict.upper()}; {claim.figures}.\n")
    msg.good(f"Page: {output / 'o-values.html'} and {output / 'o-values.md'}")
