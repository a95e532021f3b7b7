"""What a conversion found, for people and for scripts."""

from collections import Counter
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

# Lists are for looking at examples; the counts beside them are always whole. Without a limit a
# broken corpus of millions of lines would be held in memory after all.
MAX_LISTED = 1000


@dataclass(slots=True)
class Note:
    """One thing that was not taken over as it is in the input.

    line (int): The line in the input, 0 if it has no lines.
    reason (str): What is the matter.
    text (str): The span's text, if it is about a span.
    label (str): The span's label, likewise.
    """

    line: int
    reason: str
    text: str = ""
    label: str = ""


@dataclass(slots=True)
class Notes:
    """count (int): How often it happened.
    listed (List[Note]): The first cases, at most MAX_LISTED.
    """

    count: int = 0
    listed: list[Note] = field(default_factory=list)

    def add(self, note: Note) -> None:
        """note (Note): The next case."""
        self.count += 1
        if len(self.listed) < MAX_LISTED:
            self.listed.append(note)


@dataclass(slots=True)
class InputReport:
    """The counts of one input.

    path (str): The input.
    format (str): Its format, found or given.
    scheme (Optional[str]): Its tag scheme, if it has tags.
    found (List[str]): Which of these and other properties were found automatically.
    documents (int): Documents that were written; complete, incomplete and unstated add up to it.
    blank_tokens (int): Tokens of whitespace or nothing; an empty one is kept as a space.
    irregular_tags (Notes): Tags that break the scheme's order.
    misaligned (Notes): Spans that don't begin and end with a token.
    overlapping (Notes): Spans left out of doc.ents because a longer one overlaps them.
    skipped (Notes): Malformed parts, left out by request.
    ignored (Counter): Well-formed parts without an answer to take over, by reason.
    conflicts (Notes): Spans that were both accepted and rejected.
    """

    path: str
    format: str = ""
    scheme: str | None = None
    found: list[str] = field(default_factory=list)
    documents: int = 0
    complete: int = 0
    incomplete: int = 0
    unstated: int = 0
    tokens: int = 0
    entities: Counter[str] = field(default_factory=Counter)
    missing_tokens: int = 0
    rejected_spans: int = 0
    blank_tokens: int = 0
    irregular_tags: Notes = field(default_factory=Notes)
    misaligned: Notes = field(default_factory=Notes)
    overlapping: Notes = field(default_factory=Notes)
    skipped: Notes = field(default_factory=Notes)
    ignored: Counter[str] = field(default_factory=Counter)
    conflicts: Notes = field(default_factory=Notes)

    def to_dict(self) -> dict[str, Any]:
        """RETURNS (Dict[str, Any]): The report as JSON-serializable data."""
        result: dict[str, Any] = {}
        for each in fields(self):
            value = getattr(self, each.name)
            if isinstance(value, Counter):
                value = dict(value.most_common())
            elif isinstance(value, Notes):
                value = asdict(value)
            result[each.name] = value
        return result


@dataclass(slots=True)
class ConvertReport:
    """The counts of a conversion.

    output (str): The corpus that was written, empty if the documents were only read.
    inputs (List[InputReport]): The inputs in reading order.
    """

    output: str = ""
    inputs: list[InputReport] = field(default_factory=list)

    def add_input(self, path: Path) -> InputReport:
        """RETURNS (InputReport): The report of the next input, to be filled."""
        self.inputs.append(InputReport(str(path)))
        return self.inputs[-1]

    @property
    def documents(self) -> int:
        """RETURNS (int): Documents of all inputs."""
        return sum(each.documents for each in self.inputs)

    @property
    def tokens(self) -> int:
        """RETURNS (int): Tokens of all inputs."""
        return sum(each.tokens for each in self.inputs)

    @property
    def entities(self) -> Counter[str]:
        """RETURNS (Counter[str]): Entities of all inputs, a label."""
        return sum((each.entities for each in self.inputs), Counter())

    def to_dict(self) -> dict[str, Any]:
        """RETURNS (Dict[str, Any]): The report as JSON-serializable data, with the totals."""
        return {
            "output": self.output,
            "documents": self.documents,
            "tokens": self.tokens,
            "entities": dict(self.entities.most_common()),
            "inputs": [each.to_dict() for each in self.inputs],
        }
