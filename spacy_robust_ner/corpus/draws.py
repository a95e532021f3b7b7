"""Random decisions that are the same on every machine.

A draw is a 64-bit number, uniform over its range, that a stable hash makes of the seed and of what
is decided on. So it depends neither on the order of calls nor on shards, platform or Python
version, and what falls under the threshold of one share falls under that of every larger share.
"""

import hashlib
import unicodedata
from array import array
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
from spacy.tokens import Doc, Span

DRAW_BITS = 64
_SEPARATOR = "\x1f"


def stable_hash(*parts: object) -> int:
    """Hash the string forms of some values.

    *parts (object): Values whose str() is the same everywhere: integers and strings.
    RETURNS (int): 64 bits.
    """
    payload = _SEPARATOR.join(map(str, parts)).encode("utf8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(payload, digest_size=DRAW_BITS // 8).digest(), "big")


def draw_for_position(seed: int, document: int, span: Span) -> int:
    """Draw for one mention.

    seed (int): The seed.
    document (int): What identifies the document, such as its position in the corpus.
    span (Span): The mention.
    RETURNS (int): The draw.
    """
    return stable_hash("position", seed, document, span.start, span.end)


def draw_for_surface(seed: int, span: Span, *, case_sensitive: bool = False) -> int:
    """Draw for a surface form: all mentions with the same words get the same.

    seed (int): The seed.
    span (Span): Any mention of the form.
    case_sensitive (bool): Tell "Apple" from "APPLE".
    RETURNS (int): The draw.
    """
    return stable_hash("surface", seed, surface_form(span, case_sensitive=case_sensitive))


def surface_form(span: Span | Doc, *, case_sensitive: bool = False) -> str:
    """RETURNS (str): The words of a span, in Unicode's composed form, with one space between."""
    form = unicodedata.normalize("NFC", " ".join(token.text for token in span))
    return form if case_sensitive else form.casefold()


def threshold_for_probability(probability: float) -> int:
    """RETURNS (int): The number that a draw is below with the given probability."""
    return int(probability * 2**DRAW_BITS)


def threshold_for_share(draws: "array[int]", share: float) -> int:
    """Find the threshold below which the wanted share of some draws lies. Equal draws can't be
    parted; the cut is made where the count comes nearest to the share.

    draws (array[int]): All draws, as unsigned 64-bit numbers.
    share (float): The wanted share, 0 to 1.
    RETURNS (int): The threshold.
    """
    if not draws:
        return 0
    distinct, counts = np.unique(np.frombuffer(draws, dtype=np.uint64), return_counts=True)
    below = np.concatenate([[0], np.cumsum(counts)])
    chosen = int(np.abs(below - share * len(draws)).argmin())
    return int(distinct[chosen - 1]) + 1 if chosen else 0


@dataclass(frozen=True)
class Thresholds:
    """Which draws are chosen, by label.

    default (int): Draws below it are chosen.
    by_label (Dict[str, int]): The same for labels with a threshold of their own.
    """

    default: int
    by_label: Mapping[str, int] = field(default_factory=dict)

    def choose(self, label: str, draw: int) -> bool:
        """RETURNS (bool): Whether an entity with this label and draw is chosen."""
        return draw < self.by_label.get(label, self.default)


def thresholds_for_probabilities(
    probability: float, label_probabilities: Mapping[str, float]
) -> Thresholds:
    """RETURNS (Thresholds): Each entity is chosen by chance, whatever becomes of the others."""
    return Thresholds(
        threshold_for_probability(probability),
        {label: threshold_for_probability(p) for label, p in label_probabilities.items()},
    )


def thresholds_for_shares(
    labeled_draws: Iterable[tuple[str, int]],
    share: float,
    label_shares: Mapping[str, float],
) -> Thresholds:
    """Choose exact shares: each label with a share of its own is one urn, and all the other labels
    together are another. Eight bytes an entity are kept meanwhile.

    labeled_draws (Iterable[Tuple[str, int]]): Label and draw of every entity.
    share (float): The share of the entities whose label has none of its own.
    label_shares (Mapping[str, float]): The labels with a share of their own.
    RETURNS (Thresholds): The thresholds.
    """
    rest: array[int] = array("Q")
    urns: dict[str, array[int]] = {label: array("Q") for label in label_shares}
    for label, draw in labeled_draws:
        urns.get(label, rest).append(draw)
    return Thresholds(
        threshold_for_share(rest, share),
        {label: threshold_for_share(urns[label], label_shares[label]) for label in label_shares},
    )
