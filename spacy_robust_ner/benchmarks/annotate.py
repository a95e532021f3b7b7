"""How fast dictionaries are built and matched, on synthetic data that are the same everywhere."""

import os
import random
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import spacy

from ..corpus.dictionaries import DictionarySource, read_entries
from ..corpus.distant import Annotator, annotate_units
from ..corpus.matching import DictionaryMatcher, MatchCounts, check_minimum
from ..corpus.units import read_units

_LABELS = ("PER", "ORG", "LOC", "PRODUCT", "MISC")
_SYLLABLES = ("ba", "den", "ir", "ko", "lum", "mas", "ne", "ol", "pra", "qui", "ros", "ta", "vel")
_WORDS = 30_000
_SENTENCE = 20


@dataclass(frozen=True)
class AnnotateBenchmark:
    """The measured figures. Memory is that of the whole process, in megabytes, None where the
    system does not tell; baseline is before the dictionary is read. CPU seconds stay the same
    when other programs keep the machine busy; the seconds on the clock do not.

    build_seconds (float): Reading the dictionary and building the matcher.
    annotate_seconds (float): Reading, tokenizing, matching and writing the corpus.
    tokens_per_second (int): Tokens by annotate_seconds.
    build_cpu_seconds (float): Processor time of building.
    match_cpu_seconds (float): Processor time of matching and resolving conflicts only.
    annotate_cpu_seconds (float): Processor time of annotating in the main process.
    worker_cpu_seconds (Optional[float]): Processor time of all worker processes.
    matches (int): Entities in the output.
    worker_megabytes (Optional[float]): Peak of the largest worker process.
    """

    entries: int
    tokens: int
    processes: int
    build_seconds: float
    annotate_seconds: float
    tokens_per_second: int
    build_cpu_seconds: float
    match_cpu_seconds: float
    annotate_cpu_seconds: float
    worker_cpu_seconds: float | None
    matches: int
    baseline_megabytes: float | None
    peak_megabytes: float | None
    worker_megabytes: float | None

    def to_dict(self) -> dict[str, Any]:
        """RETURNS (Dict[str, Any]): The figures as JSON-serializable data."""
        return asdict(self)


def benchmark_annotate(
    *, entries: int = 100_000, tokens: int = 1_000_000, processes: int = 1, seed: int = 0
) -> AnnotateBenchmark:
    """Annotate synthetic raw text with a synthetic dictionary.

    entries (int): Different names in the dictionary, of one to four words.
    tokens (int): About how many tokens the text has, in documents of about twenty.
    processes (int): Processes to annotate with.
    seed (int): Of the data.
    RETURNS (AnnotateBenchmark): The figures.
    """
    check_minimum(entries, "--entries", 1)
    check_minimum(tokens, "--tokens", 1)
    check_minimum(processes, "--processes", 1)
    with tempfile.TemporaryDirectory() as directory:
        dictionary, text = Path(directory) / "names.tsv", Path(directory) / "text.txt"
        _write_data(dictionary, text, entries=entries, tokens=tokens, seed=seed)
        nlp = spacy.blank("en")
        baseline = _peak_megabytes()
        build = _Stopwatch()
        matcher = DictionaryMatcher("en", read_entries([DictionarySource(dictionary)]))
        build.stop()
        annotate = _Stopwatch()
        report = annotate_units(
            read_units([text], nlp=nlp, format="lines"),
            Annotator(matcher),
            output=Path(directory) / "output",
            processes=processes,
        )
        annotate.stop()
        peak, worker = _peak_megabytes(), _peak_megabytes(children=True)
        return AnnotateBenchmark(
            entries=entries,
            tokens=report.tokens,
            processes=processes,
            build_seconds=round(build.seconds, 2),
            annotate_seconds=round(annotate.seconds, 2),
            tokens_per_second=round(report.tokens / annotate.seconds),
            build_cpu_seconds=round(build.cpu_seconds, 2),
            match_cpu_seconds=round(_match_cpu_seconds(matcher, text), 2),
            annotate_cpu_seconds=round(annotate.cpu_seconds, 2),
            worker_cpu_seconds=round(annotate.worker_cpu_seconds, 2) if processes > 1 else None,
            matches=sum(report.matches.values()),
            baseline_megabytes=baseline,
            peak_megabytes=peak,
            worker_megabytes=worker if processes > 1 else None,
        )


class _Stopwatch:
    """Clock and processor time since it was made; that of child processes once they have ended."""

    def __init__(self) -> None:
        self._start = self._read()

    def stop(self) -> None:
        passed = (now - then for now, then in zip(self._read(), self._start, strict=True))
        self.seconds, self.cpu_seconds, self.worker_cpu_seconds = passed

    def _read(self) -> tuple[float, float, float]:
        times = os.times()
        workers = times.children_user + times.children_system
        return time.perf_counter(), time.process_time(), workers


def _match_cpu_seconds(matcher: DictionaryMatcher, text: Path) -> float:
    """The same documents again, a thousand at a time since the processor's clock is coarse."""
    seconds = 0.0
    counts = MatchCounts()
    units = read_units([text], nlp=matcher.nlp, format="lines")
    while texts := [unit.text for unit in islice(units, 1000)]:
        docs = [matcher.make_doc(text) for text in texts if isinstance(text, str)]
        start = time.process_time()
        for doc in docs:
            matcher.find(doc, counts)
        seconds += time.process_time() - start
    return seconds


def _write_data(dictionary: Path, text: Path, *, entries: int, tokens: int, seed: int) -> None:
    rng = random.Random(seed)
    words = ["".join(rng.choices(_SYLLABLES, k=rng.randint(1, 4))) for _ in range(_WORDS)]
    names = _names(words, entries, rng)
    with dictionary.open("w", encoding="utf8") as file:
        file.writelines(f"{name}\t{rng.choice(_LABELS)}\n" for name in names)
    with text.open("w", encoding="utf8") as file:
        written = 0
        while written < tokens:
            sentence = rng.choices(words, k=_SENTENCE - 4)
            sentence.insert(rng.randrange(len(sentence)), rng.choice(names))
            line = " ".join(sentence)
            written += line.count(" ") + 2
            file.write(f"{line}.\n")


def _names(words: list[str], count: int, rng: random.Random) -> list[str]:
    def propose() -> Iterator[str]:
        while True:
            yield " ".join(word.title() for word in rng.choices(words, k=rng.randint(1, 4)))

    names: dict[str, None] = {}
    for name in propose():
        names[name] = None
        if len(names) == count:
            break
    return list(names)


def _peak_megabytes(*, children: bool = False) -> float | None:
    try:
        import resource
    except ImportError:
        return None
    who = resource.RUSAGE_CHILDREN if children else resource.RUSAGE_SELF
    # The unit is a kilobyte on Linux and a byte on macOS.
    scale = 1024**2 if sys.platform == "darwin" else 1024
    return round(resource.getrusage(who).ru_maxrss / scale, 1)
