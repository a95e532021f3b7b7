"""Two-step positive-unlabeled learning (Zhang et al. 2024): explore, remove suspicious "O" tokens,
start again.
"""

import json
import logging
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example
from tqdm import tqdm

from ..errors import Errors
from ..tagging.o_removal import OValueRanking, RemovedTokens, o_values
from .span_batch import doc_key
from .trial import decision_batches, trial

if TYPE_CHECKING:
    from .token_tagger import RobustTokenTagger

logger = logging.getLogger("spacy")

REMOVED_SPANS_KEY = "removed_tokens"


class TwoStep:
    """Finds "O" tokens to remove before training begins.

    epochs (int): Epochs of exploration; 0 to remove nothing, as in the first of separate steps.
    share (Optional[float]): λ: the share of the "O" tokens of incomplete documents to remove; None
        for as many as seem to be in unlabeled entities.
    read_from (Optional[Path]): Read the tokens from this list instead of exploring, as in the
        last of separate steps.
    write_to (Optional[Path]): Write the list of removed tokens here.
    """

    def __init__(
        self,
        *,
        epochs: int = 1,
        share: float | None = 0.025,
        read_from: Path | None = None,
        write_to: Path | None = None,
    ) -> None:
        if epochs < 0:
            raise ValueError(Errors.R103.format(name="epochs", value=epochs, wanted="at least 0"))
        if share is not None and not 0 <= share <= 1:
            raise ValueError(
                Errors.R103.format(name="share", value=share, wanted="null, or between 0 and 1")
            )
        self.epochs = epochs
        self.share = share
        # A config gives strings.
        self.read_from = None if read_from is None else Path(read_from)
        self.write_to = None if write_to is None else Path(write_to)

    def select(
        self, nlp: Language, pipe: "RobustTokenTagger", examples: Sequence[Example]
    ) -> RemovedTokens | None:
        """Find the tokens to remove. The component and its encoder stay as they are.

        nlp (Language): The pipeline.
        pipe (RobustTokenTagger): The component, which has been initialized.
        examples (Sequence[Example]): The training examples.
        RETURNS (Optional[RemovedTokens]): The tokens.
        """
        if self.read_from is not None:
            removed = read_removed(self.read_from)
            _check_match(removed, examples, self.read_from)
        elif self.epochs:
            with trial(nlp, pipe) as attempt:
                attempt.train(examples, epochs=self.epochs, title="Exploring")
                removed = self.remove(rank_outside(nlp, pipe, examples), pipe, examples)
        else:
            return None
        if self.write_to is not None:
            write_removed(removed, (eg.predicted for eg in examples), self.write_to)
        return removed

    def remove(
        self, ranking: OValueRanking, pipe: "RobustTokenTagger", examples: Iterable[Example]
    ) -> RemovedTokens:
        """ranking (OValueRanking): From `rank_outside`.
        pipe (RobustTokenTagger): The component.
        examples (Iterable[Example]): The training examples.
        RETURNS (RemovedTokens): The tokens to remove.
        """
        if self.share is not None:
            return ranking.select(self.share)
        share = min(1.0, _unlabeled_tokens(pipe, examples) / max(1, len(ranking)))
        logger.info("%s removes %.1f%% of %d O tokens", pipe.name, 100 * share, len(ranking))
        return ranking.select(share)


def _unlabeled_tokens(pipe: "RobustTokenTagger", examples: Iterable[Example]) -> float:
    if pipe.cfg["ratio"] is None:
        raise ValueError(Errors.R189.format(name=pipe.name))
    reader, ratio = pipe.reader, pipe.cfg["ratio"]
    return max(0.0, sum(reader.unlabeled_tokens(example, ratio) for example in examples))


def rank_outside(
    nlp: Language, pipe: "RobustTokenTagger", examples: Sequence[Example]
) -> OValueRanking:
    """Rank all "O" tokens that may hide entities by their O-values, in one prediction pass.

    nlp (Language): The pipeline.
    pipe (RobustTokenTagger): The component.
    examples (Sequence[Example]): The training examples.
    RETURNS (OValueRanking): The ranking.
    """
    ranking = OValueRanking()
    reader = pipe.reader
    with tqdm(total=len(examples), desc="Ranking", unit=" docs", disable=None) as bar:
        for batch, decisions, lengths in decision_batches(nlp, pipe, examples):
            values = o_values(decisions)
            start = 0
            for example, length in zip(batch, lengths.tolist(), strict=True):
                candidates = reader.outside_candidates(example)
                ranking.add(doc_key(example.predicted), candidates, values[start + candidates])
                start += length
            bar.update(len(batch))
    return ranking


def removed_lines(removed: RemovedTokens, docs: Iterable[Doc]) -> Iterator[str]:
    """removed (RemovedTokens): The tokens.
    docs (Iterable[Doc]): The training documents.
    YIELDS (str): The lines of the list, each with its token and sentence for the reader.
    """
    known = {doc_key(doc): doc for doc in docs}
    for line in removed.to_json_lines():
        record = json.loads(line)
        doc = known.get(record.get("doc"))
        if doc is not None:
            record["text"] = doc[record["token"]].text
            record["sentence"] = doc.text
        yield json.dumps(record, ensure_ascii=False)


def write_removed(removed: RemovedTokens, docs: Iterable[Doc], path: Path) -> None:
    """Write the list of removed tokens: a JSON object a line, the lowest O-value first.

    removed (RemovedTokens): The tokens.
    docs (Iterable[Doc]): The training documents.
    path (Path): The file.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf8") as file:
        file.writelines(f"{line}\n" for line in removed_lines(removed, docs))


def mark_removed(examples: Iterable[Example], removed: RemovedTokens) -> Iterator[Doc]:
    """Show removed tokens in their documents: each is a span of the group "removed_tokens", with
    O-values and ranks in its attributes, and its annotation is missing. Any component that
    knows missing annotation can be trained on such documents.

    examples (Iterable[Example]): The training examples.
    removed (RemovedTokens): The tokens.
    YIELDS (Doc): Copies of the reference documents.
    """
    places = zip(removed.docs.tolist(), removed.tokens.tolist(), strict=True)
    ranks: dict[tuple[int, int], int] = {}
    for rank, place in enumerate(places):
        ranks.setdefault(place, rank)
    for example in examples:
        doc = example.reference.copy()
        key = doc_key(example.predicted)
        spans, o_ranks = [], []
        # A sentence that comes several times is in the list as often.
        for token in sorted(set(removed.in_doc(key).tolist())):
            for i in example.alignment.x2y[token].tolist():
                if doc[i].ent_iob_ == "O":
                    spans.append(doc[i : i + 1])
                    o_ranks.append(ranks[key, token])
        doc.set_ents(list(doc.ents), missing=spans, default="unmodified")
        doc.spans[REMOVED_SPANS_KEY] = spans
        doc.spans[REMOVED_SPANS_KEY].attrs.update(
            o_values=[float(removed.values[rank]) for rank in o_ranks],
            ranks=[rank + 1 for rank in o_ranks],
        )
        yield doc


def read_removed(path: Path) -> RemovedTokens:
    """RETURNS (RemovedTokens): The tokens of a list."""
    if not path.is_file():
        raise ValueError(Errors.R184.format(path=path))
    with path.open(encoding="utf8") as lines:
        return RemovedTokens.from_json_lines(lines)


def _check_match(removed: RemovedTokens, examples: Sequence[Example], path: Path) -> None:
    keys = {doc_key(example.predicted) for example in examples}
    if len(removed) and not keys.intersection(removed.docs.tolist()):
        raise ValueError(Errors.R185.format(path=path))
