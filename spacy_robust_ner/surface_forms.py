"""Strings that are labeled in one place of a corpus and outside of entities in another: the
cheapest sign of missing labels, and a measure of how many are missing. Memory grows with the number
of labeled strings only."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from spacy.tokens import Doc, Span

_MISSING_IOB = 0
_OUTSIDE_IOB = 2
_CONTEXT_TOKENS = 8

Form = tuple[str, ...]


@dataclass
class SurfaceForm:
    """A labeled string.

    text (str): Its words.
    labels (Dict[str, int]): How often it has each label.
    outside (int): How often all its tokens are O.
    within_labeled (int): How often it is a part of a longer entity.
    within_outside (int): How often it is a part of an O place of a longer string.
    example (Optional[str]): The first of these places, with its context.
    """

    text: str
    labels: Counter[str] = field(default_factory=Counter)
    outside: int = 0
    within_labeled: int = 0
    within_outside: int = 0
    example: str | None = None

    @property
    def labeled(self) -> int:
        """RETURNS (int): How often it is an entity."""
        return sum(self.labels.values())

    @property
    def suspicion(self) -> float:
        """RETURNS (float): How many of its O places would be entities if it were one as often
        there as it is over all. Rare slips and common words alike come out low."""
        return self.outside * self.labeled / (self.outside + self.labeled)

    def as_dict(self) -> dict[str, Any]:
        """RETURNS (Dict[str, Any]): JSON-serializable."""
        labels = dict(self.labels.most_common())
        return {**asdict(self), "labels": labels, "labeled": self.labeled}


class SurfaceForms:
    """Collects the labeled strings in one pass over a corpus and looks for them among the O tokens
    in another. Strings are compared token by token.

    fold_case (bool): Whether upper and lower case are the same.
    """

    def __init__(self, *, fold_case: bool = False) -> None:
        self.fold_case = fold_case
        self._forms: dict[Form, SurfaceForm] = {}
        self._lengths: dict[str, list[int]] = {}

    def __len__(self) -> int:
        """RETURNS (int): The number of labeled strings."""
        return len(self._forms)

    def items(self) -> Iterable[tuple[Form, SurfaceForm]]:
        """RETURNS (Iterable[Tuple[Form, SurfaceForm]]): Words and counts of the labeled strings."""
        return self._forms.items()

    def words(self, tokens: Doc | Span) -> Form:
        """RETURNS (Form): The words of a document or span as they are compared."""
        return tuple(t.text.casefold() if self.fold_case else t.text for t in tokens)

    def collect(self, doc: Doc) -> None:
        """doc (Doc): A document of the first pass."""
        for ent in doc.ents:
            form = self.words(ent)
            found = self._forms.get(form)
            if found is None:
                found = self._forms[form] = SurfaceForm(ent.text)
                lengths = self._lengths.setdefault(form[0], [])
                if len(form) not in lengths:
                    lengths.append(len(form))
                    lengths.sort(reverse=True)
            found.labels[ent.label_] += 1

    def search(self, doc: Doc, *, in_missing: bool = False) -> None:
        """Count the O places of the strings, and those within longer entities: the longest from
        the left, none that crosses the border of an entity.

        doc (Doc): A document of the second pass.
        in_missing (bool): Tokens whose annotation is missing count like O.
        """
        words = self.words(doc)
        unlabeled = (_OUTSIDE_IOB, _MISSING_IOB) if in_missing else (_OUTSIDE_IOB,)
        is_outside = [token.ent_iob in unlabeled for token in doc]
        start = 0
        while start < len(words):
            width = self._match(words, is_outside, start)
            if width:
                form = self._forms[words[start : start + width]]
                form.outside += 1
                for part in self._parts(words[start : start + width]):
                    part.within_outside += 1
                if form.example is None:
                    form.example = _in_context(doc[start : start + width])
            start += width or 1
        for ent in doc.ents:
            for part in self._parts(words[ent.start : ent.end]):
                part.within_labeled += 1

    def outside(self) -> list[SurfaceForm]:
        """RETURNS (List[SurfaceForm]): The strings with O places, the most suspicious first."""
        found = [form for form in self._forms.values() if form.outside]
        return sorted(found, key=lambda form: (-form.suspicion, form.text))

    def coverage(self, *, without: Collection[Form] = ()) -> float | None:
        """Estimate which share of the entities is labeled: given that a string is labeled in one
        place, how often is it in another, be it alone or within a longer entity? (A longer entity
        without its label looks like the string alone.) Where labels were left out at random, the
        estimate is unbiased but for strings that are entities in one place and ordinary words in
        another. Where a dictionary left out whole strings, it sees nothing of them.

        without (Collection[Form]): Strings to leave out.
        RETURNS (Optional[float]): The share; None if no labeled string comes twice.
        """
        forms = [form for words, form in self._forms.items() if words not in without]
        labeled = sum(form.labeled * (form.labeled + form.within_labeled - 1) for form in forms)
        unlabeled = sum(form.labeled * (form.outside + form.within_outside) for form in forms)
        return labeled / (labeled + unlabeled) if labeled + unlabeled else None

    def _parts(self, words: Form) -> Iterator[SurfaceForm]:
        start = 0
        while start < len(words):
            lengths = self._lengths.get(words[start], ())
            fitting = (n for n in lengths if start + n <= len(words) and n < len(words))
            width = next((n for n in fitting if words[start : start + n] in self._forms), 0)
            if width:
                yield self._forms[words[start : start + width]]
            start += width or 1

    def _match(self, words: Form, is_outside: Sequence[bool], start: int) -> int:
        if not is_outside[start]:
            return 0
        for width in self._lengths.get(words[start], ()):
            end = start + width
            if words[start:end] in self._forms and all(is_outside[start:end]):
                return width
        return 0


def _in_context(span: Span) -> str:
    start = max(span.start - _CONTEXT_TOKENS, 0)
    end = min(span.end + _CONTEXT_TOKENS, len(span.doc))
    before, after = span.doc[start : span.start], span.doc[span.end : end]
    parts = [
        "…" if start else "",
        before.text,
        f"[{span.text}]",
        after.text,
        "…" if end < len(span.doc) else "",
    ]
    return " ".join(" ".join(part.split()) for part in parts if part.strip())
