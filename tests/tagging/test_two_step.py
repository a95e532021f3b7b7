"""The parts together, on made-up token vectors: what two-step learning is for."""

import numpy as np
import pytest
import torch

from spacy_robust_ner.tagging.crf import CRF
from spacy_robust_ner.tagging.heads import AngleHead, SoftmaxHead
from spacy_robust_ner.tagging.losses import CRFLikelihood, PartialCRF, TokenCrossEntropy
from spacy_robust_ner.tagging.non_spans import NonSpanSampler
from spacy_robust_ner.tagging.o_removal import OValueRanking, o_values
from spacy_robust_ner.tagging.padding import pad, unpad
from spacy_robust_ner.tagging.ratio import ExpectedEntityRatio
from spacy_robust_ner.tagging.tag_set import TagSet
from spacy_robust_ner.tagging.types import TokenBatch
from spacy_robust_ner.tagging.viterbi import scheme_chain, viterbi

N_DOCS, LENGTH, WIDTH = 60, 12, 16


class Corpus:
    """Documents with two entities of two tokens each, half of which the annotation lacks."""

    def __init__(self, seed=0):
        rng = np.random.default_rng(seed)
        self.tag_set = TagSet(["PER"], scheme="bio", with_non_entity=True)
        prototypes = rng.normal(size=(3, WIDTH))
        spans = [[(2, 4, 0), (7, 9, 0)] for _ in range(N_DOCS)]
        self.gold = np.stack([self.tag_set.encode(doc, LENGTH) for doc in spans])
        kept = [[span for span in doc if rng.random() < 0.5] for doc in spans]
        self.tags = np.stack([self.tag_set.encode(doc, LENGTH) for doc in kept])
        noise = rng.normal(size=(N_DOCS, LENGTH, WIDTH)) * 0.5
        self.vectors = torch.tensor(prototypes[self.gold] + noise, dtype=torch.float32)
        self.lengths = torch.full((N_DOCS,), LENGTH)

    def batch(self, emissions, tags=None, removed=None):
        tags = self.tags if tags is None else tags
        return TokenBatch(
            emissions=emissions,
            lengths=self.lengths,
            tags=torch.from_numpy(tags.reshape(-1)),
            removed=None if removed is None else torch.from_numpy(removed.reshape(-1)),
        )


def train(corpus, head_class, losses, crf, *, steps, removed=None, sampler=None):
    torch.manual_seed(0)
    head = head_class(width=WIDTH, n_tags=len(corpus.tag_set), dropout=0.0)
    parameters = [*head.parameters(), *(crf.parameters() if crf is not None else [])]
    optimizer = torch.optim.Adam(parameters, lr=0.05)
    for step in range(steps):
        tags = corpus.tags
        if sampler is not None:
            tags = sampler.apply(
                tags.reshape(-1),
                None if removed is None else removed.reshape(-1),
                [LENGTH] * N_DOCS,
                corpus.tag_set,
                keys=range(N_DOCS),
                epoch=step,
            )
        emissions = head(corpus.vectors.reshape(-1, WIDTH))
        batch = corpus.batch(emissions, tags, removed)
        total = sum(loss(batch, tag_set=corpus.tag_set, crf=crf) for loss in losses)
        optimizer.zero_grad()
        total.backward()
        optimizer.step()
    return head.eval()


def recall(corpus, head, crf):
    """Of all entities in the gold annotation; every prediction must be one of them."""
    emissions = head(corpus.vectors.reshape(-1, WIDTH))
    padded = pad(emissions, corpus.lengths)
    chain = scheme_chain(corpus.tag_set) if crf is None else crf.chain
    tags = unpad(viterbi(padded, corpus.lengths, chain)[0], corpus.lengths).numpy()
    sizes = corpus.lengths.numpy()
    found = corpus.tag_set.decode(tags, sizes)
    gold = corpus.tag_set.decode(corpus.gold.reshape(-1), sizes)
    found_set = set(zip(*(part.tolist() for part in found), strict=True))
    gold_set = set(zip(*(part.tolist() for part in gold), strict=True))
    assert len(found_set & gold_set) >= 0.9 * len(found_set)
    return len(found_set & gold_set) / len(gold_set)


@pytest.mark.parametrize("head_class", [SoftmaxHead, AngleHead])
@pytest.mark.parametrize("with_crf", [False, True])
def test_two_steps_find_what_the_annotation_lacks(head_class, with_crf):
    corpus = Corpus()
    torch.manual_seed(1)
    loss = CRFLikelihood() if with_crf else TokenCrossEntropy()
    crf = CRF(corpus.tag_set) if with_crf else None
    explored = train(corpus, head_class, [loss], crf, steps=8)
    values = o_values(explored(corpus.vectors.reshape(-1, WIDTH))).reshape(N_DOCS, LENGTH)
    ranking = OValueRanking()
    for key, tags in enumerate(corpus.tags):
        outside = np.flatnonzero(tags == 0)
        ranking.add(key, outside, values[key, outside])
    hidden = (corpus.gold > 0) & (corpus.tags == 0)
    share = hidden.sum() / len(ranking)
    removed = ranking.select(share)
    is_removed = removed.mask(range(N_DOCS), [LENGTH] * N_DOCS).reshape(N_DOCS, LENGTH)
    assert is_removed.sum() == len(removed)
    # By chance it would be a quarter.
    assert share < 0.25
    assert (is_removed & hidden).sum() / hidden.sum() > 0.8

    torch.manual_seed(1)
    crf = CRF(corpus.tag_set) if with_crf else None
    sampler = NonSpanSampler(rate=0.1)
    final = train(corpus, head_class, [loss], crf, steps=40, removed=is_removed, sampler=sampler)
    assert recall(corpus, final, crf) > 0.9


def test_ratio_term_keeps_the_partial_crf_from_seeing_entities_everywhere():
    corpus = Corpus(seed=2)
    expected = {}
    for with_ratio in (False, True):
        torch.manual_seed(1)
        crf = CRF(corpus.tag_set)
        term = ExpectedEntityRatio(ratio=1 / 3, margin=0.02)
        losses = [PartialCRF(), term] if with_ratio else [PartialCRF()]
        head = train(corpus, SoftmaxHead, losses, crf, steps=60)
        batch = corpus.batch(head(corpus.vectors.reshape(-1, WIDTH)))
        share = term.expected(batch, tag_set=corpus.tag_set, crf=crf)
        expected[with_ratio] = share.item()
        if with_ratio:
            assert recall(corpus, head, crf) > 0.9
    assert expected[True] == pytest.approx(1 / 3, abs=0.03)
    assert expected[False] > 0.5
