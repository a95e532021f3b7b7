"""Masking as data augmentation: ``[corpora.train.augmenter]`` with
``@augmenters = "spacy_robust_ner.mask_entities.v1"``."""

from collections.abc import Callable, Iterator

from spacy.language import Language
from spacy.training import Example

from .annotation import set_complete
from .corpus.draws import stable_hash, thresholds_for_probabilities
from .corpus.mask import (
    MaskedAs,
    check_masked_as,
    check_probability,
    choose_entities,
    make_draw,
    mask_doc,
)


def create_mask_entities_augmenter_v1(
    probability: float,
    seed: int = 0,
    by_surface: bool = False,
    masked_as: MaskedAs = "outside",
) -> Callable[[Language, Example], Iterator[Example]]:
    """Mask entities of every example. An example loses the same entities in each epoch, or the
    model would see them all in the end. It is told from others by its words, since its place in
    the corpus is not known here: equal texts lose the same, and the choice is another one than
    that of the ``mask`` command, except by surface form.

    probability (float): The chance of an entity to be masked.
    seed (int): The seed.
    by_surface (bool): Decide once for all mentions of a string.
    masked_as (MaskedAs): The state that masked tokens get.
    RETURNS (Callable[[Language, Example], Iterator[Example]]): The augmenter.
    """
    check_probability("masking", probability)
    check_masked_as(masked_as)
    thresholds = thresholds_for_probabilities(probability, {})
    draw = make_draw(seed, by_surface=by_surface)

    def augment(nlp: Language, example: Example) -> Iterator[Example]:
        reference = example.reference.copy()
        document = stable_hash(*(token.text for token in reference))
        mask_doc(
            reference,
            choose_entities(reference, document, draw, thresholds),
            masked_as=masked_as,
        )
        if probability:
            set_complete(reference, False)
        yield Example(example.predicted, reference)

    return augment
