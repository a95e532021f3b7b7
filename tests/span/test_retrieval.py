import io
import math

import numpy as np
import pytest
import torch

from spacy_robust_ner.span.retrieval import Centroids

N_LABELS, WIDTH = 4, 3


def make_spans(n_spans=30, seed=0):
    torch.manual_seed(seed)
    vectors = torch.randn(n_spans, WIDTH, dtype=torch.float64)
    labels = torch.randint(0, N_LABELS - 1, (n_spans,))  # The last label never occurs.
    return vectors, labels


def fitted():
    vectors, labels = make_spans()
    centroids = Centroids.empty(N_LABELS, WIDTH)
    centroids.update(vectors, labels)
    return centroids


def test_fit_in_batches_is_the_mean():
    vectors, labels = make_spans()
    centroids = Centroids.empty(N_LABELS, WIDTH)
    for part in (slice(0, 0), slice(0, 7), slice(7, 8), slice(8, 30)):
        centroids.update(vectors[part].requires_grad_(), labels[part])
    for label in range(N_LABELS - 1):
        expected = vectors[labels == label].mean(0).detach().numpy()
        np.testing.assert_allclose(centroids.means[label], expected)
    assert centroids.counts.tolist() == [*torch.bincount(labels).tolist(), 0]
    assert not centroids.means[-1].any()


def test_decay_forgets():
    centroids = fitted()
    before = centroids.means.copy()
    centroids.decay(0.5)
    np.testing.assert_allclose(centroids.means, before)
    old_count = centroids.counts[0]
    new = torch.ones(1, WIDTH)
    centroids.update(new, torch.tensor([0]))
    expected = (before[0] * old_count + 1.0) / (old_count + 1)
    np.testing.assert_allclose(centroids.means[0], expected)


def brute_force(probs, vector, centroids, alpha, form, o_index):
    def cosine(a, b):
        return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))

    exps = [
        math.exp(cosine(vector, mean)) if count else 0.0
        for mean, count in zip(centroids.means, centroids.counts, strict=True)
    ]
    retrieved = [0.0 if i == o_index else x / sum(exps) for i, x in enumerate(exps)]
    if form == "probability":
        return [(1 - alpha) * p + alpha * q for p, q in zip(probs, retrieved, strict=True)]
    mixed = [
        math.exp((1 - alpha) * math.log(p) + alpha * q)
        for p, q in zip(probs, retrieved, strict=True)
    ]
    return [x / sum(mixed) for x in mixed]


@pytest.mark.parametrize("form", ["probability", "log"])
@pytest.mark.parametrize("alpha", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("o_index", [0, 2])
def test_mixing_against_brute_force(form, alpha, o_index):
    centroids = fitted()
    vectors, _ = make_spans(6, seed=1)
    probs = torch.softmax(torch.randn(6, N_LABELS, dtype=torch.float64), dim=1)
    mixed = centroids.mix(probs, vectors, alpha=alpha, form=form, o_index=o_index)
    for row in range(6):
        expected = brute_force(
            probs[row].tolist(), vectors[row].numpy(), centroids, alpha, form, o_index
        )
        assert mixed[row].tolist() == pytest.approx(expected)


def test_mixing_moves_the_boundary_towards_entities():
    centroids = fitted()
    near = torch.from_numpy(centroids.means[1:2])
    probs = torch.tensor([[0.55, 0.45, 0.0, 0.0]], dtype=torch.float64)
    assert probs.argmax().item() == 0
    for form in ("probability", "log"):
        assert centroids.mix(probs, near, form=form).argmax().item() == 1


def test_unfitted_centroids_change_nothing():
    probs = torch.softmax(torch.randn(2, N_LABELS), dim=1)
    centroids = Centroids.empty(N_LABELS, WIDTH)
    assert torch.equal(centroids.mix(probs, torch.randn(2, WIDTH)), probs)
    assert not centroids.distribution(torch.randn(2, WIDTH), o_index=0).any()
    assert fitted().mix(probs[:0], torch.randn(0, WIDTH)).shape == (0, N_LABELS)


def test_arrays_survive_saving_without_pickle():
    centroids = fitted()
    file = io.BytesIO()
    np.savez(file, **centroids.to_arrays())
    file.seek(0)
    loaded = Centroids.from_arrays(
        dict(np.load(file, allow_pickle=False)), n_labels=N_LABELS, vector_width=WIDTH
    )
    vectors, _ = make_spans(6, seed=1)
    probs = torch.softmax(torch.randn(6, N_LABELS), dim=1)
    assert torch.equal(loaded.mix(probs, vectors), centroids.mix(probs, vectors))
    loaded.update(vectors, torch.zeros(6, dtype=torch.long))
    assert not np.array_equal(loaded.counts, centroids.counts), "arrays are not shared"
    for shape in ({"n_labels": 5, "vector_width": WIDTH}, {"n_labels": 4, "vector_width": 7}):
        with pytest.raises(ValueError, match="R108"):
            Centroids.from_arrays(centroids.to_arrays(), **shape)


def test_settings_are_checked():
    probs = torch.ones(1, N_LABELS) / N_LABELS
    with pytest.raises(ValueError, match="R103"):
        fitted().mix(probs, torch.ones(1, WIDTH), alpha=1.2)
    with pytest.raises(ValueError, match="R105"):
        fitted().mix(probs, torch.ones(1, WIDTH), form="logit")
