"""``select``: the "O" tokens that a trained tagger takes for entities, to leave out of training."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import spacy
import typer
from spacy.cli._util import setup_gpu
from spacy.training import Example
from wasabi import msg

from ..corpus.io import docbin_paths, write_docs
from ..diagnostics.exploration import find_tagger
from ..pipeline.span_batch import doc_key
from ..pipeline.two_step import TwoStep, mark_removed, rank_outside, write_removed
from ..reader import training_reader
from ..tagging.o_removal import RemovedTokens
from ._app import command, write_json
from ._options import GpuId

_SHOWN = 10


@dataclass(frozen=True)
class Selection:
    """removed (RemovedTokens): The tokens.
    texts (List[Tuple[str, str]]): The first of them with their sentences.
    list_path (Path): The list.
    corpus_path (Optional[Path]): The corpus in which they are marked.
    """

    removed: RemovedTokens
    texts: list[tuple[str, str]]
    list_path: Path
    corpus_path: Path | None


def select_tokens(
    model: str,
    data: Path,
    output: Path,
    *,
    share: float | None = None,
    component: str | None = None,
    corpus: Path | None = None,
) -> Selection:
    """Rank the "O" tokens of a training corpus with a trained pipeline, and write the lowest.

    model (str): The pipeline's directory or package name.
    data (Path): The training corpus.
    output (Path): The list to write, JSONL.
    share (Optional[float]): The share to remove; None for that of the component's own setting.
    component (Optional[str]): The component's name; None for the first robust_token_tagger.
    corpus (Optional[Path]): Also write the corpus with the tokens marked and without annotation.
    RETURNS (Selection): What was removed.
    """
    docbin_paths(data)
    nlp = spacy.load(model)
    pipe = find_tagger(nlp, component, path=model)
    step = pipe.two_step if share is None else TwoStep(share=share)
    examples = list(training_reader(nlp, data)(nlp))
    removed = (step or TwoStep()).remove(rank_outside(nlp, pipe, examples), pipe, examples)
    write_removed(removed, (example.predicted for example in examples), output)
    if corpus is not None:
        write_docs(mark_removed(examples, removed), corpus)
    return Selection(removed, _first_texts(removed, examples), output, corpus)


def _first_texts(removed: RemovedTokens, examples: Iterable[Example]) -> list[tuple[str, str]]:
    keys = removed.docs[:_SHOWN].tolist()
    docs = {doc_key(example.predicted): example.predicted for example in examples}
    tokens = removed.tokens[:_SHOWN].tolist()
    return [
        (docs[key][token].text, docs[key].text) for key, token in zip(keys, tokens, strict=True)
    ]


@command("select")
def select_cli(
    model: Annotated[str, typer.Argument(help="Pipeline: a directory or a package's name.")],
    data: Annotated[Path, typer.Argument(help="Training corpus: .spacy file or directory.")],
    output: Annotated[Path, typer.Argument(help="List of the selected tokens to write (JSONL).")],
    share: Annotated[
        float | None,
        typer.Option("--share", help="Share of the O tokens to select; else the pipeline's own."),
    ] = None,
    component: Annotated[
        str | None, typer.Option("--component", help="Name of the component, if there are several.")
    ] = None,
    corpus: Annotated[
        Path | None,
        typer.Option("--corpus", help="Also write the corpus with these tokens marked as missing."),
    ] = None,
    gpu_id: GpuId = -1,
    as_json: Annotated[bool, typer.Option("--json", help="Print counts as JSON.")] = False,
) -> None:
    """Select the O tokens that a robust_token_tagger takes for entities.

    The second of three steps: train for an epoch, select, and train again with `two_step.read_from`
    set to the list. It lists what `two_step.epochs` would remove in one go.
    """
    setup_gpu(gpu_id, silent=True)
    found = select_tokens(model, data, output, share=share, component=component, corpus=corpus)
    removed = found.removed
    if as_json:
        write_json({"n_candidates": removed.n_candidates, "n_removed": len(removed)}, None)
        return
    rows = [
        (i, f"{removed.values[i - 1]:.3f}", text, sentence[:60])
        for i, (text, sentence) in enumerate(found.texts, 1)
    ]
    msg.table(rows, header=("rank", "O-value", "token", "sentence"), divider=True)
    msg.good(f"Selected {len(removed)} of {removed.n_candidates} O tokens: {found.list_path}")
    if found.corpus_path is not None:
        msg.good(f"Wrote the marked corpus: {found.corpus_path}")
