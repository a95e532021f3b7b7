import pytest
import torch
from chain_enumeration import BIO, TAG_SET_IDS, TAG_SETS, enumerated_scores, random_crf
from token_batches import close, make_batch, split, with_emissions

from spacy_robust_ner.tagging.padding import pad
from spacy_robust_ner.tagging.positive_unlabeled import TokenPURisk, class_logits
from spacy_robust_ner.tagging.ratio import ExpectedEntityRatio
from spacy_robust_ner.tagging.tag_set import TagSet


@pytest.fixture(params=TAG_SETS, ids=TAG_SET_IDS)
def tag_set(request):
    return request.param


@pytest.mark.parametrize("skip_complete", [False, True])
@pytest.mark.parametrize("with_crf", [False, True])
def test_expected_ratio_equals_enumeration(tag_set, skip_complete, with_crf):
    batch = make_batch(tag_set, complete=[False, False, False, True])
    crf = random_crf(tag_set)
    term = ExpectedEntityRatio(skip_complete=skip_complete)
    found = term.expected(batch, tag_set=tag_set, crf=crf if with_crf else None)
    expected = torch.zeros((), dtype=torch.float64)
    for doc, emissions in enumerate(split(batch, batch.emissions)):
        if doc == 3 and skip_complete:
            continue
        if not with_crf:
            expected = expected + emissions.softmax(1)[:, tag_set.is_entity].sum()
            continue
        sequences, scores = enumerated_scores(crf, emissions)
        counts = [sum(bool(tag_set.is_entity[tag]) for tag in s) for s in sequences]
        expected = expected + (scores.softmax(0) * torch.tensor(counts)).sum()
    expected = expected / (5 if skip_complete else 8)
    close(found, expected)
    share = float(expected.detach())
    for ratio, margin, below, weight in [
        (0.0, 0.01, None, 10.0),
        (0.0, 0.01, 0.9, 10.0),
        (1.0, 0.05, None, 3.0),
        (1.0, 0.05, 0.1, 3.0),
        (1.0, 0.0, 1.0, 3.0),
        (0.5, 0.6, None, 1.0),
    ]:
        term = ExpectedEntityRatio(
            ratio=ratio,
            margin=margin,
            margin_below=below,
            weight=weight,
            skip_complete=skip_complete,
        )
        room = margin if share > ratio or below is None else below
        wanted = weight * max(0.0, abs(share - ratio) - room)
        value = term(batch, tag_set=tag_set, crf=crf if with_crf else None)
        assert value.item() == pytest.approx(wanted)


def test_expected_ratio_of_complete_documents_alone():
    batch = make_batch(BIO, complete=[True] * 4)
    loss = ExpectedEntityRatio(skip_complete=True)(batch, tag_set=BIO, crf=random_crf(BIO))
    loss.backward()
    assert loss == 0
    assert not batch.emissions.grad.any()


def test_descent_on_the_ratio_term_reaches_the_ratio():
    tag_set = TagSet(["PER", "LOC"], scheme="bioes")
    crf = random_crf(tag_set)
    batch = make_batch(tag_set, [(15, []), (9, [])])
    term = ExpectedEntityRatio(ratio=0.15, margin=0.02)
    emissions = batch.emissions
    optimizer = torch.optim.Adam([emissions, *crf.parameters()], lr=0.05)
    for _ in range(200):
        loss = term(with_emissions(batch, emissions), tag_set=tag_set, crf=crf)
        if loss == 0:
            break
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    marginals = crf.marginals(pad(emissions, batch.lengths), batch.lengths)
    assert float(marginals[:, :, 1:].sum() / 24) == pytest.approx(0.15, abs=0.021)


def test_class_logits_sum_the_tags(tag_set):
    emissions = torch.randn(6, len(tag_set), dtype=torch.float64)
    found = class_logits(emissions, tag_set).softmax(1)
    probs = emissions.softmax(1)
    assert found.shape == (6, 1 + len(tag_set.labels))
    for label in range(len(tag_set.labels)):
        close(found[:, label + 1], probs[:, tag_set.tag_types == label].sum(1))
    close(found[:, 0], probs[:, ~tag_set.is_entity].sum(1))


def test_pu_risk_by_hand():
    tag_set = TagSet(["PER"], scheme="bio")
    docs = [(4, [(0, 2, 0)]), (3, [(1, 2, 0)])]
    batch = make_batch(tag_set, docs, missing=[3, 6], complete=[False, True])
    found = TokenPURisk(priors={"PER": 0.2}, gamma=3.0)(batch, tag_set=tag_set)
    probs = batch.emissions.softmax(1)
    entity = probs[:, 1:].sum(1)
    positive = 0.2 * (1 - entity[:2]).mean()
    negative = (entity[:4].mean() - 0.2 * entity[:2].mean()).clamp(min=0)
    prefix = -(probs[[0, 1], [1, 2]] / entity[:2]).log().mean()
    risk = 3.0 * positive + negative + 3.0 * 0.2 * prefix
    certain = -probs[[4, 5], [0, 1]].log().sum()
    close(found, (4 * risk + certain) / 6)


def test_pu_risk_needs_fitting_priors():
    with pytest.raises(ValueError, match=r"R156.*1.2"):
        TokenPURisk(priors={"PER": 1.2})
    with pytest.raises(ValueError, match=r"R105.*surrogate.*hinge"):
        TokenPURisk(priors={"PER": 0.2}, surrogate="hinge")
    with pytest.raises(ValueError, match=r"R157.*LOC"):
        TokenPURisk(priors={"PER": 0.2})(make_batch(BIO), tag_set=BIO)
