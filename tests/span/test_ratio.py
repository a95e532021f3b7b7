import math

import pytest
import torch

from spacy_robust_ner.span.ratio import RatioSample, RatioTerm, entity_probabilities
from spacy_robust_ner.types import SamplerInput


def make_spans(n_spans=40, n_labels=3, seed=0):
    torch.manual_seed(seed)
    logits = 2 * torch.randn(n_spans, n_labels, dtype=torch.float64)
    logits[:, 0] += 2
    no = torch.zeros(n_spans, dtype=torch.bool)
    rows = torch.arange(n_spans)
    widths = rows % 4 + 1
    return logits, SamplerInput(
        rows=rows,
        doc_index=torch.zeros_like(rows),
        starts=rows,
        ends=rows + widths,
        is_positive=no,
        is_unknown=no,
        is_true_negative=no,
        log_probs=torch.log_softmax(logits, dim=1),
    )


def pieces(spans, size):
    for first in range(0, len(spans.rows), size):
        part = slice(first, first + size)
        yield SamplerInput(
            **{k: v[part] if isinstance(v, torch.Tensor) else v for k, v in vars(spans).items()}
        )


@pytest.mark.parametrize("unit", ["spans", "tokens"])
@pytest.mark.parametrize(
    ("ratio", "margin", "below"),
    [(0.0, 0.0, None), (0.3, 0.05, 0.0), (2.0, 0.1, 0.3), (5.0, 0.2, None), (5.0, 0.2, 4.9)],
)
def test_term_against_brute_force(unit, ratio, margin, below):
    logits, spans = make_spans()
    term = RatioTerm(ratio=ratio, margin=margin, margin_below=below, weight=3.0, unit=unit)
    probs = entity_probabilities(logits, 0)
    value = term(probs, term.sizes(spans.starts, spans.ends), n_tokens=20)
    expected = 0.0
    for row, scores in enumerate(logits.tolist()):
        exps = [math.exp(score) for score in scores]
        width = row % 4 + 1 if unit == "tokens" else 1
        expected += width * sum(exps[1:]) / sum(exps)
    distance = expected / 20 - ratio
    room = margin if distance > 0 or below is None else below
    assert value.item() == pytest.approx(3.0 * max(0, abs(distance) - room))


def test_no_cost_within_the_margin():
    probs = torch.tensor([0.5, 0.5], requires_grad=True)
    value = RatioTerm(ratio=0.12, margin=0.05)(probs, torch.ones(2), n_tokens=10)
    value.backward()
    assert value.item() == 0
    assert probs.grad.tolist() == [0, 0]


@pytest.mark.parametrize(("ratio", "sign"), [(0.0, 1), (0.9, -1)])
def test_term_pushes_towards_the_ratio(ratio, sign):
    probs = torch.tensor([0.2, 0.4], requires_grad=True)
    RatioTerm(ratio=ratio, margin=0.01)(probs, torch.ones(2), n_tokens=2).backward()
    assert (sign * probs.grad > 0).all()


@pytest.mark.parametrize("unit", ["spans", "tokens"])
@pytest.mark.parametrize("ratio", [0.0, 5.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_gradcheck(unit, ratio, weighted):
    logits, spans = make_spans(n_spans=6)
    term = RatioTerm(ratio=ratio, unit=unit)
    weights = torch.arange(1.0, 7.0, dtype=torch.float64) if weighted else None

    def run(logits):
        sizes = term.sizes(spans.starts, spans.ends)
        return term(entity_probabilities(logits, 0), sizes, n_tokens=8, weights=weights)

    assert torch.autograd.gradcheck(run, (logits.requires_grad_(),))
    assert torch.autograd.grad(run(logits), logits)[0].abs().sum() > 0


def test_small_probabilities_are_exact():
    logits = torch.tensor([[30.0, 0.0]])
    assert entity_probabilities(logits, 0).item() == pytest.approx(math.exp(-30), rel=1e-3)


@pytest.mark.parametrize("unit", ["spans", "tokens"])
def test_sample_keeps_the_value_and_the_expected_gradient(unit):
    logits, spans = make_spans()
    term = RatioTerm(ratio=0.1, margin=0.0, weight=1.0, unit=unit)
    logits.requires_grad_()
    sizes = term.sizes(spans.starts, spans.ends)
    probs = entity_probabilities(logits, 0)
    full = term(probs, sizes, n_tokens=20)
    (full_gradient,) = torch.autograd.grad(full, logits, retain_graph=True)
    importance = (probs * (1 - probs) * sizes).detach()
    generator = torch.Generator().manual_seed(0)
    n_draws = 1_500
    mean = torch.zeros_like(logits)
    mean_priority = 0.0
    for _ in range(n_draws):
        sample = RatioSample(10, term=term, o_index=0, generator=generator)
        sample.add(spans)
        subset = sample.finish()
        assert len(subset.rows) == 10
        value = term(
            entity_probabilities(logits[subset.rows], 0),
            sizes[subset.rows],
            n_tokens=20,
            weights=subset.weights,
            exact=subset.exact,
        )
        assert value.item() == pytest.approx(full.item())
        mean += torch.autograd.grad(value, logits)[0] / n_draws
        # A span with a weight above 1 counts for the greatest priority that was left out.
        mean_priority += (subset.weights * importance[subset.rows]).min().item() / n_draws
    # A span is drawn with probability importance / priority, so its error is known beforehand.
    error = full_gradient.abs() * (mean_priority / importance / n_draws).sqrt().unsqueeze(1)
    assert ((mean - full_gradient).abs() <= 4.5 * error).all()


def test_sample_is_better_than_a_blind_one():
    """As in a trained model: few uncertain spans among many that are certainly none."""
    logits, spans = make_spans(n_spans=400)
    logits = 0.5 * logits + torch.where(torch.arange(400) < 12, 0.0, 7.0).unsqueeze(
        1
    ) * torch.tensor([1.0, 0.0, 0.0])
    spans = SamplerInput(**{**vars(spans), "log_probs": torch.log_softmax(logits, dim=1)})
    probs = entity_probabilities(logits, 0)
    gradient = probs * (1 - probs)
    generator = torch.Generator().manual_seed(0)
    ours, blind = [], []
    for _ in range(300):
        sample = RatioSample(40, term=RatioTerm(ratio=0.1), o_index=0, generator=generator)
        sample.add(spans)
        subset = sample.finish()
        ours.append((gradient[subset.rows] * subset.weights).sum())
        blind.append(10 * gradient[torch.randperm(400, generator=generator)[:40]].sum())
    assert torch.stack(ours).mean().item() == pytest.approx(gradient.sum().item(), rel=0.02)
    assert torch.stack(ours).std() < 0.1 * torch.stack(blind).std()


@pytest.mark.parametrize("size", [3, 39, 40, 100])
def test_sample_in_chunks(size):
    _, spans = make_spans()
    term = RatioTerm(ratio=0.1)
    subsets = []
    for chunk in (1000, 7, 1):
        generator = torch.Generator().manual_seed(4)
        sample = RatioSample(size, term=term, o_index=0, generator=generator)
        for piece in pieces(spans, chunk):
            sample.add(piece)
        subsets.append(sample.finish())
    for other in subsets[1:]:
        assert other.rows.tolist() == subsets[0].rows.tolist()
        torch.testing.assert_close(other.weights, subsets[0].weights)
        torch.testing.assert_close(other.exact, subsets[0].exact)
    assert len(subsets[0].rows) == min(size, 40)
    if size >= 40:
        assert subsets[0].weights.unique().tolist() == [1.0]


def test_nothing_to_sample():
    term = RatioTerm(ratio=0.1, margin=0.02, weight=1.0)
    generator = torch.Generator()
    assert RatioSample(3, term=term, o_index=0, generator=generator).finish() is None
    empty = torch.empty(0, requires_grad=True)
    assert term(empty, torch.empty(0), n_tokens=0).item() == pytest.approx(0.08)


def test_settings_are_checked():
    for settings in ({"ratio": -0.1}, {"margin": -1}, {"weight": -1}, {"margin_below": -1}):
        with pytest.raises(ValueError, match="R103"):
            RatioTerm(**{"ratio": 0.1, **settings})
    with pytest.raises(ValueError, match="R105"):
        RatioTerm(ratio=0.1, unit="words")
    with pytest.raises(ValueError, match="R103"):
        RatioSample(0, term=RatioTerm(ratio=0.1), o_index=0, generator=torch.Generator())
