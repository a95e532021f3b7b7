"""What the token component costs beside the encoder and beside `ner`."""

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .ratio import Ratio
from .synthetic import write_encoder
from .tagger_exploration import measure_exploration
from .tagger_inference import measure_inference
from .tagger_training import measure_training
from .timing import one_thread

METHODS = ("token-crf", "partial-crf", "token-ratio", "two-step-crf")
PARTS = ("training", "inference", "exploration")
ENCODERS = ("trf", "cnn")


@dataclass(frozen=True)
class TaggerBenchmark:
    """ratios (List[Ratio]): The measured figures."""

    ratios: list[Ratio]

    @property
    def failed(self) -> list[Ratio]:
        """RETURNS (List[Ratio]): The figures beyond their limits."""
        return [ratio for ratio in self.ratios if ratio.passed is False]

    def to_dict(self) -> dict[str, Any]:
        """RETURNS (Dict[str, Any]): The figures as JSON-serializable data."""
        return {"ratios": [ratio.to_dict() for ratio in self.ratios], "failed": len(self.failed)}


def benchmark_tagger(
    *,
    encoders: Sequence[str] = ENCODERS,
    transformer: Path | None = None,
    parts: Sequence[str] = PARTS,
    methods: Sequence[str] = METHODS,
    lengths: Sequence[int] = (15, 50),
    batch_size: int | None = None,
    run_epochs: int = 20,
    repetitions: int = 7,
) -> TaggerBenchmark:
    """Measure on one thread, in processor time.

    encoders (Sequence[str]): With which encoders, of ENCODERS.
    transformer (Optional[Path]): A transformer's directory; one of MiniLM's size with random
        weights if not given.
    parts (Sequence[str]): What to measure, of PARTS.
    methods (Sequence[str]): Token recipes whose training step is timed.
    lengths (Sequence[int]): Tokens a sentence in training.
    batch_size (Optional[int]): Sentences a batch in training; as in the recipes if not given.
    run_epochs (int): Epochs of the run that exploration is compared with.
    repetitions (int): Runs of everything that is timed; the median counts.
    RETURNS (TaggerBenchmark): The figures.
    """
    ratios: list[Ratio] = []
    with one_thread(), tempfile.TemporaryDirectory() as directory:
        for name in encoders:
            encoder = None
            if name == "trf":
                encoder = transformer or write_encoder(Path(directory))
            if "training" in parts:
                ratios += measure_training(
                    encoder,
                    methods=methods,
                    lengths=lengths,
                    batch_size=batch_size,
                    repetitions=repetitions,
                )
            if "inference" in parts:
                ratios += measure_inference(encoder, repetitions=repetitions)
            if "exploration" in parts:
                # An epoch is long enough to need fewer repetitions.
                ratios += measure_exploration(
                    encoder, run_epochs=run_epochs, repetitions=(repetitions + 1) // 2
                )
    return TaggerBenchmark(ratios)
