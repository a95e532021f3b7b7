"""Where training stands: schedules follow epochs, which a component is not told."""

from dataclasses import dataclass


@dataclass
class TrainingProgress:
    """Counts epochs. The callback `spacy_robust_ner.track_epochs.v1` in [training.before_update]
    tells the true epoch; without it, an epoch is over when as many examples have come as there
    were at initialization.

    epoch (int): Completed epochs, with those of earlier training.
    examples_per_epoch (Optional[int]): Training examples, if they were counted.
    """

    epoch: int = 0
    examples_per_epoch: int | None = None
    _before: int = 0
    _seen: int = 0
    _is_told: bool = False

    def resume(self, epoch: int) -> None:
        """epoch (int): Epochs that earlier training had completed."""
        self.epoch = self._before = epoch
        self._seen = 0
        self._is_told = False

    def tell(self, epoch: int) -> None:
        """epoch (int): The current epoch of this training, from 0."""
        self._is_told = True
        self.epoch = self._before + epoch

    def count(self, examples: int) -> None:
        """examples (int): How many examples were just learned from."""
        self._seen += examples
        if not self._is_told and self.examples_per_epoch:
            self.epoch = self._before + self._seen // self.examples_per_epoch
