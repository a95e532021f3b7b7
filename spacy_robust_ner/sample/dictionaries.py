"""Make the dictionaries of the English sample: some of what occurs, some of what doesn't."""

from collections.abc import Sequence

from .english import Document, EnglishSample
from .names import Roster
from .rng import StableRandom

LABELS = ("PER", "ORG", "LOC", "MISC", "PRODUCT")
# Real dictionaries know the famous and miss the rare.
_COVERAGE_FREQUENT = 0.8
_COVERAGE_RARE = 0.44
_FREQUENT = 4
# Of a name with two labels, they mostly know the usual one.
_COVERAGE_UNUSUAL = 0.2
_FOREIGN_SHARE = 0.3
_FOREIGN_NAMES = 60
# Names that are also words: where the text has the word, a dictionary finds an entity.
_AMBIGUOUS = {
    "PER": ("Grant", "Hill", "Mark", "May", "Price", "Young", "Frank", "Sterling"),
    "ORG": ("Target", "Union", "Express", "Orange", "The Board", "Customer Service"),
    "LOC": ("Reading", "Nice", "Mobile", "Split", "Turkey", "Bath"),
    "MISC": ("Spring", "Victory", "Opinion", "Latin"),
    "PRODUCT": ("Echo", "Pulse", "Wi-Fi", "Bluetooth", "Air", "Settings"),
}


def make_dictionaries(sample: EnglishSample, train: Sequence[Document]) -> dict[str, list[str]]:
    """List names for distant annotation.

    sample (EnglishSample): The sample.
    train (Sequence[Document]): The training documents, whose entities are partly covered.
    RETURNS (Dict[str, List[str]]): Sorted entries by label.
    """
    counts: dict[str, dict[str, int]] = {label: {} for label in LABELS}
    for document in train:
        for sentence in document:
            if sentence.text.isupper():
                continue
            for text, label in sentence.surface_forms():
                counts[label][text] = counts[label].get(text, 0) + 1
    foreign = _foreign_names(sample)
    dictionaries = {}
    for label in LABELS:
        rng = StableRandom(sample.seed, f"dictionaries/{label}")
        entries = [
            text
            for text, count in counts[label].items()
            if rng.chance(_coverage(count, max(c.get(text, 0) for c in counts.values())))
        ]
        unseen = [text for text in foreign[label] if text not in counts[label]]
        entries += rng.shuffled(unseen)[: round(len(entries) * _FOREIGN_SHARE)]
        entries += _AMBIGUOUS[label]
        dictionaries[label] = sorted(dict.fromkeys(entries))
    return dictionaries


def _coverage(count: int, most_with_any_label: int) -> float:
    if count < most_with_any_label:
        return _COVERAGE_UNUSUAL
    return _COVERAGE_FREQUENT if count >= _FREQUENT else _COVERAGE_RARE


def _foreign_names(sample: EnglishSample) -> dict[str, list[str]]:
    roster = Roster("train", sample.divided, sample.seed + 1, size=_FOREIGN_NAMES * 3)
    names: dict[str, dict[str, None]] = {label: {} for label in LABELS}
    for name in roster.all_names():
        names[name.labels["full"]][name.forms["full"]] = None
    return {label: list(texts) for label, texts in names.items()}
