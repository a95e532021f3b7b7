import itertools
import math

import pytest
import torch

from spacy_robust_ner.candidates import CandidateTable
from spacy_robust_ner.span.segmentation import (
    SegmentGrid,
    entity_scores,
    label_marginals,
    partial_likelihood,
    partition_and_expectation,
)

LENGTHS = (4, 0, 1, 3)
O_INDEX = 1
N_LABELS = 3


def segmentations(n_tokens, max_width):
    """All ways to place entities, as lists of (start, end, label)."""
    if n_tokens <= 0:
        yield []
        return
    for rest in segmentations(n_tokens - 1, max_width):
        yield rest
    for width in range(1, min(max_width, n_tokens) + 1):
        for rest in segmentations(n_tokens - width, max_width):
            for label in range(N_LABELS):
                if label != O_INDEX:
                    yield [*rest, (n_tokens - width, n_tokens, label)]


@pytest.fixture(params=[1, 2, 3, None])
def batch(request):
    table = CandidateTable(LENGTHS, max_width=request.param)
    torch.manual_seed(0)
    return table, torch.randn(len(table), N_LABELS, dtype=torch.float64)


def score(table, logits, doc, entities):
    total = 0.0
    for start, end, label in entities:
        row = table.rows_of([doc], [start], [end])[0]
        total += float(logits[row, label] - logits[row, O_INDEX])
    return total


def enumerate_doc(table, logits, doc):
    width = table.max_width or 99
    for entities in segmentations(LENGTHS[doc], width):
        yield entities, math.exp(score(table, logits, doc, entities))


@pytest.mark.parametrize("by_width", [False, True])
def test_partition_and_expectation_equal_enumeration(batch, by_width):
    table, logits = batch
    grid = SegmentGrid.of(table, logits.device)
    segments = grid.pad(entity_scores(logits, O_INDEX).logsumexp(1))
    widths = torch.arange(1, grid.n_widths + 1, dtype=torch.float64)
    sizes = widths if by_width else torch.ones_like(widths)
    total, expected = partition_and_expectation(segments, torch.zeros(segments.shape[:2]), sizes)
    for doc in range(len(LENGTHS)):
        weights = list(enumerate_doc(table, logits, doc))
        z = sum(weight for _, weight in weights)
        assert float(total[doc]) == pytest.approx(math.log(z))
        size = sum(
            weight * sum((end - start) if by_width else 1 for start, end, _ in entities)
            for entities, weight in weights
        )
        assert float(expected[doc]) == pytest.approx(size / z)


def test_marginals_equal_enumeration(batch):
    table, logits = batch
    marginals = label_marginals(logits, table, o_index=O_INDEX)
    for doc, length in enumerate(LENGTHS):
        weights = list(enumerate_doc(table, logits, doc))
        z = sum(weight for _, weight in weights)
        for start, end in itertools.combinations(range(length + 1), 2):
            row = table.rows_of([doc], [start], [end])[0]
            if row < 0:
                continue
            rest = 1.0
            for label in (0, 2):
                wanted = sum(w for entities, w in weights if (start, end, label) in entities) / z
                rest -= wanted
                assert float(marginals[row, label]) == pytest.approx(wanted)
            assert float(marginals[row, O_INDEX]) == pytest.approx(rest)


def test_partial_likelihood_equals_enumeration(batch):
    table, logits = batch
    grid = SegmentGrid.of(table, logits.device)
    positive = torch.from_numpy(table.rows_of([0, 3], [1, 2], [2, 3]))
    negative = torch.from_numpy(table.rows_of([0, 2], [3, 0], [4, 1]))
    result = partial_likelihood(
        logits,
        grid,
        positive=positive,
        targets=torch.tensor([2, 0]),
        negative=negative,
        o_index=O_INDEX,
    )
    wanted = {0: ([(1, 2, 2)], [(3, 4)]), 1: ([], []), 2: ([], [(0, 1)]), 3: ([(2, 3, 0)], [])}
    for doc, (required, forbidden) in wanted.items():
        z = sum(
            weight
            for entities, weight in enumerate_doc(table, logits, doc)
            if all(entity in entities for entity in required)
            and not any(entity[:2] in forbidden for entity in entities)
        )
        assert float(result[doc]) == pytest.approx(math.log(z))


def test_gradients(batch):
    table, logits = batch
    grid = SegmentGrid.of(table, logits.device)
    positive = torch.from_numpy(table.rows_of([0], [1], [2]))

    def objective(values):
        segments = grid.pad(entity_scores(values, O_INDEX).logsumexp(1))
        sizes = torch.ones(grid.n_widths, dtype=torch.float64)
        total, expected = partition_and_expectation(
            segments, torch.zeros(segments.shape[:2]), sizes
        )
        partial = partial_likelihood(
            values,
            grid,
            positive=positive,
            targets=torch.tensor([2]),
            negative=positive[:0],
            o_index=O_INDEX,
        )
        return (total - partial).sum() + expected.sum() ** 2

    assert torch.autograd.gradcheck(objective, (logits.requires_grad_(),))


def test_long_documents_in_single_precision():
    table = CandidateTable((512, 300), max_width=10)
    torch.manual_seed(0)
    logits = torch.randn(len(table), 5) * 5
    single = label_marginals(logits, table, o_index=0)
    double = label_marginals(logits.double(), table, o_index=0)
    assert torch.allclose(single.double(), double, atol=1e-3)
    assert float(single.min()) >= 0.0
