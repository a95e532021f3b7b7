"""Memory of processing one long document, in a process of its own."""

import json
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import spacy

from .synthetic import as_examples, make_docs


@dataclass(frozen=True)
class DocumentMemory:
    """Memory of one document.

    tokens (int): Its length.
    before_megabytes (Optional[float]): Peak of the process before; None where the system does not
        tell.
    peak_megabytes (Optional[float]): Peak after it was processed.
    """

    tokens: int
    before_megabytes: float | None
    peak_megabytes: float | None

    @property
    def growth(self) -> float | None:
        """RETURNS (Optional[float]): What the document added to the peak, in megabytes."""
        if self.peak_megabytes is None or self.before_megabytes is None:
            return None
        return self.peak_megabytes - self.before_megabytes


def measure_memory(*, lengths: Sequence[int]) -> list[DocumentMemory]:
    """Process one document of each length with the CNN pipe and its default settings, each in a
    new process.

    lengths (Sequence[int]): Tokens of the documents.
    RETURNS (List[DocumentMemory]): The peaks.
    """
    figures = []
    for length in lengths:
        done = subprocess.run(
            [sys.executable, "-m", __name__, str(length)],
            stdout=subprocess.PIPE,
            check=True,
            text=True,
        )
        figures.append(DocumentMemory(**json.loads(done.stdout)))
    return figures


def peak_megabytes() -> float | None:
    """RETURNS (Optional[float]): The most memory that this process has had."""
    status = Path("/proc/self/status")
    if status.exists():
        # What getrusage says of a new process on Linux starts at the peak of its parent.
        match = re.search(r"VmHWM:\s+(\d+) kB", status.read_text(encoding="utf8"))
        if match is not None:
            return int(match[1]) / 1024
    try:
        import resource
    except ImportError:
        return None
    # The unit is a kilobyte on Linux and a byte on macOS.
    scale = 1024**2 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / scale


def process_document(tokens: int) -> DocumentMemory:
    """Process one document in this process.

    tokens (int): Its length.
    RETURNS (DocumentMemory): The peaks before and after.
    """
    nlp = spacy.blank("en")
    nlp.add_pipe("robust_span_ner")
    train = make_docs(nlp.vocab, count=320, length=15, seed=1)
    examples = as_examples(train)
    optimizer = nlp.initialize(lambda: examples)
    # An untrained pipe finds entities everywhere, and all of them have to be kept.
    for start in range(0, len(examples), 16):
        nlp.update(examples[start : start + 16], sgd=optimizer)
    (doc,) = make_docs(nlp.vocab, count=1, length=tokens)
    for _, component in nlp.pipeline:
        component(doc.copy()[:100].as_doc())
    before = peak_megabytes()
    for _, component in nlp.pipeline:
        component(doc)
    return DocumentMemory(tokens, before, peak_megabytes())


if __name__ == "__main__":
    figures = process_document(int(sys.argv[1]))
    print(json.dumps(figures.__dict__))
