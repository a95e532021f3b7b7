"""Saving, loading, pickling, and training that goes on after it."""

import pickle

import numpy as np
import pytest
import spacy
from span_pipes import (
    HEADS,
    NAME,
    TRAIN_DATA,
    assert_same_ents,
    change,
    example_of,
    make_examples,
    make_nlp,
    misc,
    scored_ents,
    step,
    train,
    weights,
)

TEXTS = [text for text, _ in TRAIN_DATA]
RETRIEVAL = {"retrieval": misc("Retrieval", alpha=0.3)}


def candidate_scores(nlp):
    docs = [nlp.make_doc(text) for text in TEXTS]
    nlp.get_pipe(NAME).set_candidates(docs)
    return np.concatenate([doc.spans["candidates"].attrs["scores"] for doc in docs])


@pytest.fixture(scope="module", params=[*HEADS, "retrieval"])
def saved(request):
    settings = RETRIEVAL if request.param == "retrieval" else {"head": request.param}
    nlp = make_nlp(**settings)
    train(nlp, make_examples(nlp), steps=40)
    return nlp, settings


def test_disk_keeps_scores_bit_equal(saved, tmp_path):
    nlp, _ = saved
    nlp.to_disk(tmp_path / "model")
    loaded = spacy.load(tmp_path / "model")
    assert loaded.get_pipe(NAME).labels == ("LOC", "PER")
    assert np.array_equal(candidate_scores(loaded), candidate_scores(nlp))
    assert_same_ents(list(loaded.pipe(TEXTS)), list(nlp.pipe(TEXTS)), tolerance=0)
    assert len(loaded(TEXTS[0]).ents) == 2
    assert loaded.evaluate(make_examples(loaded))["ents_f"] == 1.0


def test_bytes_keep_scores_bit_equal(saved):
    nlp, settings = saved
    loaded = make_nlp(seed=9, **settings).from_bytes(nlp.to_bytes())
    assert np.array_equal(candidate_scores(loaded), candidate_scores(nlp))
    assert change(weights(loaded.get_pipe(NAME).model), weights(nlp.get_pipe(NAME).model)) == 0
    again = make_nlp(seed=9, **settings).from_bytes(loaded.to_bytes())
    assert np.array_equal(candidate_scores(again), candidate_scores(nlp))


def test_pickle_keeps_scores_bit_equal(saved):
    nlp, _ = saved
    loaded = pickle.loads(pickle.dumps(nlp))
    assert np.array_equal(candidate_scores(loaded), candidate_scores(nlp))
    pipe = pickle.loads(pickle.dumps(nlp.get_pipe(NAME)))
    assert pipe.labels == ("LOC", "PER")


def test_nothing_is_saved_with_pickle(saved, tmp_path):
    """The saved files must not run code when they are loaded."""
    nlp, _ = saved
    nlp.to_disk(tmp_path / "model")
    data = (tmp_path / "model" / NAME / "model").read_bytes()
    assert b"spacy_robust_ner" not in data
    assert b"numpy.core" not in data
    assert b"numpy._core" not in data


def test_a_pipe_that_was_not_initialized_can_be_saved(tmp_path):
    nlp = make_nlp()
    nlp.get_pipe(NAME).add_label("PER")
    nlp.to_disk(tmp_path / "model")
    loaded = spacy.load(tmp_path / "model")
    assert loaded.get_pipe(NAME).labels == ("PER",)
    train(loaded, make_examples(loaded), steps=1)
    assert loaded.get_pipe(NAME).labels == ("PER", "LOC")


def test_loading_into_a_pipe_that_has_weights_replaces_them(saved):
    nlp, settings = saved
    other = make_nlp(seed=5, **settings)
    train(other, make_examples(other), steps=2)
    other.from_bytes(nlp.to_bytes())
    assert np.array_equal(candidate_scores(other), candidate_scores(nlp))


def test_scores_of_entities_survive_with_the_document(trained):
    doc = trained(TEXTS[0])
    copy = spacy.tokens.Doc(trained.vocab).from_bytes(doc.to_bytes())
    assert len(scored_ents(doc)) == 2
    assert scored_ents(copy) == scored_ents(doc)
    packed = spacy.tokens.DocBin(docs=[doc], store_user_data=True).to_bytes()
    (unpacked,) = spacy.tokens.DocBin().from_bytes(packed).get_docs(trained.vocab)
    assert scored_ents(unpacked) == scored_ents(doc)


def test_settings_of_a_loaded_pipeline_can_be_overridden(tmp_path):
    nlp = make_nlp(**RETRIEVAL)
    train(nlp, make_examples(nlp), steps=20)
    nlp.to_disk(tmp_path / "model")
    prefix = f"components.{NAME}"
    overrides = {
        f"{prefix}.threshold": 0.25,
        f"{prefix}.retrieval.alpha": 1.0,
        f"{prefix}.model.max_width": 1,
        f"{prefix}.model.chunk_size": 5,
        f"{prefix}.overwrite_ents": True,
    }
    changed = spacy.load(tmp_path / "model", config=overrides).get_pipe(NAME)
    assert (changed.threshold, changed.retrieval.alpha) == (0.25, 1.0)
    assert (changed.max_width, changed.model.attrs["chunk_size"]) == (1, 5)
    assert changed.overwrite_ents
    docs = [nlp.make_doc(TEXTS[0])]
    changed.set_candidates(docs)
    assert {len(span) for span in docs[0].spans["candidates"]} == {1}


@pytest.mark.parametrize("form", ["probability", "log"])
def test_retrieval_can_be_changed_after_loading(form):
    nlp = make_nlp(**RETRIEVAL)
    train(nlp, make_examples(nlp), steps=20)
    loaded = make_nlp(**RETRIEVAL).from_bytes(nlp.to_bytes())
    retrieval = loaded.get_pipe(NAME).retrieval
    retrieval.form = form
    scores = []
    for alpha in (0.0, 0.3, 0.6):
        retrieval.alpha = alpha
        scores.append(candidate_scores(loaded))
    assert not np.allclose(scores[0], scores[1])
    assert not np.allclose(scores[1], scores[2])
    loaded.get_pipe(NAME).retrieval = None
    assert np.array_equal(candidate_scores(loaded), scores[0])


SAMPLED = {
    "sampler": misc("UniformSampler", rate=0.5),
    "contrastive": misc("ContrastiveTerm", max_outside=2),
}


def negatives_of(nlp, examples):
    seen = []
    pipe = nlp.get_pipe(NAME)
    pipe.sample_observer = lambda _, *columns: seen.append([c.tolist() for c in columns])
    losses = step(nlp, examples, nlp.resume_training())
    pipe.sample_observer = None
    return seen, losses


@pytest.mark.parametrize("max_width", [2, 30])
def test_embedded_widths_are_those_of_training(tmp_path, max_width):
    nlp = make_nlp(head="width")
    train(nlp, make_examples(nlp), steps=40)
    nlp.to_disk(tmp_path / "model")
    setting = f"components.{NAME}.model.max_width"
    loaded = spacy.load(tmp_path / "model", config={setting: max_width})
    assert loaded.get_pipe(NAME).max_width == max_width
    assert len(loaded.get_pipe(NAME).head.embedding.weight) == 10
    assert_same_ents(list(nlp.pipe(TEXTS)), list(loaded.pipe(TEXTS)), tolerance=1e-6)
    step(loaded, make_examples(loaded), loaded.resume_training())


def test_resumed_training_draws_the_negatives_that_would_have_come_next(tmp_path):
    nlp = make_nlp(**SAMPLED)
    examples = make_examples(nlp)
    first = make_nlp(**SAMPLED)
    first.initialize(lambda: examples)
    start, _ = negatives_of(first, examples)
    train(nlp, examples, steps=3)
    nlp.to_disk(tmp_path / "model")
    data = nlp.to_bytes()
    expected = negatives_of(nlp, examples)
    from_disk = negatives_of(spacy.load(tmp_path / "model"), examples)
    from_bytes = negatives_of(make_nlp(**SAMPLED).from_bytes(data), examples)
    assert from_disk == from_bytes == expected
    assert expected[0] != start, "not the first draw over again"


def test_resumed_training_goes_on_with_the_sample_of_the_ratio_term():
    """The term's gradient comes from some of the candidates if a batch has many."""
    settings = {"ratio": misc("RatioTerm", ratio=0.9, margin=0.0), "max_width": None, **SAMPLED}
    nlp = make_nlp(**settings)
    example = example_of(nlp, [f"w{i % 7}" for i in range(100)], [(3, 4, "PER")])
    train(nlp, [example], steps=2)
    loaded, restarted = (make_nlp(**settings).from_bytes(nlp.to_bytes()) for _ in range(2))
    restarted.get_pipe(NAME)._generators["ratio"].manual_seed(0)
    gradients = [gradient_of(pipeline, example) for pipeline in (nlp, loaded, restarted)]
    assert change(gradients[0], gradients[1]) == 0
    assert change(gradients[0], gradients[2]) > 0


def gradient_of(nlp, example):
    nlp.update([example], sgd=False)
    head = nlp.get_pipe(NAME).head
    return [weight.grad.clone().numpy() for weight in head.parameters() if weight.grad is not None]


def test_training_goes_on_with_another_sampler():
    nlp = make_nlp(**SAMPLED)
    train(nlp, make_examples(nlp), steps=2)
    other = make_nlp(sampler=misc("FractionSampler")).from_bytes(nlp.to_bytes())
    losses = step(other, make_examples(other), other.resume_training())
    assert losses[f"{NAME}_negatives"] > 0


def test_resumed_training_goes_on_with_the_epoch_and_the_centroids():
    nlp = make_nlp(**RETRIEVAL)
    examples = make_examples(nlp)
    train(nlp, examples, steps=3)
    assert nlp.get_pipe(NAME).progress.epoch == 3
    loaded = make_nlp(**RETRIEVAL).from_bytes(nlp.to_bytes())
    pipe = loaded.get_pipe(NAME)
    assert pipe.progress.epoch == 3
    before = pipe.centroids
    step(loaded, examples, loaded.resume_training())
    assert pipe.progress.epoch == 4
    assert pipe.centroids.counts == pytest.approx(
        0.99 * before.counts + [before.counts[0] / 2.9701, 2, 1], rel=1e-3
    )
