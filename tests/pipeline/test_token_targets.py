"""What the token component takes from the annotation of its examples."""

import warnings

import numpy as np
import pytest
from spacy.tokens import Doc, Span
from spacy.training import Example
from span_pipes import example_of, make_examples, misc, spans_of, train
from token_pipes import NAME, make_token_nlp, tags_of

WORDS = ["Ada", "Lovelace", "lives", "in", "London"]
PER, LOC = (0, 2, "PER"), (4, 5, "LOC")


def initialized(**settings):
    nlp = make_token_nlp(**settings)
    nlp.initialize(lambda: make_examples(nlp))
    return nlp


def test_entities_outside_and_missing():
    nlp = initialized()
    tags, batch = tags_of(nlp, [example_of(nlp, WORDS, [PER, LOC], missing=[3])])
    assert tags == ["B-PER", "E-PER", "O", None, "S-LOC"]
    assert batch.complete.tolist() == [False]
    assert batch.removed is None


def test_entities_with_other_labels_are_outside():
    nlp = initialized()
    tags, _ = tags_of(nlp, [example_of(nlp, WORDS, [(0, 2, "DRUG"), LOC])])
    assert tags == ["O", "O", "O", "O", "S-LOC"]


@pytest.mark.parametrize(
    ("default", "expected"), [(False, [True, False, False]), (True, [True, False, True])]
)
def test_complete_flag_and_its_default(default, expected):
    nlp = initialized(default_complete=default)
    flags = [True, False, None]
    _, batch = tags_of(nlp, [example_of(nlp, ["a"], complete=flag) for flag in flags])
    assert batch.complete.tolist() == expected


def test_outside_in_rejected_spans_is_trusted():
    nlp = initialized()
    example = example_of(nlp, WORDS, [PER], missing=[4], rejected=[(1, 3, "PER"), (4, 5, "LOC")])
    tags, batch = tags_of(nlp, [example])
    assert tags == ["B-PER", "E-PER", "O", "O", None]
    assert batch.trusted.tolist() == [False, False, True, False, False]
    assert nlp.get_pipe(NAME).reader.outside_candidates(example).tolist() == [3]


def test_outside_by_writing_is_trusted():
    nlp = initialized(outside_by_writing=True)
    pipe = nlp.get_pipe(NAME)
    pipe.cfg["outside_places"] = ["Xxx"]
    example = example_of(nlp, WORDS, [PER])
    _, batch = tags_of(nlp, [example])
    assert batch.trusted.tolist() == [False, False, True, False, False]
    assert pipe.reader.outside_candidates(example).tolist() == [3, 4]


def test_complete_documents_have_no_candidates_for_removal():
    nlp = initialized()
    reader = nlp.get_pipe(NAME).reader
    example = example_of(nlp, WORDS, [PER], missing=[4])
    assert reader.outside_candidates(example).tolist() == [2, 3]
    vouched = example_of(nlp, WORDS, [PER], missing=[4], complete=True)
    assert reader.outside_candidates(vouched).tolist() == []


def test_misaligned_tokens():
    """Two predicted tokens for one gold token, and an entity that ends inside of a token."""
    nlp = initialized()
    reference = Doc(nlp.vocab, words=["Ada", "Lovelace", "livesin", "London", "."])
    reference.set_ents([Span(reference, 0, 2, "PER"), Span(reference, 3, 4, "LOC")])
    predicted = Doc(
        nlp.vocab,
        words=["Ada", "Lovelace", "lives", "in", "London."],
        spaces=[True, True, False, True, False],
    )
    tags, _ = tags_of(nlp, [Example(predicted, reference)])
    assert tags[:2] == ["B-PER", "E-PER"]
    assert tags[2:] == ["O", "O", None]


def test_partial_crf_learns_no_outside_from_incomplete_documents():
    """With every O unknown, a model that only ever saw entities finds them everywhere; it takes
    complete documents or rejected spans to teach it otherwise."""
    found = {}
    for case, extra in {
        "incomplete": {},
        "complete": {"complete": True},
        "rejected": {"rejected": [(0, 3, "PER")]},
    }.items():
        nlp = make_token_nlp(loss="PartialCRF")
        plain = ["nobody", "lives", "here"]
        examples = [
            example_of(nlp, ["Ada"], [(0, 1, "PER")]),
            example_of(nlp, plain, **extra),
        ]
        train(nlp, examples, steps=30)
        assert spans_of(nlp(Doc(nlp.vocab, words=["Ada"])).ents) == [(0, 1, "PER")]
        found[case] = len(nlp(Doc(nlp.vocab, words=plain)).ents)
    assert found["incomplete"] > 0
    assert (found["complete"], found["rejected"]) == (0, 0)


@pytest.mark.parametrize("loss", ["CRFLikelihood", "PartialCRF", "TokenCrossEntropy"])
def test_nothing_is_learned_from_missing_tokens(loss):
    nlp = make_token_nlp(loss=loss, crf=loss != "TokenCrossEntropy")
    nlp.initialize(lambda: make_examples(nlp))
    nothing = example_of(nlp, ["a", "b"], missing=[0, 1])
    pipe = nlp.get_pipe(NAME)
    losses = pipe.update([nothing], sgd=None)
    assert losses[NAME] == pytest.approx(0.0, abs=1e-6)
    gradients = [p.grad for p in pipe.head.parameters() if p.grad is not None]
    assert all(float(g.abs().max()) < 1e-6 for g in gradients)


def test_non_spans_are_drawn_anew_each_epoch_and_the_same_each_time():
    nlp = initialized(non_sampling=misc("NonSpanSampler", rate=0.2, max_width=3))
    pipe = nlp.get_pipe(NAME)
    example = example_of(nlp, [f"w{i}" for i in range(20)], [(5, 7, "PER")])
    drawn = []
    for epoch in (0, 1, 2, 0):
        pipe.progress.tell(epoch)
        tags, _ = tags_of(nlp, [example])
        assert tags[5:7] == ["B-PER", "E-PER"]
        drawn.append(tags)
    assert drawn[0] == drawn[3]
    assert drawn[0] != drawn[1] != drawn[2]
    names = {tag for tags in drawn for tag in tags if tag.endswith("-NON")}
    assert "S-NON" in names
    assert names <= {"B-NON", "I-NON", "E-NON", "S-NON"}
    assert sum(tag in ("B-NON", "S-NON") for tag in drawn[0]) == 4


def test_non_is_outside_in_predictions():
    nlp = make_token_nlp(non_sampling=misc("NonSpanSampler", rate=1.0, max_width=1))
    examples = make_examples(nlp)
    train(nlp, examples, steps=60)
    pipe = nlp.get_pipe(NAME)
    doc = examples[0].predicted
    best = pipe.decisions([doc])[0].argmax(1).tolist()
    assert [pipe.tag_set.tags[tag] for tag in best].count("S-NON") == 3
    assert spans_of(nlp(doc.text).ents) == [PER, LOC]


@pytest.mark.filterwarnings("ignore:.*W105")
def test_dictionary_and_phrases_for_the_fuzzy_crf():
    loss = misc("FuzzyCRF", matches_key="matches", phrases_key="phrases")
    nlp = initialized(loss=loss)
    example = example_of(nlp, [*WORDS, "!"], [], missing=[5])
    reference = example.reference
    reference.spans["matches"] = [
        Span(reference, 0, 2, "PER"),
        Span(reference, 0, 2, "LOC"),
        Span(reference, 4, 5, "UNKNOWN"),
    ]
    reference.spans["phrases"] = [Span(reference, 3, 5, "")]
    _, batch = tags_of(nlp, [example])
    tags = np.array(nlp.get_pipe(NAME).tag_set.tags)
    allowed = [set(tags[row].tolist()) for row in batch.allowed.numpy()]
    everything = set(tags.tolist())
    assert allowed[:3] == [{"B-PER", "B-LOC"}, {"E-PER", "E-LOC"}, {"O"}]
    assert allowed[3:] == [everything] * 3


def test_fuzzy_crf_leaves_phrases_open():
    """A phrase may be an entity like those that it looks like; anything else is outside."""
    probs = []
    for phrases in ([(1, 2, "")], []):
        nlp = make_token_nlp(loss="FuzzyCRF")
        known = example_of(nlp, ["in", "London"], [(1, 2, "LOC")])
        doubtful = example_of(nlp, ["in", "Londinium"])
        reference = doubtful.reference
        reference.spans["phrases"] = [Span(reference, *phrase) for phrase in phrases]
        train(nlp, [known, doubtful], steps=40)
        pipe = nlp.get_pipe(NAME)
        values, lengths = pipe.decisions([doubtful.predicted])
        probs.append(float(pipe.head.crf.marginals(values[None], lengths)[0, 1, 0]))
    assert probs[0] < 0.5
    assert probs[1] > 0.9


def test_fuzzy_crf_without_phrases_warns():
    """It would be an ordinary CRF, and nobody would know."""
    words = ["in", "London"]
    for settings, phrases, missing, warned in (
        ({}, None, [], True),
        ({}, [], [], False),
        ({}, None, [0], False),
        ({"phrases_key": "other"}, [], [], True),
        ({"phrases_key": None}, None, [], False),
    ):
        nlp = make_token_nlp(loss=misc("FuzzyCRF", **settings))
        example = example_of(nlp, words, [(1, 2, "LOC")], missing=missing)
        if phrases is not None:
            example.reference.spans["phrases"] = phrases
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            nlp.initialize(lambda example=example: [example])
        assert any("[W105]" in str(each.message) for each in caught) is warned


def test_priors_of_the_risk_come_from_the_training_tokens():
    loss = misc("TokenPURisk", priors={"PER": 0.25}, unlabeled_factor=2.0)
    nlp = initialized(loss=loss, crf=False)
    pipe = nlp.get_pipe(NAME)
    # Two of thirteen tokens each: LOC, LOC, and the two of PER.
    shares = pipe.cfg["label_shares"]
    assert shares == {"LOC": 2 / 13, "PER": 2 / 13}
    assert pipe.loss.build(shares).priors == {"LOC": 4 / 13, "PER": 0.25}


def test_ratio_is_added_and_logged():
    ratio = misc("ExpectedEntityRatio", ratio=0.9, margin=0.0, margin_below=0.0, weight=10.0)
    nlp = initialized(ratio=ratio, loss="PartialCRF")
    losses = nlp.get_pipe(NAME).update(make_examples(nlp), sgd=None)
    assert losses[f"{NAME}_ratio"] > 0
    assert losses[NAME] == pytest.approx(losses[f"{NAME}_loss"] + losses[f"{NAME}_ratio"])


def test_ratio_pulls_the_share_of_entities():
    shares = []
    for target in (0.1, 0.9):
        ratio = misc("ExpectedEntityRatio", ratio=target, margin=0.0, margin_below=0.0, weight=10.0)
        nlp = make_token_nlp(ratio=ratio, loss="PartialCRF")
        words = [f"word{i}" for i in range(20)]
        examples = [example_of(nlp, words), example_of(nlp, ["Ada"], [(0, 1, "PER")])]
        train(nlp, examples, steps=60)
        doc = nlp(Doc(nlp.vocab, words=words))
        shares.append(sum(len(ent) for ent in doc.ents) / 20)
    assert shares[0] < 0.3
    assert shares[1] > 0.7


def test_estimated_ratio_is_that_of_complete_documents():
    ratio = misc("ExpectedEntityRatio", ratio=None, margin=0.03)
    nlp = make_token_nlp(ratio=ratio, loss="PartialCRF")
    words = ["a", "b", "c", "d"]
    examples = [
        example_of(nlp, words, [(0, 1, "X")], missing=[3], complete=True) for _ in range(700)
    ]
    examples.append(example_of(nlp, ["e", "f"], [(0, 2, "X")]))
    nlp.initialize(lambda: examples)
    pipe = nlp.get_pipe(NAME)
    assert pipe.cfg["ratio"] == pytest.approx(1 / 3)
    term = pipe._ratio_term()
    assert (term.ratio, term.margin) == (pipe.cfg["ratio"], 0.03)
    with pytest.warns(UserWarning, match="W101"):
        nlp.initialize(lambda: examples[-1:])
    assert pipe.cfg["ratio"] == 1.0
