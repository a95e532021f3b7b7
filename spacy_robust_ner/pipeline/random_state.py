"""The random generators of training, saved so that resumed training does not repeat itself."""

from collections.abc import Mapping

import torch

from ..types import NegativeSampler


def random_state(
    sampler: NegativeSampler, generators: Mapping[str, torch.Generator]
) -> dict[str, bytes]:
    """sampler (NegativeSampler): Chooses the negatives.
    generators (Mapping[str, torch.Generator]): Those of the other parts, by name.
    RETURNS (Dict[str, bytes]): Their states.
    """
    states = {name: g.get_state().numpy().tobytes() for name, g in generators.items()}
    return {"sampler": sampler.get_state(), **states}


def set_random_state(
    sampler: NegativeSampler, generators: Mapping[str, torch.Generator], state: Mapping[str, bytes]
) -> None:
    """Let generators go on where others were.

    sampler (NegativeSampler): Chooses the negatives.
    generators (Mapping[str, torch.Generator]): Those of the other parts, by name.
    state (Mapping[str, bytes]): From `random_state`. What was saved for a sampler of another kind,
        or for a part that is not there, has no effect.
    """
    if len(state.get("sampler", b"")) == len(sampler.get_state()):
        sampler.set_state(state["sampler"])
    for name, generator in generators.items():
        if name in state:
            generator.set_state(torch.frombuffer(bytearray(state[name]), dtype=torch.uint8))
