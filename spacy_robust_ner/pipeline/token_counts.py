"""What one pass over the training examples tells the token component."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from spacy.training import Example


@dataclass(frozen=True)
class TokenCounts:
    """labels (Dict[str, int]): Tokens in labeled entities, by label.
    examples (int): Training examples.
    tokens (int): Tokens of all examples.
    """

    labels: dict[str, int]
    examples: int
    tokens: int

    @property
    def shares(self) -> dict[str, float]:
        """RETURNS (Dict[str, float]): Tokens in labeled entities, as shares of all tokens."""
        return {label: count / max(1, self.tokens) for label, count in self.labels.items()}


def count_tokens(examples: Iterable[Example]) -> TokenCounts:
    """Go through the training examples.

    examples (Iterable[Example]): The training examples.
    RETURNS (TokenCounts): The counts.
    """
    labels: Counter[str] = Counter()
    n_examples = tokens = 0
    for example in examples:
        reference = example.reference
        n_examples += 1
        tokens += len(reference)
        for entity in reference.ents:
            labels[entity.label_] += len(entity)
    return TokenCounts(dict(labels), n_examples, tokens)
