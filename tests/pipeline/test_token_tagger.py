import numpy as np
import pytest
import spacy
import torch
from spacy.tokens import Doc
from spacy.training import Example
from span_pipes import (
    TRAIN_DATA,
    assert_same_ents,
    example_of,
    make_examples,
    misc,
    scored_ents,
    spans_of,
    train,
)
from token_pipes import NAME, make_token_nlp, token_config

EXPECTED = [(0, 2, "PER"), (4, 5, "LOC")]
TEXTS = [text for text, _ in TRAIN_DATA]
PLAIN = {"loss": "TokenCrossEntropy", "crf": False}


@pytest.fixture(scope="module")
def tagger():
    """A pipeline that knows the training data by heart; tests must not change it."""
    nlp = make_token_nlp()
    train(nlp, make_examples(nlp), steps=40)
    return nlp


def test_factory_is_found_with_its_defaults():
    pipe = spacy.blank("xx").add_pipe(NAME)
    assert pipe.name == NAME
    assert pipe.scheme == "bioes"
    assert pipe.model.attrs["crf"] is True
    assert pipe.labels == ()


def test_no_label_is_an_error():
    nlp = make_token_nlp()
    with pytest.raises(ValueError, match=r"R114.*robust_token_tagger.*2 examples"):
        nlp.initialize(lambda: [example_of(nlp, ["a", "b"]), example_of(nlp, ["c"])])


def test_no_token_is_an_error():
    nlp = make_token_nlp()
    nlp.get_pipe(NAME).add_label("PER")
    with pytest.raises(ValueError, match=r"R122.*1 training examples"):
        nlp.initialize(lambda: [example_of(nlp, [])])


def test_labels_are_read_from_the_data():
    nlp = make_token_nlp()
    nlp.initialize(lambda: make_examples(nlp))
    assert nlp.get_pipe(NAME).labels == ("LOC", "PER")
    assert nlp.get_pipe(NAME).label_data == ["LOC", "PER"]
    assert nlp.get_pipe(NAME).tag_set.tags[:2] == ("O", "B-LOC")


def test_labels_of_the_initialize_block_are_the_only_ones():
    nlp = make_token_nlp()
    nlp.config["initialize"]["components"][NAME] = {"labels": ["PER"]}
    train(nlp, make_examples(nlp), steps=40)
    assert nlp.get_pipe(NAME).labels == ("PER",)
    assert spans_of(nlp(TEXTS[0]).ents) == [(0, 2, "PER")]


def test_no_label_after_initialization():
    nlp = make_token_nlp()
    pipe = nlp.get_pipe(NAME)
    assert (pipe.add_label("A"), pipe.add_label("A")) == (1, 0)
    nlp.initialize()
    assert pipe.add_label("A") == 0
    with pytest.raises(ValueError, match=r"R120.*'NEW'"):
        pipe.add_label("NEW")


def test_initializing_again_may_bring_new_labels():
    nlp = make_token_nlp()
    nlp.get_pipe(NAME).add_label("LOC")
    nlp.initialize()
    train(nlp, make_examples(nlp), steps=40)
    assert spans_of(nlp(TEXTS[0]).ents) == EXPECTED


def test_every_factory_argument_arrives(tmp_path):
    settings = {
        "scheme": "bio",
        "loss": misc("CRFLikelihood", removal="marginalize", normalization="token"),
        "ratio": misc("ExpectedEntityRatio", ratio=0.2, margin=0.01, weight=3.0),
        "two_step": misc("TwoStep", epochs=3, share=0.1, write_to=str(tmp_path / "removed")),
        "non_sampling": misc("NonSpanSampler", rate=0.3, max_width=4, seed=5),
        "annotate_ents": False,
        "overwrite_ents": True,
        "spans_key": "found",
        "threshold": 0.7,
        "rejected_spans_key": "wrong",
        "default_complete": True,
        "withdraw_doubtful": False,
        "withdraw_fragments": False,
        "outside_by_writing": False,
        "head_learn_rate_scale": 5.0,
        "scorer": {"@scorers": "spacy.ner_scorer.v1"},
    }
    nlp = spacy.blank("xx")
    assert set(settings) == set(nlp.get_factory_meta(NAME).default_config) - {"model"}
    config = {**settings, "model": token_config()["model"]}
    pipe = nlp.add_pipe(NAME, "other_name", config=config)
    assert pipe.name == "other_name"
    for name, value in settings.items():
        if not isinstance(value, dict):
            assert getattr(pipe, name) == value, name
    assert (pipe.loss.removal, pipe.loss.normalization) == ("marginalize", "token")
    assert (pipe.ratio.ratio, pipe.ratio.margin, pipe.ratio.weight) == (0.2, 0.01, 3.0)
    step = pipe.two_step
    assert (step.epochs, step.share, step.write_to) == (3, 0.1, tmp_path / "removed")
    sampling = pipe.non_sampling
    assert (sampling.rate, sampling.max_width, sampling.seed) == (0.3, 4, 5)
    assert pipe.scorer.func.__name__ == "ner_score"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"scheme": "io"}, "scheme.*'io'"),
        ({"threshold": 1.5}, "R103.*threshold"),
        ({"annotate_ents": False}, "R115"),
        ({"loss": "PartialCRF", "crf": False}, "R180.*PartialCRF.*crf = true"),
        ({"loss": "TokenCrossEntropy", "crf": True}, "R181.*TokenCrossEntropy.*crf = false"),
        ({"loss": "TokenPURisk", "crf": True}, "R181"),
        ({"two_step": misc("TwoStep", epochs=-1)}, "R103.*epochs"),
        ({"two_step": misc("TwoStep", share=1.5)}, "R103.*share"),
        ({"ratio": misc("ExpectedEntityRatio", ratio=None, weight=-1.0)}, "R103.*weight"),
        ({"loss": misc("TokenPURisk", priors={"A": 1.0}), "crf": False}, "R156"),
    ],
)
def test_settings_that_make_no_sense(settings, message):
    with pytest.raises(ValueError, match=message):
        make_token_nlp(**settings)


@pytest.mark.parametrize("scheme", ["bio", "bioes"])
@pytest.mark.parametrize("head", ["SoftmaxHead", "AngleHead"])
@pytest.mark.parametrize("settings", [{}, PLAIN], ids=["crf", "plain"])
def test_overfitting(head, scheme, settings):
    nlp = make_token_nlp(head=head, scheme=scheme, **settings)
    examples = make_examples(nlp)
    history = train(nlp, examples, steps=40)
    assert history[-1][NAME] < 0.1 * history[0][NAME]
    doc = nlp(TEXTS[0])
    assert spans_of(doc.ents) == EXPECTED
    assert all(0.5 < ent._.entity_score <= 1 for ent in doc.ents)
    scores = nlp.evaluate(examples)
    assert (scores["ents_p"], scores["ents_r"], scores["ents_f"]) == (1.0, 1.0, 1.0)
    assert set(scores["ents_per_type"]) == {"PER", "LOC"}


@pytest.mark.parametrize("scheme", ["bio", "bioes"])
@pytest.mark.parametrize("head", ["SoftmaxHead", "AngleHead"])
@pytest.mark.parametrize("settings", [{}, PLAIN], ids=["crf", "plain"])
def test_saving_and_loading_keeps_every_bit(head, scheme, settings, tmp_path):
    """The one that loads has other settings of the scheme and the sampling than the model."""
    sampling = {"non_sampling": misc("NonSpanSampler")}
    nlp = make_token_nlp(head=head, scheme=scheme, **settings, **sampling)
    train(nlp, make_examples(nlp), steps=10)
    expected, _ = decisions_of(nlp)
    nlp.to_disk(tmp_path)
    from_disk = spacy.load(tmp_path)
    other = make_token_nlp(seed=9, head=head, scheme="bioes", **settings)
    other.vocab.strings.add("something that shifts other strings")
    other.from_bytes(nlp.to_bytes())
    for loaded in (from_disk, other):
        found, tag_set = decisions_of(loaded)
        assert torch.equal(found, expected)
        assert tag_set.tags == nlp.get_pipe(NAME).tag_set.tags
        assert [scored_ents(loaded(t)) for t in TEXTS] == [scored_ents(nlp(t)) for t in TEXTS]


def decisions_of(nlp):
    pipe = nlp.get_pipe(NAME)
    return pipe.decisions([nlp.make_doc(text) for text in TEXTS])[0], pipe.tag_set


def test_an_untrained_pipeline_can_be_saved(tmp_path):
    make_token_nlp().to_disk(tmp_path)
    nlp = spacy.load(tmp_path)
    assert nlp("Ada Lovelace").ents == ()


@pytest.mark.parametrize("settings", [{}, PLAIN], ids=["crf", "plain"])
def test_entity_scores_are_probabilities_of_the_segment(settings):
    """The score of a CRF is checked against all tag sequences of a short document."""
    nlp = make_token_nlp(scheme="bio", **settings)
    train(nlp, [example_of(nlp, ["a", "b", "c"], [(0, 2, "X")])], steps=8)
    pipe = nlp.get_pipe(NAME)
    doc = nlp(Doc(nlp.vocab, words=["a", "b", "c"]))
    assert spans_of(doc.ents) == [(0, 2, "X")]
    values = pipe.decisions([doc])[0].double()
    crf, weights = pipe.head.requires_grad_(False).crf, {}
    for tags in np.ndindex(3, 3, 3):
        score = sum(values[i, tag] for i, tag in enumerate(tags))
        if crf is not None:
            allowed = crf.allowed_start[tags[0]] & crf.allowed_end[tags[2]]
            score = score + crf.start[tags[0]].double() + crf.end[tags[2]].double()
            for i in (0, 1):
                allowed = allowed & crf.allowed_transitions[tags[i], tags[i + 1]]
                score = score + crf.transitions[tags[i], tags[i + 1]].double()
            if not allowed:
                continue
        weights[tags] = float(score.exp())
    total = sum(weights.values())
    # B, I, and then anything but I for a segment of a CRF; for single tokens just B, I.
    agreeing = [t for t in weights if t[:2] == (1, 2) and (crf is None or t[2] != 2)]
    expected = sum(weights[tags] for tags in agreeing) / total
    assert doc.ents[0]._.entity_score == pytest.approx(expected, abs=1e-6)
    assert expected < 0.999


def test_threshold_can_be_changed_afterwards(tagger):
    pipe = tagger.get_pipe(NAME)
    scores = sorted(ent._.entity_score for ent in tagger(TEXTS[0]).ents)
    assert scores[0] < scores[1]
    try:
        pipe.threshold = scores[1]
        assert [e._.entity_score for e in tagger(TEXTS[0]).ents] == [scores[1]]
    finally:
        pipe.threshold = None


def test_span_group_with_scores():
    nlp = make_token_nlp(annotate_ents=False, spans_key="found")
    examples = make_examples(nlp)
    train(nlp, examples, steps=40)
    doc = nlp(TEXTS[0])
    assert doc.ents == ()
    assert spans_of(doc.spans["found"]) == EXPECTED
    assert (doc.spans["found"].attrs["scores"] > 0.9).all()
    assert nlp.evaluate(examples)["spans_found_f"] == 1.0


def test_earlier_entities_stay(tagger):
    doc = tagger.make_doc(TEXTS[0])
    doc.set_ents([spacy.tokens.Span(doc, 1, 2, "OTHER")])
    assert spans_of(tagger.get_pipe(NAME)(doc).ents) == [(1, 2, "OTHER"), (4, 5, "LOC")]


def test_edge_documents_in_one_batch(tagger):
    words = [[], ["Paris"], TEXTS[0].split(), [], [" "], ["\n", "\n"]]
    docs = list(tagger.pipe(Doc(tagger.vocab, words=w) for w in words))
    assert spans_of(docs[2].ents) == EXPECTED
    assert [doc.ents for doc in (docs[0], docs[3], docs[4], docs[5])] == [()] * 4
    assert_same_ents([docs[2]], [tagger(Doc(tagger.vocab, words=words[2]))])


def test_batches_with_only_empty_documents(tagger):
    assert [len(doc.ents) for doc in tagger.pipe(["", ""])] == [0, 0]
    assert tagger.get_pipe(NAME).predict([]) == []


def test_several_processes_give_the_same(tagger):
    texts = TEXTS * 3 + [""]
    one = list(tagger.pipe(texts, n_process=1))
    two = list(tagger.pipe(texts, n_process=2, batch_size=2))
    assert sum(len(doc.ents) for doc in one) == 9
    assert_same_ents(one, two)


def test_a_pipe_without_weights_is_an_error():
    nlp = make_token_nlp()
    nlp.get_pipe(NAME).add_label("PER")
    with pytest.raises(ValueError, match="E109"):
        nlp("Ada Lovelace")


def test_update_rejects_what_are_no_examples(tagger):
    with pytest.raises(TypeError, match="E978"):
        tagger.get_pipe(NAME).update([tagger.make_doc("x")])


def test_update_with_empty_documents():
    nlp = make_token_nlp()
    optimizer = nlp.initialize(lambda: make_examples(nlp))
    empty = Example(nlp.make_doc(""), nlp.make_doc(""))
    assert nlp.update([empty], sgd=optimizer)[NAME] == 0.0
    mixed = nlp.update([empty, *make_examples(nlp), empty], sgd=optimizer)[NAME]
    assert np.isfinite(mixed)
    assert mixed > 0
