"""Every loss with every other part."""

import itertools

import numpy as np
import pytest
from spacy.tokens import Span
from span_pipes import example_of, misc
from token_pipes import NAME, make_token_nlp, two_step

LOSSES = {
    "TokenCrossEntropy": misc("TokenCrossEntropy"),
    "TokenPURisk": misc("TokenPURisk"),
    "CRFLikelihood": misc("CRFLikelihood"),
    "CRFLikelihood, marginalize": misc("CRFLikelihood", removal="marginalize"),
    "PartialCRF": misc("PartialCRF"),
    "WeightedPartialCRF": misc("WeightedPartialCRF", completion=misc("CrossFitting", epochs=1)),
    "FuzzyCRF": misc("FuzzyCRF"),
}
TERMS = {
    "ratio": misc("ExpectedEntityRatio", ratio=None),
    "two_step": two_step(share=0.3),
    "non_sampling": misc("NonSpanSampler", rate=0.3),
}
CHOICES = [
    dict(itertools.compress(TERMS.items(), chosen))
    for chosen in itertools.product([0, 1], repeat=3)
]


def odd_examples(nlp):
    """All states of annotation in one batch."""
    examples = [
        example_of(nlp, ["Ada", "lives", "in", "New", "York"], [(0, 1, "PER"), (3, 5, "LOC")]),
        example_of(nlp, ["no", "name", "here"], complete=True),
        example_of(nlp, ["Bob", "is", "out"], [(0, 1, "PER")], missing=[2], complete=True),
        example_of(nlp, ["Eve", "is", "in"], missing=[0], rejected=[(2, 3, "LOC")]),
        example_of(nlp, ["?"], missing=[0]),
        example_of(nlp, []),
    ]
    reference = examples[0].reference
    reference.spans["phrases"] = [Span(reference, 1, 4, "")]
    return examples


@pytest.mark.parametrize("terms", CHOICES, ids=lambda terms: "+".join(terms) or "nothing")
@pytest.mark.parametrize("loss", LOSSES)
def test_training_lowers_the_loss(loss, terms):
    scheme = "bio" if len(terms) % 2 else "bioes"
    crf = loss not in ("TokenCrossEntropy", "TokenPURisk")
    settings = {"ratio": None, **terms, "loss": LOSSES[loss], "crf": crf, "scheme": scheme}
    nlp = make_token_nlp(**settings)
    examples = odd_examples(nlp)
    optimizer = nlp.initialize(lambda: examples)
    optimizer.learn_rate = 0.01
    losses = [nlp.update(examples, sgd=optimizer)[NAME] for _ in range(6)]
    assert np.isfinite(losses).all()
    assert min(losses[3:]) < losses[0]
