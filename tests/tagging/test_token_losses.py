import pytest
import torch
import torch.nn.functional as F
from chain_enumeration import (
    BIO,
    TAG_SET_IDS,
    TAG_SETS,
    enumerated_scores,
    random_crf,
    sequence_scores,
)
from token_batches import DOCS, ONE_DOC, close, make_batch, split, with_emissions

from spacy_robust_ner.tagging.losses import (
    CRFLikelihood,
    FuzzyCRF,
    PartialCRF,
    TokenCrossEntropy,
    WeightedPartialCRF,
)
from spacy_robust_ner.tagging.positive_unlabeled import TokenPURisk
from spacy_robust_ner.tagging.ratio import ExpectedEntityRatio
from spacy_robust_ner.tagging.tag_set import MISSING_TAG, TagSet
from spacy_robust_ner.tagging.targets import allowed_tags, hard_completion, soft_completion
from spacy_robust_ner.tagging.types import TokenBatch, TokenLoss

REMOVALS = ["emissions_and_transitions", "emissions", "marginalize"]


@pytest.fixture(params=TAG_SETS, ids=TAG_SET_IDS)
def tag_set(request):
    return request.param


def enumerated_partial(batch, crf, allowed, log_weights=None):
    """Summed loss from all sequences, and from those within the allowed tags."""
    total = 0.0
    weights = split(
        batch, torch.zeros_like(batch.emissions) if log_weights is None else log_weights
    )
    for emissions, sets, log_q in zip(
        split(batch, batch.emissions), split(batch, allowed), weights, strict=True
    ):
        _, everything = enumerated_scores(crf, emissions)
        _, agreeing = enumerated_scores(crf, emissions, allowed=sets.tolist(), log_weights=log_q)
        total = total + everything.logsumexp(0) - agreeing.logsumexp(0)
    return total


def all_losses(tag_set):
    priors = dict.fromkeys(tag_set.labels, 0.1)
    return [
        TokenCrossEntropy(),
        TokenCrossEntropy(unknown_outside=True, normalization="document"),
        *(CRFLikelihood(removal=removal) for removal in REMOVALS),
        PartialCRF(),
        PartialCRF(unknown_outside=False, normalization="token"),
        WeightedPartialCRF(),
        FuzzyCRF(),
        ExpectedEntityRatio(ratio=0.01, margin=0.0),
        ExpectedEntityRatio(ratio=1.0, margin=0.01, skip_complete=True),
        TokenPURisk(priors=priors),
        TokenPURisk(priors=priors, surrogate="ce", one_vs_rest=False, gamma=2.0),
    ]


@pytest.mark.parametrize("docs", [DOCS, ONE_DOC], ids=["padded", "one"])
@pytest.mark.parametrize("index", range(13))
def test_gradients(index, docs):
    tag_set = TagSet(["PER"], scheme="bio", with_non_entity=True)
    crf = random_crf(tag_set)
    batch = make_batch(
        tag_set, docs, missing=[2], removed=[3], complete=[False, False, True, False][: len(docs)]
    )
    n_tokens = len(batch.tags)
    allowed = torch.ones(n_tokens, len(tag_set), dtype=torch.bool)
    allowed[0, 1] = False
    generator = torch.Generator().manual_seed(3)
    log_weights = torch.randn(n_tokens, len(tag_set), generator=generator, dtype=torch.float64)
    batch = TokenBatch(**{**vars(batch), "allowed": allowed, "log_weights": log_weights})
    loss = all_losses(tag_set)[index]
    assert isinstance(loss, TokenLoss)

    def run(emissions, *scores):
        return loss(with_emissions(batch, emissions), tag_set=tag_set, crf=crf)

    assert run(batch.emissions) != 0
    inputs = (batch.emissions, crf.transitions, crf.start, crf.end)
    assert torch.autograd.gradcheck(run, inputs)


def test_there_is_a_gradient_check_for_every_loss():
    assert len(all_losses(BIO)) == 13


@pytest.mark.parametrize("index", range(13))
@pytest.mark.parametrize("docs", [[], [(0, [])]], ids=["no documents", "no tokens"])
def test_nothing_to_learn_from(index, docs):
    batch = (
        make_batch(BIO, docs)
        if docs
        else TokenBatch(
            emissions=torch.zeros(0, len(BIO), requires_grad=True),
            lengths=torch.zeros(0, dtype=torch.long),
            tags=torch.zeros(0, dtype=torch.long),
        )
    )
    nothing = torch.zeros(0, len(BIO))
    batch = TokenBatch(**{**vars(batch), "allowed": nothing.bool(), "log_weights": nothing})
    loss = all_losses(BIO)[index](batch, tag_set=BIO, crf=random_crf(BIO))
    assert loss == 0
    loss.backward()


def test_cross_entropy_ignores_missing_and_removed(tag_set):
    batch = make_batch(tag_set, missing=[2], removed=[3, 4])
    rows = [0, 1, 5, 6, 7]
    losses = F.cross_entropy(batch.emissions[rows], batch.tags[rows], reduction="none")
    close(TokenCrossEntropy()(batch, tag_set=tag_set), losses.mean())
    close(TokenCrossEntropy(normalization="sum")(batch, tag_set=tag_set), losses.sum())
    close(TokenCrossEntropy(normalization="document")(batch, tag_set=tag_set), losses.sum() / 4)


def test_cross_entropy_with_unknown_outside(tag_set):
    batch = make_batch(tag_set, complete=[False, False, False, True])
    rows = [0, 1, 5, 6, 7]
    wanted = F.cross_entropy(batch.emissions[rows], batch.tags[rows])
    close(TokenCrossEntropy(unknown_outside=True)(batch, tag_set=tag_set), wanted)


@pytest.mark.parametrize("removal", REMOVALS)
@pytest.mark.parametrize("removed", [[], [2], [2, 3, 4, 5]])
def test_likelihood_equals_enumeration(tag_set, removal, removed):
    batch = make_batch(tag_set, removed=removed)
    crf = random_crf(tag_set)
    loss = CRFLikelihood(removal=removal, normalization="sum")
    found = loss(batch, tag_set=tag_set, crf=crf)
    is_removed = torch.zeros(len(batch.tags), dtype=torch.bool)
    is_removed[removed] = True
    if removal == "marginalize":
        known = batch.tags.masked_fill(is_removed, MISSING_TAG)
        wanted = enumerated_partial(batch, crf, allowed_tags(known, batch.lengths, tag_set))
        close(found, wanted)
        return
    wanted = 0.0
    for emissions, tags, gone in zip(
        split(batch, batch.emissions),
        split(batch, batch.tags),
        split(batch, is_removed),
        strict=True,
    ):
        kept = torch.where(gone.unsqueeze(1), 0.0, emissions)
        skip = gone.nonzero().flatten().tolist() if "transitions" in removal else ()
        _, scores = enumerated_scores(crf, kept, skip=skip)
        gold = sequence_scores(crf, kept, [tuple(tags.tolist())], skip=skip)[0]
        wanted = wanted + scores.logsumexp(0) - gold
    close(found, wanted)


@pytest.mark.parametrize("removal", REMOVALS)
def test_emissions_of_removed_tokens_get_no_pull_from_the_annotation(removal):
    batch = make_batch(BIO, removed=[3])
    CRFLikelihood(removal=removal)(batch, tag_set=BIO, crf=random_crf(BIO)).backward()
    gradient = batch.emissions.grad[3]
    assert gradient.any() == (removal == "marginalize")
    assert batch.emissions.grad[2].any()


@pytest.mark.parametrize("removal", REMOVALS[:2])
def test_likelihood_sums_missing_tokens_out(tag_set, removal):
    batch = make_batch(tag_set, missing=[2], removed=[3])
    crf = random_crf(tag_set)
    found = CRFLikelihood(removal=removal, normalization="sum")(batch, tag_set=tag_set, crf=crf)
    allowed = allowed_tags(batch.tags, batch.lengths, tag_set)
    wanted = 0.0
    for emissions, sets, gone in zip(
        split(batch, batch.emissions),
        split(batch, allowed),
        split(batch, batch.removed),
        strict=True,
    ):
        kept = torch.where(gone.unsqueeze(1), 0.0, emissions)
        skip = gone.nonzero().flatten().tolist() if "transitions" in removal else ()
        _, everything = enumerated_scores(crf, kept, skip=skip)
        _, agreeing = enumerated_scores(crf, kept, skip=skip, allowed=sets.tolist())
        wanted = wanted + everything.logsumexp(0) - agreeing.logsumexp(0)
    close(found, wanted)


def test_batch_of_one_has_the_same_loss_as_in_a_batch(tag_set):
    crf = random_crf(tag_set)
    batch = make_batch(tag_set)
    for loss in (CRFLikelihood(normalization="sum"), PartialCRF(normalization="sum")):
        together = loss(batch, tag_set=tag_set, crf=crf)
        alone = 0.0
        for doc, emissions in enumerate(split(batch, batch.emissions)):
            one = make_batch(tag_set, DOCS[doc : doc + 1])
            alone = alone + loss(with_emissions(one, emissions), tag_set=tag_set, crf=crf)
        close(together, alone)


@pytest.mark.parametrize("unknown_outside", [True, False])
def test_partial_crf_equals_enumeration(tag_set, unknown_outside):
    complete = [False, False, True, False]
    batch = make_batch(tag_set, missing=[2], removed=[5], complete=complete)
    crf = random_crf(tag_set)
    loss = PartialCRF(unknown_outside=unknown_outside, normalization="sum")
    known = batch.tags.clone()
    known[[2, 5]] = MISSING_TAG
    if unknown_outside:
        known[[3, 6]] = MISSING_TAG
    wanted = enumerated_partial(batch, crf, allowed_tags(known, batch.lengths, tag_set))
    close(loss(batch, tag_set=tag_set, crf=crf), wanted)
    normalized = PartialCRF(unknown_outside=unknown_outside)(batch, tag_set=tag_set, crf=crf)
    close(normalized, wanted / 4)


def test_partial_crf_without_unknown_tokens_is_the_likelihood(tag_set):
    batch = make_batch(tag_set)
    crf = random_crf(tag_set)
    partial = PartialCRF(unknown_outside=False)(batch, tag_set=tag_set, crf=crf)
    close(partial, CRFLikelihood()(batch, tag_set=tag_set, crf=crf))
    vouched = make_batch(tag_set, complete=[True] * 4)
    close(PartialCRF()(vouched, tag_set=tag_set, crf=crf), partial)


def test_weighted_partial_crf_equals_enumeration(tag_set):
    batch = make_batch(tag_set, missing=[2])
    crf = random_crf(tag_set)
    loss = WeightedPartialCRF(normalization="sum")
    allowed = loss.allowed(batch, tag_set)
    other = torch.randn_like(batch.emissions)
    soft = soft_completion(other, batch.lengths, allowed, crf)
    hard = hard_completion(other, batch.lengths, allowed, crf)
    for log_weights in (soft, hard):
        weighted = TokenBatch(**{**vars(batch), "log_weights": log_weights})
        found = loss(weighted, tag_set=tag_set, crf=crf)
        wanted = enumerated_partial(batch, crf, allowed, log_weights.double())
        close(found, wanted)
    # All weight on one completion: the likelihood of the completed sequences.
    completed = TokenBatch(**{**vars(batch), "tags": hard.argmax(1)})
    close(found, CRFLikelihood(normalization="sum")(completed, tag_set=tag_set, crf=crf))
    assert (soft.exp().sum(1) - 1).abs().max() < 1e-5
    known = batch.tags > 0
    assert torch.equal(hard.argmax(1)[known], batch.tags[known])


def test_weights_of_known_tokens_are_not_read(tag_set):
    batch = make_batch(tag_set)
    crf = random_crf(tag_set)
    log_weights = torch.zeros_like(batch.emissions)
    log_weights[batch.tags > 0] = -3.0
    weighted = TokenBatch(**{**vars(batch), "log_weights": log_weights})
    close(
        WeightedPartialCRF()(weighted, tag_set=tag_set, crf=crf),
        PartialCRF()(batch, tag_set=tag_set, crf=crf),
    )


def test_fuzzy_crf_equals_enumeration(tag_set):
    generator = torch.Generator().manual_seed(5)
    allowed = torch.rand(8, len(tag_set), generator=generator) < 0.5
    allowed[:, 0] = True
    crf = random_crf(tag_set)
    loss = FuzzyCRF(normalization="sum")
    batch = make_batch(tag_set, allowed=allowed)
    close(loss(batch, tag_set=tag_set, crf=crf), enumerated_partial(batch, crf, allowed))
    batch = make_batch(tag_set, allowed=allowed, complete=[True, False, False, False])
    expected = torch.cat((F.one_hot(batch.tags[:4], len(tag_set)).bool(), allowed[4:]))
    close(loss(batch, tag_set=tag_set, crf=crf), enumerated_partial(batch, crf, expected))


def test_impossible_knowledge_is_an_error():
    crf = random_crf(BIO)
    batch = make_batch(BIO)
    batch.tags[5:] = torch.tensor([0, BIO.tags.index("I-LOC"), 0])
    for loss in (CRFLikelihood(), PartialCRF(unknown_outside=False)):
        with pytest.raises(ValueError, match=r"R153.*'bio'.*document 3"):
            loss(batch, tag_set=BIO, crf=crf)


def test_losses_say_what_they_miss():
    batch = make_batch(BIO)
    crf = random_crf(BIO)
    for loss in (CRFLikelihood(), PartialCRF(), WeightedPartialCRF(), FuzzyCRF()):
        assert loss.needs_crf
        with pytest.raises(ValueError, match=r"R104.*CRF.*'crf'"):
            loss(batch, tag_set=BIO)
    with pytest.raises(ValueError, match=r"R104.*weighted.*'log_weights'"):
        WeightedPartialCRF()(batch, tag_set=BIO, crf=crf)
    with pytest.raises(ValueError, match=r"R104.*fuzzy.*'allowed'"):
        FuzzyCRF()(batch, tag_set=BIO, crf=crf)


def test_wrong_settings():
    with pytest.raises(ValueError, match=r"R105.*removal.*nothing.*marginalize"):
        CRFLikelihood(removal="nothing")
    for loss in (TokenCrossEntropy, CRFLikelihood, PartialCRF, FuzzyCRF):
        with pytest.raises(ValueError, match=r"R105.*normalization.*mean"):
            loss(normalization="mean")
    with pytest.raises(ValueError, match=r"R103.*ratio.*15"):
        ExpectedEntityRatio(ratio=15)
    with pytest.raises(ValueError, match=r"R103.*margin.*-1"):
        ExpectedEntityRatio(margin=-1)
