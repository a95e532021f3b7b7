"""What a corpus tells about its labels: how many are missing, which are doubtful, and where there
are none to miss.

Dictionaries label ordinary words: "The" opens half of the sentences and is also the name of a band.
Such a string stands out, as most of its places, in upper or lower case, have no label. What counts
as "most" depends on how many labels are missing anyway.
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from spacy.tokens import Doc

from .orthography import OrthographyStudy
from .surface_forms import Form, SurfaceForm, SurfaceForms

# A string is doubtful if it has a label significantly less often than this part of what the
# coverage of the corpus makes one expect.
_EXPECTED_PART = 0.75
_SIGNIFICANCE = 0.05


@dataclass(frozen=True)
class LabelFindings:
    """What a study found.

    coverage (Optional[float]): Estimated share of the entities that are labeled; None if nothing
        comes twice.
    doubtful (Dict[Form, SurfaceForm]): Labeled strings that are rather ordinary words, in folded
        case, with their counts.
    entities (int): Labeled entities without the doubtful ones.
    entity_tokens (int): Tokens of these entities.
    outside_places (Dict[str, int]): Kinds of places (see orthography) where there are next to no
        entities, with their numbers of tokens.
    tokens (int): All tokens that are annotated.
    capitals_mark_names (bool): Whether a capital letter within a sentence says something.
    """

    coverage: float | None
    doubtful: dict[Form, SurfaceForm]
    entities: int
    entity_tokens: int
    outside_places: dict[str, int]
    tokens: int
    capitals_mark_names: bool


class LabelStudy:
    """Collects labeled strings in one pass over a corpus, and looks for their other places in a
    second one.

    in_missing (bool): Tokens whose annotation is missing count like O.
    exact (SurfaceForms): The strings with their case.
    """

    def __init__(self, *, in_missing: bool = True) -> None:
        self.in_missing = in_missing
        self.exact = SurfaceForms()
        self._folded = SurfaceForms(fold_case=True)
        self._orthography = OrthographyStudy()

    def collect(self, doc: Doc) -> None:
        """doc (Doc): A document of the first pass."""
        self.exact.collect(doc)
        self._folded.collect(doc)
        self._orthography.add(doc)

    def search(self, doc: Doc) -> None:
        """doc (Doc): A document of the second pass."""
        self.exact.search(doc, in_missing=self.in_missing)
        self._folded.search(doc, in_missing=self.in_missing)

    def findings(self, *, with_doubts: bool = True) -> LabelFindings:
        """with_doubts (bool): Whether to look for doubtful strings.
        RETURNS (LabelFindings): What both passes found.
        """
        doubtful: dict[Form, SurfaceForm] = {}
        coverage = self._coverage(doubtful)
        # Without the doubtful strings the coverage is a better one, and finds more or fewer.
        for _ in range(5 if with_doubts and coverage else 0):
            found = dict(_doubtful(self._folded, coverage or 1.0))
            if found.keys() == doubtful.keys():
                break
            doubtful, coverage = found, self._coverage(found)
        kept = [(words, form) for words, form in self._folded.items() if words not in doubtful]
        return LabelFindings(
            coverage=coverage,
            doubtful=doubtful,
            entities=sum(form.labeled for _, form in kept),
            entity_tokens=sum(form.labeled * len(words) for words, form in kept),
            outside_places=self._orthography.outside_places(coverage) if coverage else {},
            tokens=self._orthography.tokens,
            capitals_mark_names=self._orthography.capitals_mark_names(coverage or 1.0),
        )

    def _coverage(self, doubtful: dict[Form, SurfaceForm]) -> float | None:
        left_out = {
            words
            for words, _ in self.exact.items()
            if tuple(word.casefold() for word in words) in doubtful
        }
        return self.exact.coverage(without=left_out)


def study_labels(docs: Iterable[Doc]) -> LabelFindings:
    """docs (Iterable[Doc]): A corpus, which is gone through twice.
    RETURNS (LabelFindings): What its strings tell.
    """
    study = LabelStudy()
    for doc in docs:
        study.collect(doc)
    for doc in docs:
        study.search(doc)
    return study.findings()


def _doubtful(forms: SurfaceForms, coverage: float) -> Iterator[tuple[Form, SurfaceForm]]:
    expected = _EXPECTED_PART * coverage
    for words, form in forms.items():
        places = form.labeled + form.outside
        if form.labeled >= expected * places:
            continue
        if _probability_of_at_most(form.labeled, places, expected) < _SIGNIFICANCE:
            yield words, form


def _probability_of_at_most(successes: int, trials: int, p: float) -> float:
    """RETURNS (float): The lower tail of the binomial distribution."""
    log_p, log_q = math.log(p), math.log1p(-p)
    return math.fsum(
        math.exp(
            math.lgamma(trials + 1)
            - math.lgamma(k + 1)
            - math.lgamma(trials - k + 1)
            + k * log_p
            + (trials - k) * log_q
        )
        for k in range(successes + 1)
    )
