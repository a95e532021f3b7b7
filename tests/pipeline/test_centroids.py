"""Centroids of retrieval: exact fits, upkeep in training, effect on predictions."""

import numpy as np
import pytest
import torch
from span_pipes import NAME, TRAIN_DATA, make_examples, make_nlp, make_shared_nlp, misc, train

from spacy_robust_ner.candidates import CandidateTable

RETRIEVAL = {"retrieval": misc("Retrieval", alpha=0.5)}
MORE_DATA = [
    *TRAIN_DATA,
    ("Grace Hopper came to Berlin .", [(0, 12, "PER"), (21, 27, "LOC")]),
    ("No name is here .", []),
]


def vectors_by_hand(pipe, docs, spans_of_doc):
    """The vectors of some spans by the formula of the paper, without factoring."""
    vectors = []
    head = pipe.head
    with torch.no_grad():
        for doc, tokens in zip(docs, pipe.model.predict(docs), strict=True):
            h = torch.from_numpy(np.asarray(tokens))
            for start, end in spans_of_doc(doc):
                first, last = h[start], h[end - 1]
                joined = torch.cat((first, last, first - last, first * last))
                vectors.append(torch.tanh(head.hidden.weight @ joined + head.hidden.bias))
    return torch.stack(vectors).double()


@pytest.mark.parametrize("make", [make_nlp, make_shared_nlp], ids=["own", "shared"])
@pytest.mark.parametrize("batch_size", [1, 3, 64])
def test_fitted_centroids_are_the_means_of_the_labeled_spans(make, batch_size):
    nlp = make(**RETRIEVAL)
    examples = make_examples(nlp, MORE_DATA)
    train(nlp, examples, steps=10)
    pipe = nlp.get_pipe(NAME)
    centroids = pipe.fit_centroids(nlp, make_examples(nlp, MORE_DATA), batch_size=batch_size)
    docs = [nlp(text) for text, _ in MORE_DATA]
    gold = {eg.text: eg.reference.ents for eg in examples}
    for column, label in enumerate(pipe.labels, 1):
        expected = vectors_by_hand(
            pipe,
            docs,
            lambda doc, label=label: [
                (e.start, e.end) for e in gold[doc.text] if e.label_ == label
            ],
        )
        assert centroids.counts[column] == len(expected)
        assert np.allclose(centroids.means[column], expected.mean(0).numpy(), atol=1e-5)
    assert centroids.counts[0] > 0
    stored = pipe.centroids
    assert np.array_equal(stored.sums, centroids.sums)


def test_the_centroid_of_no_entity_is_made_of_unlabeled_spans():
    nlp = make_nlp(max_width=1, **RETRIEVAL)
    text, ents = "a b c d", [(0, 1, "X")]
    examples = make_examples(nlp, [(text, ents)])
    nlp.initialize(lambda: examples)
    pipe = nlp.get_pipe(NAME)
    centroids = pipe.fit_centroids(nlp, examples)
    every = vectors_by_hand(pipe, [nlp.make_doc(text)], lambda doc: [(i, i + 1) for i in range(4)])
    pairs = [(i, j) for i in range(4) for j in range(i)]
    sums = {pair: (every[pair[0]] + every[pair[1]]).numpy() for pair in pairs}
    found = [pair for pair in pairs if np.allclose(sums[pair], centroids.sums[0], atol=1e-5)]
    assert centroids.counts.tolist() == [2, 1]
    assert len(found) == 1
    assert 0 not in found[0], "the labeled span is no negative"


def test_limit_reads_only_so_many_examples():
    nlp = make_nlp(**RETRIEVAL)
    examples = make_examples(nlp, MORE_DATA)
    nlp.initialize(lambda: examples)
    centroids = nlp.get_pipe(NAME).fit_centroids(nlp, iter(examples), limit=1)
    assert centroids.counts[1:].tolist() == [1, 1]


def test_fitting_leaves_examples_and_weights_alone():
    nlp = make_shared_nlp(**RETRIEVAL)
    examples = make_examples(nlp, MORE_DATA)
    nlp.initialize(lambda: examples)
    pipe = nlp.get_pipe(NAME)
    training_before = pipe.head.training
    before = [p.clone() for p in pipe.head.parameters()]
    pipe.fit_centroids(nlp, examples)
    assert all(eg.predicted.tensor.size == 0 for eg in examples)
    assert all(torch.equal(a, b) for a, b in zip(before, pipe.head.parameters(), strict=True))
    assert all(p.grad is None for p in pipe.head.parameters())
    assert pipe.head.training == training_before


def test_training_keeps_running_centroids():
    nlp = make_nlp(retrieval=misc("Retrieval", decay=0.5))
    examples = make_examples(nlp)
    nlp.initialize(lambda: examples)
    pipe = nlp.get_pipe(NAME)
    assert pipe.centroids is None
    candidates = len(CandidateTable([6, 7], max_width=10))
    counts = []
    for _ in range(3):
        nlp.update(examples)
        counts.append(pipe.centroids.counts.tolist())
    once = np.array([candidates - 3, 2, 1])
    assert np.allclose(counts, [once, 1.5 * once, 1.75 * once])


def test_first_update_gives_the_exact_centroids_of_its_batch():
    nlp = make_nlp(**RETRIEVAL)
    examples = make_examples(nlp)
    nlp.initialize(lambda: examples)
    nlp.update(examples, sgd=False)
    pipe = nlp.get_pipe(NAME)
    running = pipe.centroids.means[1:]
    fitted = pipe.fit_centroids(nlp, examples).means[1:]
    assert np.allclose(running, fitted, atol=1e-5)


def test_mixture_is_that_of_the_paper():
    nlp = make_nlp(max_width=3, **RETRIEVAL)
    examples = make_examples(nlp)
    train(nlp, examples, steps=10)
    pipe = nlp.get_pipe(NAME)
    doc = nlp.make_doc(TRAIN_DATA[0][0])
    places = [(s, e) for s in range(len(doc)) for e in range(s + 1, min(len(doc), s + 3) + 1)]
    vectors = vectors_by_hand(pipe, [doc], lambda _: places).float()
    with torch.no_grad():
        probs = torch.softmax(pipe.head.output(vectors), dim=1)
    means = torch.from_numpy(pipe.centroids.means).float()
    retrieved = torch.cosine_similarity(vectors[:, None], means[None], dim=2).softmax(1)
    retrieved[:, 0] = 0
    pipe.set_candidates([doc])
    mixed = 0.5 * probs + 0.5 * retrieved
    assert np.allclose(doc.spans["candidates"].attrs["scores"], mixed.numpy(), atol=1e-5)


def test_retrieval_without_centroids_is_an_error():
    nlp = make_nlp()
    train(nlp, make_examples(nlp), steps=1)
    with_retrieval = make_nlp(**RETRIEVAL).from_bytes(nlp.to_bytes())
    with pytest.raises(ValueError, match=r"R116.*fit-centroids"):
        with_retrieval(TRAIN_DATA[0][0])
