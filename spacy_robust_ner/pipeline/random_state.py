"""The random generators of training, saved so that resumed training does not repeat itself."""

import torch

from ..span.contrastive import ContrastiveTerm
from ..types import NegativeSampler


def random_state(sampler: NegativeSampler, contrastive: ContrastiveTerm | None) -> dict[str, bytes]:
    """sampler (NegativeSampler): Chooses the negatives.
    contrastive (Optional[ContrastiveTerm]): The contrastive term.
    RETURNS (Dict[str, bytes]): The state of their generators.
    """
    state = {"sampler": sampler.get_state()}
    if contrastive is not None:
        state["contrastive"] = contrastive.generator.get_state().numpy().tobytes()
    return state


def set_random_state(
    sampler: NegativeSampler, contrastive: ContrastiveTerm | None, state: dict[str, bytes]
) -> None:
    """Let generators go on where others were.

    sampler (NegativeSampler): Chooses the negatives.
    contrastive (Optional[ContrastiveTerm]): The contrastive term.
    state (Dict[str, bytes]): From `random_state`. What was saved for a sampler of another kind,
        or for a term that is not there, has no effect.
    """
    if len(state.get("sampler", b"")) == len(sampler.get_state()):
        sampler.set_state(state["sampler"])
    if contrastive is not None and "contrastive" in state:
        numbers = torch.frombuffer(bytearray(state["contrastive"]), dtype=torch.uint8)
        contrastive.generator.set_state(numbers)
