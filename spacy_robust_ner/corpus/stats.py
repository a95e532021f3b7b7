"""What is in a corpus, and what makes it hard: counts, widths, token states, sparsity of entities,
overlap of its parts, and strings whose annotation contradicts itself."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any

from spacy.tokens import Doc

from ..annotation import stated_complete
from ..fragments import FragmentCount
from ..label_study import LabelFindings, LabelStudy
from ..surface_forms import SurfaceForm
from .doc_stream import stream_docs
from .overlap import Fingerprints, Overlap, find_overlap
from .sparsity import Sparsity

TRAIN = "train"
_OUTSIDE_IOB = 2


@dataclass
class PartStats:
    """Counts of one part of a corpus. A token that is neither in an entity nor O is missing, as
    training examples have it, whether it was left open or blocked."""

    documents: int = 0
    documents_without_entities: int = 0
    repeated_documents: int = 0
    complete: int = 0
    incomplete: int = 0
    unstated: int = 0
    tokens: int = 0
    entity_tokens: int = 0
    outside_tokens: int = 0
    missing_tokens: int = 0
    longest: int = 0
    labels: Counter[str] = field(default_factory=Counter)
    widths: Counter[int] = field(default_factory=Counter)
    sparsity: Sparsity = field(default_factory=Sparsity)

    @property
    def entities(self) -> int:
        """RETURNS (int): All entities."""
        return sum(self.labels.values())

    @property
    def entity_token_ratio(self) -> float:
        """RETURNS (float): The share of the tokens that are in entities."""
        return self.entity_tokens / self.tokens if self.tokens else 0.0

    def width_coverage(self) -> dict[int, float]:
        """RETURNS (Dict[int, float]): For each width, the share of the entities up to it."""
        covered, coverage = 0, {}
        for width, count in sorted(self.widths.items()):
            covered += count
            coverage[width] = covered / self.entities
        return coverage

    def add(self, doc: Doc) -> None:
        """doc (Doc): One more document."""
        stated = stated_complete(doc)
        self.documents += 1
        self.complete += stated is True
        self.incomplete += stated is False
        self.unstated += stated is None
        self.documents_without_entities += not doc.ents
        self.labels.update(ent.label_ for ent in doc.ents)
        widths = [ent.end - ent.start for ent in doc.ents]
        self.widths.update(widths)
        outside = sum(token.ent_iob == _OUTSIDE_IOB for token in doc)
        self.tokens += len(doc)
        self.longest = max(self.longest, len(doc))
        self.entity_tokens += sum(widths)
        self.outside_tokens += outside
        self.missing_tokens += len(doc) - outside - sum(widths)
        self.sparsity.add(len(doc), len(widths))

    def as_dict(self) -> dict[str, Any]:
        """RETURNS (Dict[str, Any]): JSON-serializable, with ratios."""
        coverage = self.width_coverage()
        return {
            "documents": self.documents,
            "documents_without_entities": self.documents_without_entities,
            "repeated_documents": self.repeated_documents,
            "complete": self.complete,
            "incomplete": self.incomplete,
            "unstated": self.unstated,
            "tokens": self.tokens,
            "entity_tokens": self.entity_tokens,
            "outside_tokens": self.outside_tokens,
            "missing_tokens": self.missing_tokens,
            "entity_token_ratio": self.entity_token_ratio,
            "longest": self.longest,
            "entities": self.entities,
            "labels": dict(self.labels.most_common()),
            "widths": {
                str(width): {"entities": self.widths[width], "covered": coverage[width]}
                for width in coverage
            },
            "sparsity": self.sparsity.as_dict(),
        }


@dataclass
class CorpusStats:
    """Everything that ``compute_stats`` finds.

    parts (Dict[str, PartStats]): By name: train, dev, test.
    overlaps (List[Overlap]): For each pair of parts.
    surface_forms (int): The labeled strings of the training part.
    outside_forms (List[SurfaceForm]): Those that are O elsewhere in it, the most suspicious first.
    findings (LabelFindings): Estimated share of its entities that are labeled, and doubtful labels.
    fragments (FragmentCount): Its labels that seem to be parts of longer names.
    """

    parts: dict[str, PartStats]
    overlaps: list[Overlap]
    surface_forms: int
    outside_forms: list[SurfaceForm]
    findings: LabelFindings
    fragments: FragmentCount

    @property
    def outside_mentions(self) -> int:
        """RETURNS (int): The O places of all labeled strings."""
        return sum(form.outside for form in self.outside_forms)

    @property
    def doubtful_forms(self) -> list[SurfaceForm]:
        """RETURNS (List[SurfaceForm]): The labeled strings that are rather ordinary words, in
        upper and lower case together, the most frequent first."""
        return sorted(self.findings.doubtful.values(), key=lambda form: (-form.labeled, form.text))

    def as_dict(self, *, top: int | None = None) -> dict[str, Any]:
        """Make it JSON-serializable.

        top (Optional[int]): List that many strings; None for all of them.
        RETURNS (Dict[str, Any]): The statistics.
        """
        return {
            "parts": {name: part.as_dict() for name, part in self.parts.items()},
            "overlaps": [overlap.as_dict() for overlap in self.overlaps],
            "surface_forms": {
                "labeled": self.surface_forms,
                "also_outside": len(self.outside_forms),
                "outside_mentions": self.outside_mentions,
                "label_coverage": self.findings.coverage,
                "forms": [form.as_dict() for form in self.outside_forms[:top]],
                "doubtful": [form.as_dict() for form in self.doubtful_forms[:top]],
            },
            "fragments": asdict(self.fragments),
            "capitals_mark_names": self.findings.capitals_mark_names,
            "outside_places": self.findings.outside_places,
        }


def compute_stats(
    train: Path,
    *,
    dev: Path | None = None,
    test: Path | None = None,
    show_progress: bool = False,
) -> CorpusStats:
    """Describe a corpus. Reads the training part twice and the others once, a shard at a time;
    beyond that, 16 bytes a document and the labeled strings are kept.

    train (Path): The training part.
    dev (Optional[Path]): The development part.
    test (Optional[Path]): The test part.
    show_progress (bool): Draw progress bars.
    RETURNS (CorpusStats): The statistics.
    """
    named = {TRAIN: train, "dev": dev, "test": test}
    paths = {name: path for name, path in named.items() if path is not None}
    parts: dict[str, PartStats] = {}
    fingerprints: dict[str, Fingerprints] = {}
    study, fragments = LabelStudy(in_missing=False), FragmentCount()
    for name, path in paths.items():
        part, prints = parts[name], fingerprints[name] = PartStats(), Fingerprints()
        for doc in stream_docs(path, description=f"Counting {name}", show_progress=show_progress):
            part.add(doc)
            prints.add(doc)
            if name == TRAIN:
                study.collect(doc)
                fragments.add(doc)
        part.repeated_documents = prints.repeated()
    for doc in stream_docs(train, description="Searching", show_progress=show_progress):
        study.search(doc)
    return CorpusStats(
        parts,
        _overlaps(fingerprints),
        len(study.exact),
        study.exact.outside(),
        study.findings(),
        fragments,
    )


def _overlaps(fingerprints: Mapping[str, Fingerprints]) -> list[Overlap]:
    return [
        find_overlap(first, fingerprints[first], second, fingerprints[second])
        for first, second in combinations(fingerprints, 2)
    ]
