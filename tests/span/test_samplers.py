import itertools
import math
from collections import Counter

import numpy as np
import pytest
import torch

from spacy_robust_ner.candidates import CandidateTable, annotate
from spacy_robust_ner.span.choosing import choose_spans
from spacy_robust_ner.span.heads import BiaffineHead, ConcatProductHead, WidthEmbeddingHead
from spacy_robust_ner.span.samplers import (
    AllSampler,
    FractionSampler,
    TopSimilaritySampler,
    UniformSampler,
    WeightedSampler,
    mean_unit_vector,
)
from spacy_robust_ner.span.scanning import positive_anchor, scan
from spacy_robust_ner.span.selection import NegativeSelection, segment_top_k
from spacy_robust_ner.types import NegativeSampler, SamplerContext, SamplerInput

MAKERS = {
    "all": AllSampler,
    "uniform": UniformSampler,
    "weighted": WeightedSampler,
    "top_similarity": lambda **kw: TopSimilaritySampler(share=0.3, **kw),
    "fraction": FractionSampler,
    "fraction_each_epoch": lambda **kw: FractionSampler(each_epoch=True, **kw),
}
CPU = torch.device("cpu")


class Batch:
    """A random batch with every kind of annotation."""

    def __init__(self, seed=0, lengths=(6, 0, 1, 9, 4), max_width=4, labelled=True):
        rng = np.random.default_rng(seed)
        self.table = CandidateTable(lengths, max_width=max_width)
        spans = self.table.spans()
        gold = rng.choice(len(spans), size=5 if labelled else 0, replace=False)
        rejected = rng.choice(len(spans), size=3, replace=False)

        def place(rows):
            at = self.table.spans_at(rows)
            offset = self.table.doc_starts[at.doc_index]
            return at.doc_index, at.starts - offset, at.ends - offset

        doc_index, starts, ends = place(gold)
        self.missing = rng.random(self.table.n_tokens) < 0.15
        self.annotation = annotate(
            self.table,
            doc_index=doc_index,
            starts=starts,
            ends=ends,
            labels=np.ones(len(gold), dtype=np.int64),
            missing=self.missing,
            complete=np.arange(len(lengths)) == len(lengths) - 1,
            rejected=place(rejected),
        )
        self.rejected = set(rejected.tolist()) - set(gold.tolist())
        self.gold = set(gold.tolist())
        torch.manual_seed(seed)
        self.head = ConcatProductHead(width=8, n_labels=4, hidden_width=6).eval()
        with torch.no_grad():
            self.projections = self.head.prepare(torch.randn(self.table.n_tokens, 8))
        self.spans = spans

    def context(self, **settings):
        return SamplerContext(
            doc_lengths=torch.from_numpy(self.table.lengths),
            doc_candidates=torch.from_numpy(np.diff(self.table.doc_rows)),
            doc_keys=[hash_ * 7919 - 3 for hash_ in range(len(self.table.lengths))],
            max_epochs=4,
            anchor=positive_anchor(self.head, self.projections, self.table, self.annotation),
            **settings,
        )

    def chunks(self, budget=10_000):
        return scan(
            self.table,
            self.annotation,
            budget=budget,
            device=CPU,
            head=self.head,
            projections=self.projections,
        )

    def sample(self, sampler, *, budget=10_000, use_all_true_negatives=False, **settings):
        selection = NegativeSelection(
            sampler, self.context(**settings), use_all_true_negatives=use_all_true_negatives
        )
        for chunk in self.chunks(budget):
            selection.add(chunk)
        return selection.finish()

    def never(self):
        """Rows that must not become negatives, by looking at each span."""
        touches = {
            row
            for row, (start, end) in enumerate(zip(self.spans.starts, self.spans.ends, strict=True))
            if self.missing[start:end].any()
        }
        return self.gold | (touches - self.rejected)

    def pool(self):
        return set(range(len(self.table))) - self.never()


@pytest.mark.parametrize("name", MAKERS)
def test_samplers_fit_the_protocol(name):
    assert isinstance(MAKERS[name](), NegativeSampler)


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("use_all", [False, True])
def test_no_labelled_or_unknown_span_is_a_negative(name, seed, use_all):
    batch = Batch(seed)
    sampler = MAKERS[name]()
    rows = set()
    for epoch in range(4):
        sample = batch.sample(sampler, use_all_true_negatives=use_all, epoch=epoch)
        chosen = sample.rows.tolist()
        assert chosen == sorted(set(chosen))
        rows.update(chosen)
        if use_all:
            vouched = set(np.flatnonzero(batch.annotation.is_true_negative(batch.spans)).tolist())
            assert vouched
            assert vouched <= set(chosen)
        for row, flag in zip(chosen, sample.is_true_negative.tolist(), strict=True):
            assert flag == batch.annotation.is_true_negative(batch.spans)[row]
    assert rows
    assert not rows & batch.never()


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("use_all", [False, True])
@pytest.mark.parametrize("budget", [1, 7, 40])
def test_chunked_equals_unchunked(name, use_all, budget):
    batch = Batch(1)
    settings = {"use_all_true_negatives": use_all, "epoch": 1}
    whole = batch.sample(MAKERS[name](), **settings)
    pieces = batch.sample(MAKERS[name](), budget=budget, **settings)
    assert whole.rows.tolist() == pieces.rows.tolist()
    assert whole.is_true_negative.tolist() == pieces.is_true_negative.tolist()
    assert whole.weights.tolist() == pieces.weights.tolist()


@pytest.mark.parametrize("name", MAKERS)
def test_seed_and_state_decide(name):
    batch = Batch(2)
    sampler = MAKERS[name]()
    first = [batch.sample(sampler).rows.tolist() for _ in range(4)]
    state = sampler.get_state()
    later = [batch.sample(sampler).rows.tolist() for _ in range(4)]
    again = MAKERS[name]()
    assert [batch.sample(again).rows.tolist() for _ in range(4)] == first
    resumed = MAKERS[name]()
    resumed.set_state(state)
    assert [batch.sample(resumed).rows.tolist() for _ in range(4)] == later
    if name in ("uniform", "weighted"):
        assert first != later
        other = MAKERS[name](seed=5)
        assert [batch.sample(other).rows.tolist() for _ in range(4)] != first


def test_all_takes_the_whole_pool():
    batch = Batch(3)
    sample = batch.sample(AllSampler())
    assert set(sample.rows.tolist()) == batch.pool()
    assert sample.weights.unique().tolist() == [1.0]


@pytest.mark.parametrize("sampler", [UniformSampler, WeightedSampler])
@pytest.mark.parametrize("rate", [0.0, 0.1, 0.35, 0.5, 3.0, 50.0])
def test_counts_are_capped_shares_of_the_tokens(sampler, rate):
    batch = Batch(4, lengths=(20, 0, 1, 9, 2), max_width=3)
    sample = batch.sample(sampler(rate=rate))
    pool = Counter(batch.spans.doc_index[list(batch.pool())].tolist())
    chosen = Counter(batch.spans.doc_index[sample.rows.numpy()].tolist())
    for doc, length in enumerate([20, 0, 1, 9, 2]):
        wanted = math.ceil(round(rate * length, 9))
        assert chosen[doc] == min(wanted, pool[doc])
    if sampler is UniformSampler and rate:
        # The negatives of each document stand for all its candidates.
        for doc, size in pool.items():
            mine = batch.spans.doc_index[sample.rows.numpy()] == doc
            assert sample.weights.numpy()[mine].sum() == pytest.approx(size)


def plain_input(n_spans, **columns):
    no = torch.zeros(n_spans, dtype=torch.bool)
    rows = torch.arange(n_spans)
    return SamplerInput(
        rows=rows,
        doc_index=torch.zeros_like(rows),
        starts=rows,
        ends=rows + 1,
        is_positive=no,
        is_unknown=no,
        is_true_negative=no,
        **columns,
    )


def plain_context(n_spans, n_tokens, **settings):
    return SamplerContext(
        doc_lengths=torch.tensor([n_tokens]), doc_candidates=torch.tensor([n_spans]), **settings
    )


def draw(sampler, spans, context):
    selection = NegativeSelection(sampler, context)
    selection.add(spans)
    return tuple(selection.finish().rows.tolist())


def test_counts_are_not_raised_by_rounding():
    assert 0.07 * 100 > 7
    spans, context = plain_input(200), plain_context(200, 100)
    assert len(draw(UniformSampler(rate=0.07), spans, context)) == 7
    assert len(draw(UniformSampler(rate=0.0701), spans, context)) == 8
    batch_wide = TopSimilaritySampler(share=0.07)
    assert batch_wide.quota(torch.tensor([100]), context).tolist() == [7]


def weighted_r(probs, mu, outside_in_max):
    scores = []
    for row in probs.tolist():
        entropy = -sum(p * math.log(p) for p in row)
        rival = max(row if outside_in_max else row[1:])
        scores.append(entropy * (1 + row[0] - rival) ** mu)
    return scores


@pytest.mark.parametrize("outside_in_max", [False, True])
@pytest.mark.parametrize("epoch", [0, 3, 9])
def test_weights_follow_the_formula(outside_in_max, epoch):
    torch.manual_seed(0)
    probs = torch.softmax(2 * torch.randn(7, 4, dtype=torch.float64), dim=1)
    sampler = WeightedSampler(mu=3, outside_in_max=outside_in_max)
    context = plain_context(7, 7, max_epochs=10, epoch=epoch)
    ours = sampler.log_weights(plain_input(7, log_probs=probs.log()), context)
    temperature = math.sqrt(10 - epoch)
    expected = [r / temperature for r in weighted_r(probs, 3, outside_in_max)]
    assert ours.tolist() == pytest.approx(expected)


@pytest.mark.parametrize("outside_in_max", [False, True])
@pytest.mark.parametrize("epoch", [0, 9])
def test_weights_without_preference_for_hard_spans(outside_in_max, epoch):
    torch.manual_seed(0)
    probs = torch.softmax(2 * torch.randn(7, 4, dtype=torch.float64), dim=1)
    sampler = WeightedSampler(mu=3, outside_in_max=outside_in_max, prefer_hard=False)
    context = plain_context(7, 7, max_epochs=10, epoch=epoch)
    ours = sampler.log_weights(plain_input(7, log_probs=probs.log()), context).exp()
    expected = [
        (1 + row[0] - max(row if outside_in_max else row[1:])) ** (3 / math.sqrt(10 - epoch))
        for row in probs.tolist()
    ]
    assert ours.tolist() == pytest.approx(expected)


def test_temperature_stays_defined_after_the_last_epoch():
    log_probs = torch.full((2, 2), 0.5).log()
    keys = [
        WeightedSampler().log_weights(
            plain_input(2, log_probs=log_probs), plain_context(2, 2, max_epochs=3, epoch=epoch)
        )
        for epoch in (2, 3, 30)
    ]
    assert torch.equal(keys[0], keys[1])
    assert torch.equal(keys[0], keys[2])


def test_certain_probabilities_have_finite_keys():
    log_probs = torch.tensor([[0.0, -torch.inf], [-torch.inf, 0.0]])
    keys = WeightedSampler().keys(plain_input(2, log_probs=log_probs), plain_context(2, 2))
    assert torch.isfinite(keys).all()


def test_gumbel_draw_has_the_sequential_distribution():
    """Frequencies of all pairs against the product of the turns' probabilities."""
    torch.manual_seed(1)
    probs = torch.softmax(1.5 * torch.randn(5, 3, dtype=torch.float64), dim=1)
    sampler = WeightedSampler(rate=0.4, mu=2, seed=0)
    spans = plain_input(5, log_probs=probs.log())
    context = plain_context(5, 5, max_epochs=2)
    weights = [math.exp(r / math.sqrt(2)) for r in weighted_r(probs, 2, False)]
    exact = Counter()
    for first, second in itertools.permutations(range(5), 2):
        turn_one = weights[first] / sum(weights)
        turn_two = weights[second] / (sum(weights) - weights[first])
        exact[tuple(sorted((first, second)))] += turn_one * turn_two
    assert sum(exact.values()) == pytest.approx(1)
    assert max(exact.values()) > 2 * min(exact.values())
    # Many documents with the same five spans at once.
    n_docs, n_rounds = 2_000, 10
    counts = Counter()
    many = plain_input(5 * n_docs, log_probs=probs.log().repeat(n_docs, 1))
    many = SamplerInput(**{**vars(many), "doc_index": torch.arange(n_docs).repeat_interleave(5)})
    many_context = SamplerContext(
        doc_lengths=torch.full((n_docs,), 5),
        doc_candidates=torch.full((n_docs,), 5),
        max_epochs=2,
    )
    for _ in range(n_rounds):
        rows = torch.tensor(draw(sampler, many, many_context))
        counts.update(map(tuple, (rows % 5).reshape(n_docs, 2).tolist()))
    assert set(counts) <= set(exact)
    total = n_docs * n_rounds
    for pair, probability in exact.items():
        error = math.sqrt(probability * (1 - probability) / total)
        assert abs(counts[pair] / total - probability) < 4.5 * error
    assert len(draw(sampler, spans, context)) == 2


def test_uniform_draw_is_uniform():
    sampler = UniformSampler(rate=0.4)
    counts = Counter(draw(sampler, plain_input(5), plain_context(5, 5)) for _ in range(2_000))
    assert len(counts) == 10
    for count in counts.values():
        assert abs(count / 2_000 - 0.1) < 4.5 * math.sqrt(0.1 * 0.9 / 2_000)


@pytest.mark.parametrize("end", ["top", "bottom"])
@pytest.mark.parametrize("seed", range(5))
def test_top_similarity_against_the_mean_of_cosines(seed, end):
    batch = Batch(seed)
    sample = batch.sample(TopSimilaritySampler(share=0.3, end=end))
    output = batch.head.score(
        batch.projections,
        torch.from_numpy(batch.spans.starts),
        torch.from_numpy(batch.spans.ends),
    )
    pool = sorted(batch.pool())
    cosines = torch.nn.functional.cosine_similarity(
        output.vectors[pool].unsqueeze(1), output.vectors[sorted(batch.gold)].unsqueeze(0), dim=2
    )
    n_chosen = math.ceil(0.3 * len(pool))
    best = cosines.mean(1).topk(n_chosen, largest=end == "top").indices.tolist()
    assert sample.rows.tolist() == sorted(pool[i] for i in best)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("make_head", [ConcatProductHead, WidthEmbeddingHead, BiaffineHead])
def test_top_similarity_of_representations(make_head, seed):
    torch.manual_seed(seed)
    sizes = {"max_width": 2} if make_head is WidthEmbeddingHead else {}
    head = make_head(width=6, n_labels=3, hidden_width=5, token_dropout=0.5, **sizes)
    tokens = torch.randn(15, 6)
    table = CandidateTable([9, 0, 6], max_width=4)
    gold = np.array([[0, 1, 3, 1], [0, 5, 6, 2], [2, 0, 4, 1]]).T
    annotation = annotate(table, doc_index=gold[0], starts=gold[1], ends=gold[2], labels=gold[3])
    sampler = TopSimilaritySampler(share=0.3, of="representation")
    chosen = choose_spans(head, tokens, table, annotation, sampler, budget=7)
    spans = table.spans()
    all_of_them = head.represent(tokens, *map(torch.from_numpy, (spans.starts, spans.ends)))
    positive = annotation.positive_rows.tolist()
    pool = [row for row in range(len(table)) if row not in positive]
    cosines = torch.nn.functional.cosine_similarity(
        all_of_them[pool].unsqueeze(1), all_of_them[positive].unsqueeze(0), dim=2
    )
    best = cosines.mean(1).topk(math.ceil(0.3 * len(pool))).indices.tolist()
    assert chosen.negatives.rows.tolist() == sorted(pool[i] for i in best)


def test_top_similarity_without_positives_draws_at_random():
    batch = Batch(0, labelled=False)
    assert batch.context().anchor is None
    sampler = TopSimilaritySampler(share=0.2)
    samples = {tuple(batch.sample(sampler).rows.tolist()) for _ in range(5)}
    assert len(samples) == 5
    assert {len(rows) for rows in samples} == {math.ceil(0.2 * len(batch.pool()))}


def test_mean_unit_vector():
    vectors = torch.tensor([[3.0, 0.0], [0.0, 0.5]])
    assert mean_unit_vector(vectors).tolist() == [0.5, 0.5]
    assert mean_unit_vector(vectors[:0]) is None


def fraction_of(sampler, lengths, keys, epoch=0, max_width=None):
    """The chosen spans as (document key, start, end)."""
    table = CandidateTable(lengths, max_width=max_width)
    none = np.empty(0, dtype=np.int64)
    annotation = annotate(table, doc_index=none, starts=none, ends=none, labels=none)
    context = SamplerContext(
        doc_lengths=torch.tensor(lengths),
        doc_candidates=torch.from_numpy(np.diff(table.doc_rows)),
        doc_keys=keys,
        epoch=epoch,
    )
    selection = NegativeSelection(sampler, context)
    for chunk in scan(table, annotation, budget=10**6, device=CPU):
        selection.add(chunk)
    spans = table.spans_at(selection.finish().rows.numpy())
    offset = table.doc_starts[spans.doc_index]
    return set(
        zip(
            [keys[doc] for doc in spans.doc_index],
            (spans.starts - offset).tolist(),
            (spans.ends - offset).tolist(),
            strict=True,
        )
    )


def test_fraction_depends_on_document_and_span_alone():
    sampler = FractionSampler(share=0.5, seed=1)
    together = fraction_of(sampler, [6, 4, 5], [-11, 2**63 + 5, 7])
    apart = set()
    for key, length in [(7, 5), (-11, 6), (2**63 + 5, 4)]:
        apart |= fraction_of(sampler, [length], [key], epoch=3, max_width=9)
    assert together == apart
    assert fraction_of(FractionSampler(share=0.5, seed=2), [6, 4, 5], [-11, 3, 7]) != together


def test_fraction_has_its_share_and_changes_by_epoch_if_wanted():
    lengths, keys = [100], [42]
    for each_epoch in (False, True):
        sampler = FractionSampler(share=0.3, each_epoch=each_epoch)
        first, second = (fraction_of(sampler, lengths, keys, epoch) for epoch in (0, 1))
        n_spans = 100 * 101 // 2
        assert abs(len(first) / n_spans - 0.3) < 4.5 * math.sqrt(0.3 * 0.7 / n_spans)
        both = len(first & second) / n_spans
        if each_epoch:
            assert abs(both - 0.09) < 4.5 * math.sqrt(0.09 * 0.91 / n_spans)
        else:
            assert first == second
    assert fraction_of(FractionSampler(share=0.0), lengths, keys) == set()
    assert len(fraction_of(FractionSampler(share=1.0), lengths, keys)) == 5050


@pytest.mark.parametrize("seed", range(10))
def test_segment_top_k_against_sorting(seed):
    rng = torch.Generator().manual_seed(seed)
    segments = torch.randint(0, 4, (30,), generator=rng)
    keys = torch.randint(0, 6, (30,), generator=rng).double()
    k = torch.tensor([0, 3, 100, 5])
    expected = []
    for segment in range(4):
        items = [i for i in range(30) if segments[i] == segment]
        expected += sorted(items, key=lambda i: (-keys[i], i))[: k[segment]]
    assert segment_top_k(keys, segments, k).tolist() == sorted(expected)


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("lengths", [(), (0,), (1,), (2,), (0, 0)])
def test_hardly_any_candidates(name, lengths):
    batch = Batch.__new__(Batch)
    batch.table = CandidateTable(lengths, max_width=1)
    none = np.empty(0, dtype=np.int64)
    batch.annotation = annotate(batch.table, doc_index=none, starts=none, ends=none, labels=none)
    batch.head = ConcatProductHead(width=8, n_labels=4, hidden_width=6).eval()
    with torch.no_grad():
        batch.projections = batch.head.prepare(torch.randn(batch.table.n_tokens, 8))
    sample = batch.sample(MAKERS[name]())
    assert set(sample.rows.tolist()) <= set(range(len(batch.table)))
    if name in ("all", "uniform", "weighted", "top_similarity"):
        assert len(sample.rows) == min(1 if name != "all" else 2, len(batch.table))
    assert len(sample.weights) == len(sample.is_true_negative) == len(sample.rows)


def test_settings_and_inputs_are_checked():
    for make in (
        lambda: UniformSampler(rate=-1),
        lambda: WeightedSampler(mu=0.5),
        lambda: TopSimilaritySampler(share=1.5),
        lambda: FractionSampler(share=-0.1),
    ):
        with pytest.raises(ValueError, match="R103"):
            make()
    with pytest.raises(ValueError, match="R105"):
        TopSimilaritySampler(end="middle")
    context = plain_context(1, 1, anchor=torch.ones(2))
    for sampler in (WeightedSampler(), TopSimilaritySampler(), FractionSampler()):
        with pytest.raises(ValueError, match="R104"):
            sampler.keys(plain_input(1), context)
