"""What one pass over the training examples tells the token component."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from spacy.training import Example

from ..annotation import is_complete, missing_tokens


@dataclass(frozen=True)
class TokenCounts:
    """labels (Dict[str, int]): Tokens in labeled entities, by label.
    examples (int): Training examples.
    tokens (int): Tokens of all examples.
    entity_ratio (Optional[float]): Share of entity tokens among the annotated tokens of complete
        documents; None without such tokens.
    """

    labels: dict[str, int]
    examples: int
    tokens: int
    entity_ratio: float | None

    @property
    def shares(self) -> dict[str, float]:
        """RETURNS (Dict[str, float]): Tokens in labeled entities, as shares of all tokens."""
        return {label: count / max(1, self.tokens) for label, count in self.labels.items()}


def count_tokens(examples: Iterable[Example], *, default_complete: bool) -> TokenCounts:
    """Go through the training examples.

    examples (Iterable[Example]): The training examples.
    default_complete (bool): What a document without the flag counts as.
    RETURNS (TokenCounts): The counts.
    """
    labels: Counter[str] = Counter()
    n_examples = tokens = known = in_entities = 0
    for example in examples:
        reference = example.reference
        n_examples += 1
        tokens += len(reference)
        own = 0
        for entity in reference.ents:
            labels[entity.label_] += len(entity)
            own += len(entity)
        if is_complete(reference, default=default_complete):
            known += len(reference) - sum(missing_tokens(reference))
            in_entities += own
    return TokenCounts(dict(labels), n_examples, tokens, in_entities / known if known else None)
