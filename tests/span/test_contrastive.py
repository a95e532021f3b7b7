import math

import pytest
import torch

from spacy_robust_ner.span.contrastive import ContrastiveTerm, supervised_contrastive

LABELS = [0, 1, 0, 2, 1, 0, 3, 1]


def make_vectors(n=len(LABELS), seed=0):
    torch.manual_seed(seed)
    return torch.randn(n, 5, dtype=torch.float64, requires_grad=True)


def cosine(a, b):
    dot = sum(x * y for x, y in zip(a, b, strict=True))
    return dot / math.sqrt(sum(x * x for x in a)) / math.sqrt(sum(x * x for x in b))


def brute_force(vectors, labels, temperature, denominator):
    vectors = vectors.tolist()
    total = 0.0
    for i, label in enumerate(labels):
        partners = [j for j, other in enumerate(labels) if other == label and j != i]
        if denominator == "all":
            compared = [j for j in range(len(labels)) if j != i]
        else:
            compared = [j for j, other in enumerate(labels) if other != label]
        if not partners or not compared:
            continue
        below = sum(math.exp(cosine(vectors[i], vectors[j]) / temperature) for j in compared)
        for j in partners:
            above = math.exp(cosine(vectors[i], vectors[j]) / temperature)
            total -= math.log(above / below) / len(partners)
    return total / len(labels)


@pytest.mark.parametrize("denominator", ["all", "other_labels"])
@pytest.mark.parametrize("temperature", [0.1, 1.0])
@pytest.mark.parametrize("labels", [LABELS, [0] * 8, [0, 0, 0, 0, 1, 2, 3, 4]])
def test_against_brute_force(denominator, temperature, labels):
    vectors = make_vectors()
    term = ContrastiveTerm(temperature=temperature, denominator=denominator)
    value = term(vectors, torch.tensor(labels))
    assert value.item() == pytest.approx(brute_force(vectors, labels, temperature, denominator))


@pytest.mark.parametrize("denominator", ["all", "other_labels"])
def test_gradcheck(denominator):
    vectors = make_vectors()
    labels = torch.tensor(LABELS)

    def run(vectors):
        return supervised_contrastive(vectors, labels, temperature=0.5, denominator=denominator)

    assert torch.autograd.gradcheck(run, (vectors,))


@pytest.mark.parametrize("denominator", ["all", "other_labels"])
@pytest.mark.parametrize("labels", [[], [1], [1, 2], [1, 1], [0, 1, 2]])
def test_hardly_any_spans(denominator, labels):
    vectors = make_vectors(len(labels))
    term = ContrastiveTerm(denominator=denominator)
    value = term(vectors, torch.tensor(labels, dtype=torch.long))
    value.backward()
    assert value.item() == pytest.approx(0)
    assert torch.isfinite(vectors.grad).all()


def test_single_members_contribute_nothing_but_are_told_apart():
    vectors = make_vectors()
    labels = torch.tensor([1, 1, 2, 3, 4, 5, 6, 7])
    (gradient,) = torch.autograd.grad(ContrastiveTerm()(vectors, labels), vectors)
    assert (gradient[2:].abs().sum(1) > 0).all()


def test_zero_vectors_and_low_temperatures_are_safe():
    vectors = make_vectors().detach()
    vectors[0] = 0.0
    vectors = vectors.float().requires_grad_()
    term = ContrastiveTerm(temperature=1e-3)
    value = term(vectors, torch.tensor(LABELS))
    value.backward()
    assert torch.isfinite(value)
    assert torch.isfinite(vectors.grad).all()


def test_outside_spans_are_capped():
    labels = torch.tensor([0] * 50 + [1] * 3 + [2] * 2)
    term = ContrastiveTerm(max_outside=7)
    chosen = term.participants(labels, 0)
    assert (labels[chosen] == 0).sum() == 7
    assert (labels[chosen] != 0).sum() == 5
    assert chosen.tolist() == sorted(set(chosen.tolist()))
    assert chosen.tolist() != term.participants(labels, 0).tolist()
    assert chosen.tolist() == ContrastiveTerm(max_outside=7).participants(labels, 0).tolist()
    assert (labels[term.participants(labels, 2)] == 0).sum() == 50
    vectors = make_vectors(55)
    value = ContrastiveTerm(max_outside=7)(vectors, labels)
    expected = brute_force(vectors[chosen], labels[chosen].tolist(), 0.1, "all")
    assert value.item() == pytest.approx(expected)


def test_descent_separates_the_labels():
    vectors = make_vectors().detach().requires_grad_()
    labels = torch.tensor([0, 0, 0, 0, 1, 1, 1, 1])
    # At a low temperature the pull ends as soon as the other label is far enough away.
    term = ContrastiveTerm(temperature=1.0)
    optimizer = torch.optim.Adam([vectors], lr=0.05)
    for _ in range(150):
        optimizer.zero_grad()
        term(vectors, labels).backward()
        optimizer.step()
    unit = torch.nn.functional.normalize(vectors.detach(), dim=1)
    cosines = unit @ unit.T
    assert cosines[:4, :4].min() > 0.9
    assert cosines[:4, 4:].max() < 0


def test_combination():
    term = ContrastiveTerm(weight=0.25)
    assert term.combine(torch.tensor(2.0), torch.tensor(4.0)).item() == pytest.approx(2.5)


def test_settings_are_checked():
    for settings in ({"weight": 2}, {"temperature": 0}, {"max_outside": -1}):
        with pytest.raises(ValueError, match="R103"):
            ContrastiveTerm(**settings)
    with pytest.raises(ValueError, match="R105"):
        ContrastiveTerm(denominator="others")
