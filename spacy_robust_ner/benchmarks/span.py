"""What the span component costs beside the encoder, beside other components, and in memory."""

import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from .span_memory import DocumentMemory, measure_memory
from .span_speed import InferenceSpeed, measure_inference, ratios
from .span_training import TrainingCost, measure_training
from .synthetic import write_encoder
from .timing import one_thread

METHODS = ("span-ns", "span-nsv", "top-neg", "nrces", "span-all", "span-ratio", "span-segments")
PARTS = ("training", "inference", "memory")


@dataclass(frozen=True)
class SpanBenchmark:
    """The measured figures, of which only the ratios mean something on another machine.

    training (List[TrainingCost]): What each method adds to the encoder's training step.
    inference (List[InferenceSpeed]): Pipelines with the same transformer.
    memory (List[DocumentMemory]): Long documents.
    """

    training: list[TrainingCost]
    inference: list[InferenceSpeed]
    memory: list[DocumentMemory]

    @property
    def speed_ratios(self) -> dict[str, float]:
        """RETURNS (Dict[str, float]): Words a second as a multiple of each other component's."""
        return ratios(self.inference) if self.inference else {}

    def to_dict(self) -> dict[str, Any]:
        """RETURNS (Dict[str, Any]): The figures as JSON-serializable data."""
        return {
            "training": [{**asdict(cost), "share": cost.share} for cost in self.training],
            "inference": [asdict(speed) for speed in self.inference],
            "speed_ratios": self.speed_ratios,
            "memory": [{**asdict(item), "growth": item.growth} for item in self.memory],
        }


def benchmark_span(
    *,
    encoder: Path | None = None,
    parts: Sequence[str] = PARTS,
    methods: Sequence[str] = METHODS,
    lengths: Sequence[int] = (15, 50, 150),
    batch_size: int = 16,
    max_width: int = 10,
    repetitions: int = 7,
    documents: int = 64,
    train_steps: int = 40,
    memory_lengths: Sequence[int] = (5_000, 10_000, 20_000),
) -> SpanBenchmark:
    """Measure on one thread, in processor time.

    encoder (Optional[Path]): A transformer's directory; one of MiniLM's size with random weights
        if not given.
    parts (Sequence[str]): What to measure, of PARTS.
    methods (Sequence[str]): Span recipes whose training step is timed.
    lengths (Sequence[int]): Tokens a sentence in training.
    batch_size (int): Sentences a batch in training.
    max_width (int): Tokens in the widest candidate span.
    repetitions (int): Runs of everything that is timed; the median counts.
    documents (int): Documents to process.
    train_steps (int): Batches that pipelines learn from before they are timed.
    memory_lengths (Sequence[int]): Tokens of the long documents.
    RETURNS (SpanBenchmark): The figures.
    """
    needs_encoder = bool({"training", "inference"} & set(parts))
    memory = measure_memory(lengths=memory_lengths) if "memory" in parts else []
    with one_thread(), tempfile.TemporaryDirectory() as directory:
        training: list[TrainingCost] = []
        inference: list[InferenceSpeed] = []
        if encoder is None and needs_encoder:
            encoder = write_encoder(Path(directory))
        if encoder is not None and "training" in parts:
            training = measure_training(
                encoder,
                methods=methods,
                lengths=lengths,
                batch_size=batch_size,
                max_width=max_width,
                repetitions=repetitions,
            )
        if encoder is not None and "inference" in parts:
            inference = measure_inference(
                encoder,
                documents=documents,
                max_width=max_width,
                train_steps=train_steps,
                repetitions=repetitions,
            )
    return SpanBenchmark(training, inference, memory)
