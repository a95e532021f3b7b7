import numpy as np
import pytest
import torch

from spacy_robust_ner.candidates import CandidateTable, annotate
from spacy_robust_ner.span.choosing import choose_spans
from spacy_robust_ner.span.heads import BiaffineHead, ConcatProductHead, WidthEmbeddingHead
from spacy_robust_ner.span.losses import CrossEntropy
from spacy_robust_ner.span.ratio import RatioSample, RatioTerm, entity_probabilities
from spacy_robust_ner.span.samplers import (
    AllSampler,
    FractionSampler,
    TopSimilaritySampler,
    UniformSampler,
    WeightedSampler,
)
from spacy_robust_ner.types import LossInput

SAMPLERS = [AllSampler, UniformSampler, WeightedSampler, TopSimilaritySampler, FractionSampler]
N_LABELS, WIDTH = 3, 8


def make_batch(lengths=(7, 0, 5), max_width=3, gold=((0, 1, 3, 1), (2, 0, 1, 2))):
    table = CandidateTable(lengths, max_width=max_width)
    columns = np.array(gold, dtype=np.int64).reshape(-1, 4).T
    doc_index, starts, ends, labels = columns
    annotation = annotate(table, doc_index=doc_index, starts=starts, ends=ends, labels=labels)
    torch.manual_seed(0)
    return table, annotation, torch.randn(table.n_tokens, WIDTH)


class CountingHead(ConcatProductHead):
    """Counts what is scored, and whether dropout was off."""

    def __init__(self):
        super().__init__(width=WIDTH, n_labels=N_LABELS, token_dropout=0.5)
        self.scored = []
        self.was_training = []

    def score(self, projections, starts, ends):
        self.scored.append(len(starts))
        self.was_training.append(self.training)
        return super().score(projections, starts, ends)


@pytest.mark.parametrize("make_sampler", SAMPLERS)
def test_positives_come_first_and_targets_fit(make_sampler):
    table, annotation, tokens = make_batch()
    chosen = choose_spans(
        CountingHead(), tokens, table, annotation, make_sampler(), budget=5, doc_keys=[3, 4, 5]
    )
    assert chosen.rows[:2].tolist() == annotation.positive_rows.tolist()
    assert chosen.targets[:2].tolist() == [1, 2]
    assert chosen.rows[2:].tolist() == chosen.negatives.rows.tolist()
    assert set(chosen.targets[2:].tolist()) == {0}
    assert len(chosen.weights) == len(chosen.targets) == chosen.n_labelled
    spans = table.spans()
    assert chosen.starts.tolist() == spans.starts[chosen.rows.numpy()].tolist()
    assert chosen.ends.tolist() == spans.ends[chosen.rows.numpy()].tolist()


@pytest.mark.parametrize(
    ("make_sampler", "needs"),
    [
        (AllSampler, False),
        (UniformSampler, False),
        (FractionSampler, False),
        (WeightedSampler, True),
        (TopSimilaritySampler, True),
    ],
)
def test_only_what_is_needed_is_scored(make_sampler, needs):
    table, annotation, tokens = make_batch()
    head = CountingHead().train()
    choose_spans(head, tokens, table, annotation, make_sampler(), budget=5, doc_keys=[3, 4, 5])
    assert head.training
    # The noise is a part of this method.
    assert set(head.was_training) <= {make_sampler is TopSimilaritySampler}
    assert max(head.scored, default=0) <= 5
    expected = len(table) + (2 if make_sampler is TopSimilaritySampler else 0)
    assert sum(head.scored) == (expected if needs else 0)


@pytest.mark.parametrize("with_ratio", [True, False])
@pytest.mark.parametrize("dropout", [True, False])
def test_dropout_while_choosing(dropout, with_ratio):
    table, annotation, tokens = make_batch()
    head = CountingHead().train()
    sampler = TopSimilaritySampler(dropout=dropout)
    generator = torch.Generator().manual_seed(0)
    sample = RatioSample(4, term=RatioTerm(ratio=0.1), o_index=0, generator=generator)
    ratio = {"ratio_sample": sample} if with_ratio else {}
    choose_spans(head, tokens, table, annotation, sampler, budget=5, **ratio)
    # The ratio term needs the probabilities as they are.
    assert set(head.was_training) == {dropout and not with_ratio}
    assert head.training


def test_ratio_spans_come_last():
    table, annotation, tokens = make_batch()
    term = RatioTerm(ratio=0.1)
    sample = RatioSample(4, term=term, o_index=0, generator=torch.Generator().manual_seed(0))
    chosen = choose_spans(
        CountingHead(), tokens, table, annotation, UniformSampler(), budget=5, ratio_sample=sample
    )
    assert len(chosen.rows) - chosen.n_labelled == 4
    assert chosen.rows[chosen.n_labelled :].tolist() == chosen.ratio.rows.tolist()
    head = CountingHead().eval()
    torch.manual_seed(1)
    everything = head(tokens, *map(torch.from_numpy, (table.spans().starts, table.spans().ends)))
    sample = RatioSample(4, term=term, o_index=0, generator=torch.Generator())
    chosen = choose_spans(
        head, tokens, table, annotation, UniformSampler(), budget=5, ratio_sample=sample
    )
    expected = entity_probabilities(everything.logits.double(), 0).sum()
    assert chosen.ratio.exact.item() == pytest.approx(expected.item(), rel=1e-5)


@pytest.mark.parametrize("make_sampler", SAMPLERS)
@pytest.mark.parametrize("lengths", [(), (0,), (1,)])
def test_empty_batches(make_sampler, lengths):
    table, annotation, tokens = make_batch(lengths, gold=())
    sample = RatioSample(4, term=RatioTerm(ratio=0.1), o_index=0, generator=torch.Generator())
    chosen = choose_spans(
        CountingHead(),
        tokens,
        table,
        annotation,
        make_sampler(),
        budget=5,
        doc_keys=[1] * len(lengths),
        ratio_sample=sample,
    )
    assert len(chosen.starts) == len(chosen.rows) <= 2
    assert (chosen.ratio is None) == (len(table) == 0)


@pytest.mark.parametrize("make_sampler", SAMPLERS)
@pytest.mark.parametrize(
    "make_head",
    [
        lambda: ConcatProductHead(width=WIDTH, n_labels=2, hidden_width=16),
        lambda: WidthEmbeddingHead(width=WIDTH, n_labels=2, max_width=3, hidden_width=16),
        lambda: BiaffineHead(width=WIDTH, n_labels=2, hidden_width=16),
    ],
)
def test_training_finds_the_entities(make_head, make_sampler):
    """Both phases together on a learnable task: entities are the spans "a b"."""
    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    words = torch.randn(5, WIDTH)
    text = rng.integers(2, 5, size=(8, 12))
    text[:, 2:4] = text[:, 7:9] = (0, 1)  # Two entities, and each word once elsewhere.
    text[:, 5], text[:, 11] = 0, 1
    gold = [(doc, start, start + 2, 1) for doc in range(8) for start in (2, 7)]
    table, annotation, _ = make_batch([12] * 8, 3, gold)
    tokens = words[text.reshape(-1)] + 0.1 * torch.randn(96, WIDTH)
    # The default share would be ten negatives here, too few to learn from, and the model never sees
    # what is unlike any entity.
    sampler = make_sampler(share=0.4) if make_sampler is TopSimilaritySampler else make_sampler()
    head = make_head()
    optimizer = torch.optim.Adam(head.parameters(), lr=0.02)
    loss = CrossEntropy()
    for epoch in range(80):
        chosen = choose_spans(
            head,
            tokens,
            table,
            annotation,
            sampler,
            budget=50,
            epoch=epoch,
            max_epochs=80,
            doc_keys=range(8),
        )
        optimizer.zero_grad()
        output = head(tokens, chosen.starts, chosen.ends)
        loss(LossInput(logits=output.logits, targets=chosen.targets, n_docs=8)).backward()
        optimizer.step()
    head.eval()
    spans = table.spans()
    output = head(tokens, torch.from_numpy(spans.starts), torch.from_numpy(spans.ends))
    found = set(torch.nonzero(output.logits.argmax(1)).squeeze(1).tolist())
    entities = set(annotation.positive_rows.tolist())
    assert found == entities
