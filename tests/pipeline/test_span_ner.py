import random
import warnings

import numpy as np
import pytest
import spacy
from spacy.tokens import Doc
from spacy.training import Example
from spacy.util import fix_random_seed
from span_pipes import (
    HEADS,
    NAME,
    TRAIN_DATA,
    assert_same_ents,
    example_of,
    make_examples,
    make_nlp,
    misc,
    model_config,
    scored_ents,
    spans_of,
    train,
)

from spacy_robust_ner.candidates import CandidateTable
from spacy_robust_ner.pipeline.label_statistics import EstimatedRatio
from spacy_robust_ner.pipeline.span_inference import find_spans
from spacy_robust_ner.span.segmentation_objective import SegmentationLikelihood


def test_factory_is_found_with_its_defaults():
    pipe = spacy.blank("xx").add_pipe(NAME)
    assert pipe.name == NAME
    assert pipe.max_width == 10
    assert pipe.labels == ()
    assert isinstance(pipe.loss, SegmentationLikelihood)
    assert isinstance(pipe.ratio, EstimatedRatio)
    assert pipe.flat


def test_defaults_find_what_lost_its_label():
    nlp = spacy.blank("xx")
    nlp.add_pipe(NAME)
    fix_random_seed(0)
    names = [f"Name{i}" for i in range(20)]
    texts = [f"yesterday {name} came here" for name in names * 4]
    rng = random.Random(0)
    data = [(text, [(10, len(text) - 10, "PER")] * (rng.random() < 0.5)) for text in texts]
    train(nlp, make_examples(nlp, data), steps=60, learn_rate=0.005)
    found = sum(spans_of(doc.ents) == [(1, 2, "PER")] for doc in nlp.pipe(texts[:20]))
    assert found >= 18


def test_no_label_is_an_error():
    nlp = make_nlp()
    with pytest.raises(ValueError, match=r"R114.*robust_span_ner.*2 examples"):
        nlp.initialize(lambda: [example_of(nlp, ["a", "b"]), example_of(nlp, ["c"])])


def test_no_token_is_an_error():
    nlp = make_nlp()
    nlp.get_pipe(NAME).add_label("PER")
    with pytest.raises(ValueError, match=r"R122.*1 training examples"):
        nlp.initialize(lambda: [example_of(nlp, [])])


def test_labels_are_read_from_the_data():
    nlp = make_nlp()
    nlp.initialize(lambda: make_examples(nlp))
    assert nlp.get_pipe(NAME).labels == ("LOC", "PER")
    assert nlp.pipe_labels[NAME] == ["LOC", "PER"]
    assert nlp.get_pipe(NAME).label_data == ["LOC", "PER"]


def test_explicit_labels_without_entities_in_the_data():
    nlp = make_nlp()
    pipe = nlp.get_pipe(NAME)
    assert (pipe.add_label("A"), pipe.add_label("B"), pipe.add_label("A")) == (1, 1, 0)
    nlp.initialize()
    assert pipe.labels == ("A", "B")
    assert pipe.head.n_labels == 3


def test_labels_of_the_initialize_block_are_the_only_ones():
    nlp = make_nlp()
    nlp.config["initialize"]["components"][NAME] = {"labels": ["PER"]}
    train(nlp, make_examples(nlp), steps=40)
    assert nlp.get_pipe(NAME).labels == ("PER",)
    assert spans_of(nlp(TRAIN_DATA[0][0]).ents) == [(0, 2, "PER")]


@pytest.mark.parametrize("labels", [["X"], ["A", "B", "C"]])
def test_no_label_after_initialization(labels):
    nlp = make_nlp()
    pipe = nlp.get_pipe(NAME)
    for label in labels:
        pipe.add_label(label)
    nlp.initialize()
    assert pipe.add_label(labels[0]) == 0
    with pytest.raises(ValueError, match=r"R120.*'NEW'"):
        pipe.add_label("NEW")
    assert pipe.labels == tuple(labels)


def test_initializing_again_may_bring_new_labels():
    nlp = make_nlp()
    pipe = nlp.get_pipe(NAME)
    pipe.add_label("LOC")
    nlp.initialize()
    train(nlp, make_examples(nlp), steps=40)
    assert pipe.labels == ("LOC", "PER")
    assert pipe.head.n_labels == 3
    assert spans_of(nlp(TRAIN_DATA[0][0]).ents) == [(0, 2, "PER"), (4, 5, "LOC")]


def test_every_factory_argument_arrives(tmp_path):
    settings = {
        "sampler": misc("FractionSampler", share=0.25, each_epoch=True, seed=3),
        "loss": misc("ConfidencePURisk", priors={"PER": 0.1}, unlabeled_factor=2.0),
        "contrastive": misc("ContrastiveTerm", weight=0.3, temperature=0.2),
        "ratio": misc("RatioTerm", ratio=0.2, margin=0.01, weight=3.0, unit="tokens"),
        "retrieval": misc("Retrieval", alpha=0.25, form="log", decay=0.5),
        "confidence": misc("FileConfidence", path=str(tmp_path / "confidence.jsonl")),
        "annotate_ents": False,
        "overwrite_ents": True,
        "spans_key": "found",
        "spans_overlap": "all",
        "threshold": 0.7,
        "rejected_spans_key": "wrong",
        "default_complete": True,
        "withdraw_doubtful": False,
        "withdraw_fragments": False,
        "outside_by_writing": False,
        "use_all_true_negatives": False,
        "flat": False,
        "max_epochs": 7,
        "head_learn_rate_scale": 5.0,
        "scorer": {"@scorers": "spacy.ner_scorer.v1"},
    }
    nlp = spacy.blank("xx")
    defaults = nlp.get_factory_meta(NAME).default_config
    assert set(settings) == set(defaults) - {"model"}
    model = model_config(max_width=4, chunk_size=99)
    pipe = nlp.add_pipe(NAME, "other_name", config={**settings, "model": model})
    assert pipe.name == "other_name"
    plain = set(settings) - {k for k, v in settings.items() if isinstance(v, dict)}
    for name in plain:
        assert getattr(pipe, name) == settings[name], name
    assert (pipe.sampler.share, pipe.sampler.each_epoch, pipe.sampler.seed) == (0.25, True, 3)
    assert (pipe.loss.priors, pipe.loss.unlabeled_factor) == ({"PER": 0.1}, 2.0)
    assert (pipe.contrastive.weight, pipe.contrastive.temperature) == (0.3, 0.2)
    ratio = pipe.ratio
    assert (ratio.ratio, ratio.margin, ratio.weight, ratio.unit) == (0.2, 0.01, 3.0, "tokens")
    assert vars(pipe.retrieval) == {"alpha": 0.25, "form": "log", "decay": 0.5}
    assert pipe.confidence.path == tmp_path / "confidence.jsonl"
    assert (pipe.max_width, pipe.model.attrs["chunk_size"]) == (4, 99)
    assert pipe.scorer.func.__name__ == "ner_score"


def test_a_loss_without_negatives_is_worth_a_warning():
    nothing = misc("UniformSampler", rate=0.0)
    with pytest.warns(UserWarning, match=r"W102.*CrossEntropy.*sampler\.rate"):
        make_nlp(sampler=nothing)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        make_nlp(sampler=nothing, loss=misc("SegmentationLikelihood"))


def test_writing_nothing_is_an_error():
    with pytest.raises(ValueError, match=r"R115.*spans_key"):
        make_nlp(annotate_ents=False)


def test_hand_made_probabilities_give_the_expected_spans():
    table = CandidateTable([3, 0, 2], max_width=2)
    spans = [(0, 1), (0, 2), (1, 2), (1, 3), (2, 3), (0, 1), (0, 2), (1, 2)]
    probs = np.full((8, 3), [0.9, 0.05, 0.05], dtype=np.float32)
    probs[1] = [0.3, 0.1, 0.6]
    probs[3] = [0.2, 0.5, 0.3]
    probs[6] = [0.45, 0.3, 0.25]
    probs[7] = [0.1, 0.8, 0.1]
    chunks = ((chunk, probs[chunk.rows]) for chunk in table.chunks(3))
    found = find_spans(chunks, table, o_index=0, threshold=None)
    triples = [
        list(zip(f.starts.tolist(), f.ends.tolist(), f.labels.tolist(), strict=True)) for f in found
    ]
    assert triples == [[(*spans[1], 2), (*spans[3], 1)], [], [(*spans[7], 1)]]
    chunks = ((chunk, probs[chunk.rows]) for chunk in table.chunks(100))
    lower = find_spans(chunks, table, o_index=0, threshold=0.3)
    assert [len(f) for f in lower] == [2, 0, 2]
    assert np.isclose(lower[2].scores, [0.3, 0.8]).all()


@pytest.mark.parametrize("head", HEADS)
def test_overfitting(head):
    nlp = make_nlp(head=head)
    examples = make_examples(nlp)
    history = train(nlp, examples, steps=40)
    assert history[-1][NAME] < 0.1 * history[0][NAME]
    doc = nlp(TRAIN_DATA[0][0])
    assert spans_of(doc.ents) == [(0, 2, "PER"), (4, 5, "LOC")]
    assert all(0.5 < ent._.entity_score <= 1 for ent in doc.ents)
    scores = nlp.evaluate(examples)
    assert (scores["ents_p"], scores["ents_r"], scores["ents_f"]) == (1.0, 1.0, 1.0)
    assert set(scores["ents_per_type"]) == {"PER", "LOC"}


def test_threshold_can_be_changed_afterwards(trained):
    pipe = trained.get_pipe(NAME)
    text = TRAIN_DATA[0][0]
    scores = sorted(ent._.entity_score for ent in trained(text).ents)
    assert len(scores) == 2
    assert scores[0] < scores[1]
    try:
        pipe.threshold = scores[1]
        assert [e._.entity_score for e in trained(text).ents] == [scores[1]]
        pipe.threshold = 1.1
        assert trained(text).ents == ()
        pipe.threshold = 0.0
        assert sum(len(ent) for ent in trained(text).ents) == len(trained.make_doc(text))
    finally:
        pipe.threshold = None


def test_edge_documents_in_one_batch(trained):
    words = [[], ["Paris"], TRAIN_DATA[0][0].split(), [], [" "], ["\n", "\n"]]
    docs = list(trained.pipe(Doc(trained.vocab, words=w) for w in words))
    assert spans_of(docs[2].ents) == [(0, 2, "PER"), (4, 5, "LOC")]
    assert [doc.ents for doc in (docs[0], docs[3], docs[4], docs[5])] == [()] * 4
    alone = trained(Doc(trained.vocab, words=words[2]))
    assert_same_ents([docs[2]], [alone])


def test_batches_with_only_empty_documents(trained):
    assert [len(doc.ents) for doc in trained.pipe(["", ""])] == [0, 0]
    pipe = trained.get_pipe(NAME)
    assert [len(found) for found in pipe.predict([trained.make_doc("")])] == [0]
    assert pipe.predict([]) == []
    docs = [trained.make_doc("")]
    pipe.set_candidates(docs)
    assert len(docs[0].spans["candidates"]) == 0


def test_no_entity_starts_or_ends_with_whitespace(trained):
    pipe = trained.get_pipe(NAME)
    doc = trained.make_doc("Ada \n Lovelace \n")
    assert [token.is_space for token in doc] == [False, True, False, True]
    try:
        pipe.threshold = 0.0
        found = pipe.predict([doc])[0]
    finally:
        pipe.threshold = None
    edges = list(zip(found.starts.tolist(), found.ends.tolist(), strict=True))
    assert edges == [(0, 1), (0, 3), (2, 3)]


def test_a_pipe_without_labels_finds_nothing():
    nlp = make_nlp()
    assert nlp("Ada Lovelace").ents == ()


def test_a_pipe_without_weights_is_an_error():
    nlp = make_nlp()
    nlp.get_pipe(NAME).add_label("PER")
    with pytest.raises(ValueError, match="E109"):
        nlp("Ada Lovelace")


def test_several_processes_give_the_same(trained):
    texts = [text for text, _ in TRAIN_DATA] * 3 + [""]
    one = list(trained.pipe(texts, n_process=1))
    two = list(trained.pipe(texts, n_process=2, batch_size=2))
    assert sum(len(doc.ents) for doc in one) == 9
    assert_same_ents(one, two)


def test_entities_wider_than_the_limit_are_counted_in_a_warning():
    nlp = make_nlp(max_width=1)
    with pytest.warns(UserWarning, match=r"W100.*1 of 3.*max_width = 1"):
        nlp.initialize(lambda: make_examples(nlp))
    losses = {}
    nlp.update(make_examples(nlp), losses=losses)
    assert losses[f"{NAME}_positives"] == 2


def test_unlimited_width_finds_long_entities():
    nlp = make_nlp(max_width=None, head="width")
    words = [f"w{i}" for i in range(24)]
    example = example_of(nlp, words, [(1, 23, "LONG")])
    train(nlp, [example], steps=60)
    assert spans_of(nlp(Doc(nlp.vocab, words=words)).ents) == [(1, 23, "LONG")]


def test_candidates_view_shows_the_probability_of_each_label(trained):
    pipe = trained.get_pipe(NAME)
    docs = [trained.make_doc(text) for text, _ in TRAIN_DATA]
    pipe.set_candidates(docs, candidates_key="view")
    for doc in docs:
        group = doc.spans["view"]
        table = CandidateTable([len(doc)], max_width=10).spans()
        assert [(s.start, s.end) for s in group] == list(
            zip(table.starts.tolist(), table.ends.tolist(), strict=True)
        )
        scores = group.attrs["scores"]
        assert group.attrs["labels"] == ["O", *pipe.labels]
        assert np.allclose(scores.sum(1), 1.0, atol=1e-5)
        best = [group.attrs["labels"][column] for column in scores.argmax(1)]
        assert best == [span.label_ for span in group]
        found = [(s.start, s.end, s.label_) for s in group if s.label_ != "O"]
        assert found == spans_of(trained(doc.text).ents)


@pytest.mark.parametrize("chunk_size", [1, 7])
def test_chunks_change_no_prediction(trained, chunk_size):
    pipe = trained.get_pipe(NAME)
    texts = [text for text, _ in TRAIN_DATA]
    whole = list(trained.pipe(texts))
    attrs = pipe.model.attrs
    before, attrs["chunk_size"] = attrs["chunk_size"], chunk_size
    try:
        assert_same_ents(list(trained.pipe(texts)), whole)
    finally:
        attrs["chunk_size"] = before


def test_memory_zone(trained):
    with trained.memory_zone():
        docs = list(trained.pipe(["Ada Lovelace lives in Zanzibarabia .", TRAIN_DATA[1][0]]))
        inside = scored_ents(docs[1])
        del docs
    assert len(inside) == 1
    assert scored_ents(trained(TRAIN_DATA[1][0])) == inside


def test_update_rejects_what_are_no_examples(trained):
    with pytest.raises(TypeError, match="E978"):
        trained.get_pipe(NAME).update([trained.make_doc("x")])


def test_examples_with_differing_texts_are_learned(trained):
    example = Example(trained.make_doc("a  b"), Doc(trained.vocab, words=["a", "b"]))
    losses = trained.get_pipe(NAME).update([example], sgd=None)
    assert np.isfinite(losses[NAME])
    trained.get_pipe(NAME).head.zero_grad(set_to_none=True)
