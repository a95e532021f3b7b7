"""Tag schemes: from one tag a token to spans and back, and finding out which scheme a corpus has.

A missing annotation is None, a token outside of every entity "O". Spans are (start, end, label)
with an exclusive end.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from .errors import Errors

TokenSpan = tuple[int, int, str]

OUTSIDE = "O"


class Scheme(NamedTuple):
    """The prefixes of a tag scheme.

    begin (str): First token of a longer entity.
    inside (str): Neither first nor last.
    last (str): Last token of a longer entity; the same as inside if the scheme doesn't mark it.
    single (str): Entity of one token; the same as begin if the scheme doesn't mark it.
    """

    begin: str
    inside: str
    last: str
    single: str


# IOB1 writes B- only between two touching entities of one label, so most of its entities start
# with I-; IO has no way at all to tell them apart.
SCHEMES: dict[str, Scheme] = {
    "iob1": Scheme("B", "I", "I", "I"),
    "iob2": Scheme("B", "I", "I", "B"),
    "bioes": Scheme("B", "I", "E", "S"),
    "bilou": Scheme("B", "I", "L", "U"),
    "bmes": Scheme("B", "M", "E", "S"),
    "io": Scheme("I", "I", "I", "I"),
}

_STARTS = frozenset("BSU")
_ENDS = frozenset("ESLU")
_PREFIXES = frozenset("BIMESLU")


class DecodedTags(NamedTuple):
    """spans (List[TokenSpan]): The entities, in order.
    irregular (List[int]): Tokens whose tag can't follow the one before it; they start an entity.
    """

    spans: list[TokenSpan]
    irregular: list[int]


def split_tag(tag: str) -> tuple[str, str]:
    """Split "B-PER" into its prefix and its label.

    tag (str): A tag other than "O".
    RETURNS (Tuple[str, str]): Prefix and label; the prefix is empty if the tag has none.
    """
    if len(tag) > 2 and tag[1] == "-" and tag[0] in _PREFIXES:
        return tag[0], tag[2:]
    return "", tag


def decode_tags(tags: Sequence[str | None], scheme: str) -> DecodedTags:
    """Turn tags into spans. Tags that break the scheme's order are read as the usual scorers do:
    whatever can't continue an entity starts one.

    tags (Sequence[Optional[str]]): A tag a token, None for missing.
    scheme (str): A name in SCHEMES.
    RETURNS (DecodedTags): The spans and the irregular tokens.
    """
    marks = get_scheme(scheme)
    # Only IO can do without prefixes: elsewhere a bare label says that the scheme is another one.
    allowed = {*marks, ""} if scheme == "io" else set(marks) | {"B"}
    i_may_start = marks.single == marks.inside
    marks_ends = marks.last != marks.inside
    spans: list[TokenSpan] = []
    irregular: list[int] = []
    start, label = -1, ""
    for i, tag in enumerate(tags):
        prefix, tag_label = ("", "") if tag is None or tag == OUTSIDE else split_tag(tag)
        if tag is None or tag == OUTSIDE:
            if start >= 0:
                spans.append((start, i, label))
                if marks_ends:
                    irregular.append(i - 1)
                start = -1
            continue
        if prefix not in allowed:
            raise ValueError(Errors.R004.format(tag=tag, scheme=scheme, known=", ".join(SCHEMES)))
        continues = start >= 0 and tag_label == label and prefix not in _STARTS
        if not continues:
            if start >= 0:
                spans.append((start, i, label))
                if marks_ends:
                    irregular.append(i - 1)
            start, label = i, tag_label
            if prefix not in _STARTS and not i_may_start:
                irregular.append(i)
        if prefix in _ENDS:
            spans.append((start, i + 1, label))
            start = -1
    if start >= 0:
        spans.append((start, len(tags), label))
        if marks_ends:
            irregular.append(len(tags) - 1)
    return DecodedTags(spans, sorted(set(irregular)))


def encode_tags(
    spans: Iterable[TokenSpan], length: int, scheme: str, *, missing: Iterable[int] = ()
) -> list[str | None]:
    """Turn spans into tags.

    spans (Iterable[TokenSpan]): Entities that don't overlap.
    length (int): How many tokens there are.
    scheme (str): A name in SCHEMES.
    missing (Iterable[int]): Tokens without annotation.
    RETURNS (List[Optional[str]]): A tag a token, None for missing.
    """
    marks = get_scheme(scheme)
    tags: list[str | None] = [OUTSIDE] * length
    for i in missing:
        tags[i] = None
    end_before, label_before = -1, ""
    for start, end, label in sorted(spans):
        touches = start == end_before and label == label_before
        prefix = marks.single if end == start + 1 else marks.begin
        if scheme == "iob1":
            prefix = marks.begin if touches else marks.inside
        tags[start] = f"{prefix}-{label}"
        for i in range(start + 1, end):
            tags[i] = f"{marks.last if i == end - 1 else marks.inside}-{label}"
        end_before, label_before = end, label
    return tags


def get_scheme(name: str) -> Scheme:
    """RETURNS (Scheme): The scheme of a name; an unknown name is an error."""
    if name not in SCHEMES:
        raise ValueError(Errors.R005.format(scheme=name, known=", ".join(SCHEMES)))
    return SCHEMES[name]


class SchemeDetector:
    """Finds the scheme of a corpus from its tag sequences, in constant memory."""

    def __init__(self) -> None:
        self._prefixes: set[str] = set()
        self._bare = ""
        self._inside_starts = 0
        self._begin_needless = 0

    def update(self, tags: Sequence[str | None]) -> None:
        """tags (Sequence[Optional[str]]): The tags of the next sentence, None for missing."""
        label_before: str | None = ""
        for tag in tags:
            if tag is None:
                label_before = None
                continue
            if tag == OUTSIDE:
                label_before = ""
                continue
            prefix, label = split_tag(tag)
            if not prefix:
                self._bare = tag
            self._prefixes.add(prefix)
            # After a missing token nothing follows from the prefix: the entity may be cut off.
            if label_before is not None:
                if prefix == "I" and label_before != label:
                    self._inside_starts += 1
                elif prefix == "B" and label_before != label:
                    self._begin_needless += 1
            label_before = label

    def result(self) -> str:
        """RETURNS (str): The scheme's name; "iob2" if there were no entities."""
        found = self._prefixes
        if "" in found:
            raise ValueError(Errors.R006.format(tag=self._bare))
        schemes = [
            name
            for name in ("bmes", "bilou", "bioes")
            if found <= {*SCHEMES[name]} and found & {*SCHEMES[name][1:]} - {"I"}
        ]
        if found <= {"B", "I"}:
            # A corpus that breaks both rules somewhere is IOB2 with slips if most entities
            # start with B-, and IOB1 otherwise.
            return "iob1" if self._inside_starts > self._begin_needless else "iob2"
        if not schemes:
            raise ValueError(
                Errors.R007.format(prefixes=", ".join(sorted(found)), known=", ".join(SCHEMES))
            )
        # With only B, E and S seen, BMES and BIOES are the same thing.
        return "bioes" if "bioes" in schemes else schemes[0]
