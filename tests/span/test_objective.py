"""The objective of a batch against naive computations, in double precision."""

import math

import numpy as np
import pytest
import torch

from spacy_robust_ner.candidates import CandidateTable, annotate
from spacy_robust_ner.span.contrastive import ContrastiveTerm, supervised_contrastive
from spacy_robust_ner.span.heads import BiaffineHead, ConcatProductHead, WidthEmbeddingHead
from spacy_robust_ner.span.losses import NRCES, CrossEntropy
from spacy_robust_ner.span.objective import Course, SpanObjective
from spacy_robust_ner.span.positive_unlabeled import BoundedNonNegativePURisk, ConfidencePURisk
from spacy_robust_ner.span.ratio import RatioTerm
from spacy_robust_ner.span.samplers import AllSampler, UniformSampler, WeightedSampler

N_LABELS, WIDTH = 3, 4
LENGTHS = (5, 0, 4)
GOLD = ((0, 1, 3, 1), (0, 3, 4, 2), (2, 0, 1, 2))
HEADS = {
    "concat": lambda: ConcatProductHead(
        width=WIDTH, n_labels=N_LABELS, hidden_width=5, hidden_dropout=0.0
    ),
    "width": lambda: WidthEmbeddingHead(
        width=WIDTH,
        n_labels=N_LABELS,
        max_width=3,
        hidden_width=5,
        embedding_width=2,
        hidden_dropout=0.0,
    ),
    "biaffine": lambda: BiaffineHead(
        width=WIDTH, n_labels=N_LABELS, hidden_width=5, hidden_dropout=0.0
    ),
}


def make_head(name="concat"):
    torch.manual_seed(1)
    return HEADS[name]().double()


def make_batch(lengths=LENGTHS, gold=GOLD, *, max_width=3, **known):
    table = CandidateTable(lengths, max_width=max_width)
    doc_index, starts, ends, labels = np.array(gold, dtype=np.int64).reshape(-1, 4).T
    annotation = annotate(
        table, doc_index=doc_index, starts=starts, ends=ends, labels=labels, **known
    )
    torch.manual_seed(0)
    tokens = torch.randn(table.n_tokens, WIDTH, dtype=torch.float64, requires_grad=True)
    return table, annotation, tokens


def evaluate(objective, head, table, annotation, tokens, **more):
    return objective(head, tokens, table, annotation, course=more.pop("course", Course()), **more)


def all_logits(head, table, tokens):
    spans = table.spans()
    output = head(tokens, torch.from_numpy(spans.starts), torch.from_numpy(spans.ends))
    return output.logits, output.vectors


def all_targets(table, annotation):
    targets = torch.zeros(len(table), dtype=torch.long)
    targets[annotation.positive_rows] = torch.from_numpy(annotation.positive_labels)
    return targets


@pytest.mark.parametrize("name", HEADS)
def test_all_terms_together_are_their_formulas(name):
    head, (table, annotation, tokens) = make_head(name), make_batch()
    contrastive = ContrastiveTerm(weight=0.3)
    ratio = RatioTerm(ratio=0.1, margin=0.02, weight=7.0)
    objective = SpanObjective(
        sampler=AllSampler(), loss=CrossEntropy(), contrastive=contrastive, ratio=ratio
    )
    result = evaluate(objective, head, table, annotation, tokens)
    logits, vectors = all_logits(head, table, tokens)
    targets = all_targets(table, annotation)
    main = torch.nn.functional.cross_entropy(logits, targets, reduction="sum") / len(LENGTHS)
    term = supervised_contrastive(vectors, targets, temperature=0.1, denominator="all")
    expected = (1 - logits.softmax(1)[:, 0]).sum() / table.n_tokens
    of_ratio = 7.0 * ((expected - 0.1).abs() - 0.02).clamp(min=0)
    parts = {"spans": 0.7 * main, "contrastive": 0.3 * term, "ratio": of_ratio}
    assert of_ratio > 0
    for part, value in parts.items():
        assert result.terms[part].item() == pytest.approx(value.item(), rel=1e-9), part
    total = sum(parts.values())
    assert result.total.item() == pytest.approx(total.item(), rel=1e-9)
    inputs = [tokens, *head.parameters()]
    own = torch.autograd.grad(result.total, inputs, allow_unused=True)
    naive = torch.autograd.grad(total, inputs, allow_unused=True)
    for one, two in zip(own, naive, strict=True):
        assert (one is None) == (two is None)
        assert one is None or torch.allclose(one, two, atol=1e-9)


@pytest.mark.parametrize("name", HEADS)
@pytest.mark.parametrize("chunk_size", [4, 1000])
def test_gradient_check(name, chunk_size):
    head, (table, annotation, tokens) = make_head(name), make_batch()
    objective = SpanObjective(
        sampler=AllSampler(),
        loss=NRCES(w=2.0),
        contrastive=ContrastiveTerm(weight=0.3),
        ratio=RatioTerm(ratio=0.1, margin=0.0),
        chunk_size=chunk_size,
    )

    def total(inputs):
        return evaluate(objective, head, table, annotation, inputs, course=Course(1, 3)).total

    assert torch.autograd.gradcheck(total, (tokens,), fast_mode=True)


@pytest.mark.parametrize("chunk_size", [1, 3, 7, 50])
def test_chunks_change_nothing(chunk_size):
    head, batch = make_head(), make_batch()
    results = []
    for size in (chunk_size, 10_000):
        ratio = RatioTerm(ratio=0.0, margin=0.0)
        objective = SpanObjective(
            sampler=AllSampler(), loss=CrossEntropy(), ratio=ratio, chunk_size=size
        )
        result = evaluate(objective, head, *batch)
        gradients = torch.autograd.grad(result.total, [batch[2], head.output.weight])
        results.append((result.total, *gradients))
    for one, two in zip(*results, strict=True):
        assert torch.allclose(one, two, atol=1e-9)


def test_dropout_is_the_same_in_both_passes_over_a_chunk():
    """A chunk is computed again for its gradient, and has to drop the same values again."""
    head, (table, annotation, tokens) = make_head(), make_batch()
    head.hidden_dropout.p = 0.5
    objective = SpanObjective(sampler=AllSampler(), loss=CrossEntropy(), chunk_size=3)

    def total(inputs):
        torch.manual_seed(3)
        return evaluate(objective, head, table, annotation, inputs).total

    first, second = total(tokens), total(tokens)
    assert first == second
    assert total(tokens) != evaluate(objective, head, table, annotation, tokens).total
    assert torch.autograd.gradcheck(total, (tokens,), fast_mode=True)


def test_schedules_get_the_epoch():
    head, batch = make_head(), make_batch()
    for epoch in (0, 2):
        result = evaluate(
            SpanObjective(sampler=AllSampler(), loss=NRCES(w=2.0)),
            head,
            *batch,
            course=Course(epoch, 5),
        )
        logits, _ = all_logits(head, batch[0], batch[2])
        targets = all_targets(batch[0], batch[1])
        own = logits.log_softmax(1)[range(len(targets)), targets]
        beta = math.exp(-epoch / 2)
        bounded = 1 - torch.sigmoid(logits[range(len(targets)), targets])
        losses = torch.where(targets > 0, -own, -beta * own + (1 - beta) * bounded)
        assert result.total.item() == pytest.approx(losses.sum().item() / 3, rel=1e-9)


def test_loss_is_of_the_chosen_spans_alone():
    head, (table, annotation, tokens) = make_head(), make_batch()
    objective = SpanObjective(
        sampler=UniformSampler(rate=0.5), loss=CrossEntropy(normalization="sum")
    )
    result = evaluate(objective, head, table, annotation, tokens)
    logits, vectors = all_logits(head, table, tokens)
    rows = result.chosen.rows[: result.chosen.n_labelled]
    losses = torch.nn.functional.cross_entropy(logits[rows], result.chosen.targets, reduction="sum")
    assert result.total.item() == pytest.approx(losses.item(), rel=1e-9)
    assert len(rows) == 3 + 3 + 2
    assert torch.allclose(result.vectors, vectors[rows])
    assert not result.vectors.requires_grad


def test_ratio_sample_has_the_exact_value_and_an_unbiased_gradient():
    head, (table, annotation, tokens) = make_head(), make_batch((40,), (), max_width=8)
    ratio = RatioTerm(ratio=0.0, margin=0.0, weight=1.0)
    sampler = UniformSampler(rate=0.0)
    exact = evaluate(
        SpanObjective(sampler=sampler, loss=CrossEntropy(), ratio=ratio),
        head,
        table,
        annotation,
        tokens,
    )
    (expected,) = torch.autograd.grad(exact.total, tokens)
    objective = SpanObjective(sampler=sampler, loss=CrossEntropy(), ratio=ratio, ratio_spans=60)
    gradients = []
    for _ in range(300):
        result = evaluate(objective, head, table, annotation, tokens)
        assert len(result.chosen.ratio.rows) == 60 < len(table)
        assert result.terms["ratio"].item() == pytest.approx(exact.total.item(), rel=1e-6)
        gradients.append(torch.autograd.grad(result.total, tokens)[0])
    stacked = torch.stack(gradients)
    error = stacked.std(0) / math.sqrt(len(gradients))
    assert ((stacked.mean(0) - expected).abs() < 5 * error + 1e-9).all()
    assert (stacked[0] - expected).abs().max() > 1e-4, "it is a sample"


def test_samples_of_the_ratio_term_differ_and_come_back_with_the_seed():
    head, batch = make_head(), make_batch((40,), (), max_width=8)

    def draws(seed):
        objective = SpanObjective(
            sampler=AllSampler(),
            loss=CrossEntropy(),
            ratio=RatioTerm(ratio=0.1),
            ratio_spans=20,
            generator=torch.Generator().manual_seed(seed),
        )
        return [evaluate(objective, head, *batch).chosen.ratio.rows.tolist() for _ in range(2)]

    assert draws(1) == draws(1)
    assert draws(1)[0] != draws(1)[1]
    assert draws(1) != draws(2)


@pytest.mark.parametrize("use_all", [True, False])
def test_true_negatives(use_all):
    complete = np.array([True, False, False])
    table, annotation, tokens = make_batch(complete=complete)
    objective = SpanObjective(
        sampler=UniformSampler(rate=0.0), loss=CrossEntropy(), use_all_true_negatives=use_all
    )
    chosen = evaluate(objective, make_head(), table, annotation, tokens).chosen
    of_first = set(range(int(table.doc_rows[1]))) - set(annotation.positive_rows.tolist())
    assert set(chosen.negatives.rows.tolist()) == (of_first if use_all else set())
    assert chosen.negatives.is_true_negative.all()


def test_risk_weighs_sampled_spans_by_what_they_stand_for():
    """Averaged over many samples, the risk of sampled spans is that of all. Without the weights the
    labelled spans, which are in every sample, would count too much."""
    head = make_head()
    table, annotation, tokens = make_batch((12, 0, 3), ((0, 1, 3, 1), (2, 0, 1, 1)))
    with torch.no_grad():
        head.output.weight.mul_(3)
    risk = BoundedNonNegativePURisk(priors=[0.0, 0.0, 0.0])
    batch = (head, table, annotation, tokens)
    everything = evaluate(SpanObjective(sampler=AllSampler(), loss=risk), *batch).total.item()
    sampled = SpanObjective(sampler=UniformSampler(rate=0.3), loss=risk)
    entity_probs = 1 - all_logits(head, table, tokens)[0].softmax(1)[:, 0]
    values, unweighted = [], []
    for _ in range(400):
        result = evaluate(sampled, *batch)
        values.append(result.total.item())
        unweighted.append(entity_probs[result.chosen.rows].mean().item())
    error = np.std(values) / np.sqrt(len(values))
    assert abs(np.mean(values) - everything) < 4 * error
    assert abs(np.mean(unweighted) - everything) > 10 * error


def test_confidence_is_read_for_the_chosen_spans():
    head, (table, annotation, tokens) = make_head(), make_batch()
    known = torch.linspace(0, 1, len(table), dtype=torch.float64)
    risk = ConfidencePURisk(priors=[0.0, 0.1, 0.1])
    asked = []

    def read(candidates):
        asked.append(candidates.rows.tolist())
        return known[candidates.rows]

    objective = SpanObjective(sampler=UniformSampler(rate=1.0), loss=risk)
    result = evaluate(objective, head, table, annotation, tokens, confidence=read)
    assert asked == [result.chosen.rows.tolist()]
    assert result.total.item() > 0
    with pytest.raises(ValueError, match=r"R113.*ConfidencePURisk"):
        evaluate(objective, head, table, annotation, tokens)


def test_risks_refuse_samplers_that_are_not_fair():
    with pytest.raises(ValueError, match=r"R111.*BoundedNonNegativePURisk.*WeightedSampler"):
        SpanObjective(sampler=WeightedSampler(), loss=BoundedNonNegativePURisk(priors=[0.0, 0.1]))


def test_something_that_is_no_head_is_refused():
    with pytest.raises(TypeError, match=r"R112.*Linear"):
        evaluate(
            SpanObjective(sampler=AllSampler(), loss=CrossEntropy()),
            torch.nn.Linear(2, 2),
            *make_batch(),
        )


@pytest.mark.parametrize("lengths", [(), (0,), (3,)])
def test_nothing_to_learn_from_is_zero_with_a_gradient(lengths):
    table, annotation, tokens = make_batch(
        lengths, (), missing=np.ones(sum(lengths), dtype=bool), complete=np.zeros(len(lengths))
    )
    head = make_head()
    objective = SpanObjective(
        sampler=AllSampler(), loss=CrossEntropy(), contrastive=ContrastiveTerm()
    )
    result = evaluate(objective, head, table, annotation, tokens)
    assert result.total.item() == 0
    result.total.backward()
    assert all(p.grad is None or not p.grad.any() for p in head.parameters())
