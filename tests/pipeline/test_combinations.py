"""Which heads, samplers, losses and terms go together."""

import itertools
import json

import numpy as np
import pytest
import spacy
from spacy.util import registry
from span_pipes import HEADS, NAME, TRAIN_DATA, make_examples, misc, pipe_config, weights

SAMPLERS = {
    "all": misc("AllSampler"),
    "uniform": misc("UniformSampler", rate=0.5),
    "weighted": misc("WeightedSampler", rate=0.5),
    "similar": misc("TopSimilaritySampler", share=0.3),
    "fraction": misc("FractionSampler", share=0.5),
}
FAIR_SAMPLERS = ("all", "uniform", "fraction")
LOSSES = {
    "cross_entropy": misc("CrossEntropy"),
    "nrces": misc("NRCES", w=2.0),
    "pu": misc("PURisk", unlabeled_factor=2.0),
    "confidence_pu": misc("ConfidencePURisk", unlabeled_factor=2.0),
    "segmentation": misc("SegmentationLikelihood"),
}
CONTRASTIVE = misc("ContrastiveTerm", weight=0.2)
RATIO = misc("RatioTerm", ratio=0.3, margin=0.0)
RETRIEVAL = misc("Retrieval")
NEEDS_FAIR = [
    (sampler, loss)
    for sampler, loss in itertools.product(SAMPLERS, LOSSES)
    if sampler not in FAIR_SAMPLERS and loss in ("pu", "confidence_pu")
]
SENSIBLE = [pair for pair in itertools.product(SAMPLERS, LOSSES) if pair not in NEEDS_FAIR]


@pytest.fixture(scope="module")
def nlp():
    return spacy.blank("xx")


@pytest.fixture(scope="module")
def confidence(tmp_path_factory):
    path = tmp_path_factory.mktemp("confidence") / "spans.jsonl"
    lines = [
        json.dumps({"tokens": text.split(), "spans": [[0, 1, 0.9], [4, 5, 0.8]]})
        for text, _ in TRAIN_DATA
    ]
    path.write_text("\n".join(lines), encoding="utf8")
    return misc("FileConfidence", path=str(path))


def create(nlp, **settings):
    return nlp.create_pipe(NAME, NAME, config=pipe_config(**settings))


@pytest.mark.parametrize("with_retrieval", [False, True], ids=["", "retrieval"])
@pytest.mark.parametrize("with_ratio", [False, True], ids=["", "ratio"])
@pytest.mark.parametrize("with_contrastive", [False, True], ids=["", "contrastive"])
@pytest.mark.parametrize(("sampler", "loss"), SENSIBLE)
def test_every_sensible_combination_learns(
    sampler, loss, with_contrastive, with_ratio, with_retrieval, nlp, confidence
):
    terms = {"contrastive": with_contrastive, "ratio": with_ratio}
    settings = {
        "sampler": SAMPLERS[sampler],
        "loss": LOSSES[loss],
        "confidence": confidence if loss == "confidence_pu" else None,
        "contrastive": CONTRASTIVE if with_contrastive else None,
        "ratio": RATIO if with_ratio else None,
        "retrieval": RETRIEVAL if with_retrieval else None,
    }
    if loss == "segmentation" and with_retrieval:
        with pytest.raises(ValueError, match=r"R140.*SegmentationLikelihood"):
            create(nlp, **settings)
        return
    examples = make_examples(nlp)
    optimizer = nlp.create_optimizer()
    for head in HEADS:
        pipe = create(nlp, head=head, **settings)
        pipe.initialize(lambda: examples)
        encoder, layer = pipe.model.get_ref("tok2vec"), pipe.model.get_ref("head")
        before = weights(encoder), weights(layer)
        losses = pipe.update(examples, sgd=optimizer)
        after = weights(encoder), weights(layer)
        assert all(np.isfinite(list(losses.values()))), head
        assert losses[NAME] > 0, head
        for old, new in zip(before, after, strict=True):
            assert max(abs(a - b).max() for a, b in zip(old, new, strict=True)) > 0, head
            assert all(np.isfinite(array).all() for array in new), head
        assert losses[f"{NAME}_positives"] == 3
        assert losses[f"{NAME}_negatives"] > 0
        logged = {name for name in terms if f"{NAME}_{name}" in losses}
        assert logged == {name for name, used in terms.items() if used}
        assert (pipe.centroids is not None) == with_retrieval
        assert len(pipe.predict([eg.predicted for eg in examples])) == 2


@pytest.mark.parametrize(("sampler", "loss"), NEEDS_FAIR)
def test_risks_need_a_fair_sample(sampler, loss, nlp, confidence):
    with pytest.raises(ValueError, match=r"R111.*Risk.*Sampler.*All, Uniform or Fraction"):
        create(nlp, sampler=SAMPLERS[sampler], loss=LOSSES[loss], confidence=confidence)


def test_confidence_risk_needs_a_confidence(nlp):
    with pytest.raises(ValueError, match=r"R113.*ConfidencePURisk.*PipelineConfidence"):
        create(nlp, loss=LOSSES["confidence_pu"])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"sampler": misc("UniformSampler", rate=-1.0)}, r"R103.*rate"),
        ({"sampler": misc("FractionSampler", share=1.5)}, "R103.*share"),
        ({"loss": misc("NRCES", w=0.0)}, "R103.*'w'"),
        ({"contrastive": misc("ContrastiveTerm", weight=2.0)}, "R103.*weight"),
        ({"ratio": misc("RatioTerm", ratio=-0.1)}, "R103.*ratio"),
        ({"spans_key": "sc", "spans_overlap": "some"}, "spans_overlap"),
        ({"loss": misc("NRCES", variant="wrong")}, "variant"),
        ({"retrieval": misc("Retrieval", form="wrong")}, "form"),
        ({"retrieval": misc("Retrieval", alpha=1.5)}, "alpha"),
        ({"max_width": 0}, "R100.*max_width"),
        ({"chunk_size": 0}, "R102.*budget of 0"),
        ({"threshold": 1.5}, "threshold"),
        ({"max_epochs": 0}, "max_epochs"),
        ({"head_learn_rate_scale": -1.0}, "head_learn_rate_scale"),
        ({"retrieval": misc("Retrieval", decay=1.5)}, "decay"),
        ({"loss": misc("PURisk", priors={"PER": 0.7, "LOC": 0.5})}, "R107"),
    ],
)
def test_bad_settings_are_named_when_the_pipe_is_made(settings, message, nlp):
    with pytest.raises(ValueError, match=message):
        create(nlp, **settings)


@pytest.mark.parametrize("name", ["PURisk", "ConfidencePURisk"])
def test_positives_weigh_as_much_as_all_candidates_unless_told_otherwise(name):
    shares = {"PER": 0.002, "LOC": 0.003}
    build = registry.misc.get(f"spacy_robust_ner.{name}.v1")
    loss = build(unlabeled_factor=2.0).build(("O", "PER", "LOC"), shares)
    assert loss.priors == pytest.approx((0.0, 0.004, 0.006))
    assert loss.gamma == pytest.approx(100.0)
    assert build(gamma=3.0).build(("O", "PER", "LOC"), shares).gamma == 3.0
    assert build().build(("O", "PER"), {}).gamma == 1.0
