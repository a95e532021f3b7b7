import pytest
import torch
from chain_enumeration import (
    BIO,
    BIOES,
    TAG_SET_IDS,
    TAG_SETS,
    enumerate_sequences,
    enumerated_scores,
    random_crf,
    random_emissions,
    sequence_scores,
)

from spacy_robust_ner.tagging.chain import Chain, log_partition
from spacy_robust_ner.tagging.crf import CRF
from spacy_robust_ner.tagging.tag_set import TagSet

# A batch of one, equal lengths, padding, empty documents.
LENGTHS = [[1], [4], [3, 3], [4, 1, 3, 2], [0, 3, 0, 1], [0]]


def close(found, wanted, tolerance=1e-9):
    torch.testing.assert_close(found, wanted, rtol=tolerance, atol=tolerance)


def some_allowed(lengths, n_tags, seed=3):
    """Random tag sets that always hold "O"."""
    generator = torch.Generator().manual_seed(seed)
    allowed = torch.rand(len(lengths), max(lengths), n_tags, generator=generator) < 0.5
    allowed[:, :, 0] = True
    return allowed


def some_skips(lengths, seed=4):
    generator = torch.Generator().manual_seed(seed)
    return torch.rand(len(lengths), max(lengths), generator=generator) < 0.4


@pytest.fixture(params=TAG_SETS, ids=TAG_SET_IDS)
def tag_set(request):
    return request.param


@pytest.fixture(params=LENGTHS, ids=str)
def lengths(request):
    return request.param


@pytest.mark.parametrize("constrained", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("skipping", [False, True])
def test_log_partition_equals_enumeration(tag_set, lengths, constrained, weighted, skipping):
    crf = random_crf(tag_set)
    emissions = random_emissions(lengths, len(tag_set))
    allowed = some_allowed(lengths, len(tag_set)) if constrained else None
    log_weights = torch.log_softmax(random_emissions(lengths, len(tag_set), seed=5), 2)
    log_weights = log_weights if weighted else None
    skips = some_skips(lengths) if skipping else None
    found = crf.log_partition(
        emissions,
        torch.tensor(lengths),
        allowed=allowed,
        log_weights=log_weights,
        skip_incoming=skips,
    )
    for doc, length in enumerate(lengths):
        _, scores = enumerated_scores(
            crf,
            emissions[doc, :length],
            allowed=None if allowed is None else allowed[doc].tolist(),
            skip=() if skips is None else skips[doc].nonzero().flatten().tolist(),
            log_weights=None if log_weights is None else log_weights[doc],
        )
        close(found[doc], scores.logsumexp(0))


@pytest.mark.parametrize("skipping", [False, True])
def test_score_equals_definition(tag_set, lengths, skipping):
    crf = random_crf(tag_set)
    emissions = random_emissions(lengths, len(tag_set))
    skips = some_skips(lengths) if skipping else None
    tags = torch.full(emissions.shape[:2], 3)
    wanted = []
    for doc, length in enumerate(lengths):
        sequence = enumerate_sequences(tag_set, length)[-1]
        tags[doc, :length] = torch.tensor(sequence, dtype=torch.long)
        skip = () if skips is None else skips[doc].nonzero().flatten().tolist()
        wanted.append(sequence_scores(crf, emissions[doc], [sequence], skip=skip)[0])
    found = crf.score(emissions, torch.tensor(lengths), tags, skip_incoming=skips)
    close(found, torch.stack(wanted))


def test_score_of_a_forbidden_sequence():
    crf = random_crf(BIOES)
    names = ["S-PER", "E-PER", "O", "B-PER"]
    tags = torch.tensor([[BIOES.tags.index(name) for name in names]])
    emissions = random_emissions([4], len(BIOES))
    assert crf.score(emissions, torch.tensor([4]), tags) == -torch.inf
    # The first three of them are allowed where the fourth is padding, without E-PER.
    tags[0, 1] = 0
    assert crf.score(emissions, torch.tensor([3]), tags).isfinite()
    assert crf.score(emissions, torch.tensor([4]), tags) == -torch.inf


def test_counting_without_constraints():
    k, n = 5, 7
    free = Chain(
        torch.zeros(k, k),
        torch.zeros(k),
        torch.zeros(k),
        torch.ones(k, k, dtype=torch.bool),
        torch.ones(k, dtype=torch.bool),
        torch.ones(k, dtype=torch.bool),
    )
    found = log_partition(torch.zeros(2, n, k), torch.tensor([n, 3]), free)
    close(found.exp().round(), torch.tensor([k**n, k**3], dtype=torch.float64))


def test_counting_of_valid_sequences(tag_set):
    crf = CRF(tag_set)
    for parameter in crf.parameters():
        parameter.data.zero_()
    found = crf.log_partition(torch.zeros(4, 4, len(tag_set)), torch.tensor([1, 2, 3, 4])).exp()
    wanted = [len(enumerate_sequences(tag_set, length)) for length in (1, 2, 3, 4)]
    close(found, torch.tensor(wanted, dtype=torch.float64))
    assert wanted[3] < len(tag_set) ** 4


def test_viterbi_equals_enumeration(tag_set, lengths):
    for seed in range(3):
        crf = random_crf(tag_set, seed)
        emissions = random_emissions(lengths, len(tag_set), seed)
        for allowed in (None, some_allowed(lengths, len(tag_set))):
            tags, scores = crf.viterbi(emissions, torch.tensor(lengths), allowed=allowed)
            for doc, length in enumerate(lengths):
                sequences, values = enumerated_scores(
                    crf,
                    emissions[doc, :length],
                    allowed=None if allowed is None else allowed[doc].tolist(),
                )
                assert tuple(tags[doc, :length].tolist()) == sequences[int(values.argmax())]
                close(scores[doc], values.max().detach())
                assert not tags[doc, length:].any()


def test_viterbi_score_is_the_score_of_its_tags(tag_set):
    lengths = torch.tensor([20, 7, 0, 13])
    crf = random_crf(tag_set)
    emissions = random_emissions(lengths.tolist(), len(tag_set))
    tags, scores = crf.viterbi(emissions, lengths)
    close(crf.score(emissions, lengths, tags).detach(), scores)


@pytest.mark.parametrize("constrained", [False, True])
def test_marginals_equal_enumeration(tag_set, lengths, constrained):
    crf = random_crf(tag_set)
    emissions = random_emissions(lengths, len(tag_set))
    allowed = some_allowed(lengths, len(tag_set)) if constrained else None
    found = crf.marginals(emissions, torch.tensor(lengths), allowed=allowed)
    for doc, length in enumerate(lengths):
        sequences, scores = enumerated_scores(
            crf, emissions[doc, :length], allowed=None if allowed is None else allowed[doc].tolist()
        )
        wanted = torch.zeros_like(emissions[doc])
        for sequence, probability in zip(sequences, scores.softmax(0).detach(), strict=True):
            for i, tag in enumerate(sequence):
                wanted[i, tag] += probability
        close(found[doc], wanted)


def test_marginals_are_the_gradient_of_the_log_partition(tag_set):
    lengths = torch.tensor([9, 1, 0, 5])
    crf = random_crf(tag_set)
    emissions = random_emissions(lengths.tolist(), len(tag_set)).requires_grad_()
    (gradient,) = torch.autograd.grad(crf.log_partition(emissions, lengths).sum(), emissions)
    close(crf.marginals(emissions, lengths), gradient)


def test_segment_probabilities_equal_enumeration(tag_set, lengths):
    crf = random_crf(tag_set)
    emissions = random_emissions(lengths, len(tag_set))
    spans = [
        (doc, start, end, label)
        for doc, length in enumerate(lengths)
        for start in range(length)
        for end in range(start + 1, length + 1)
        for label in range(len(tag_set.labels))
    ]
    docs, starts, ends, types = torch.tensor(spans).reshape(-1, 4).unbind(1)
    found = crf.segment_log_probs(
        emissions, torch.tensor(lengths), docs=docs, starts=starts, ends=ends, types=types
    ).exp()
    wanted = dict.fromkeys(spans, 0.0)
    for doc, length in enumerate(lengths):
        sequences, scores = enumerated_scores(crf, emissions[doc, :length])
        for sequence, probability in zip(sequences, scores.softmax(0).tolist(), strict=True):
            segments = tag_set.decode(
                torch.tensor(sequence).long().numpy(), torch.tensor([length]).numpy()
            )
            for start, end, label in zip(*segments[1:], strict=True):
                wanted[doc, int(start), int(end), int(label)] += probability
    close(found, torch.tensor([wanted[span] for span in spans], dtype=torch.float64))


def test_expectation_equals_enumeration(tag_set, lengths):
    crf = random_crf(tag_set)
    emissions = random_emissions(lengths, len(tag_set))
    counts = random_emissions(lengths, len(tag_set), seed=9)
    found = crf.expectation(emissions, torch.tensor(lengths), counts)
    for doc, length in enumerate(lengths):
        sequences, scores = enumerated_scores(crf, emissions[doc, :length])
        values = [sum(counts[doc, i, tag] for i, tag in enumerate(s)) for s in sequences]
        wanted = (scores.softmax(0) * torch.tensor(values, dtype=torch.float64)).sum()
        close(found[doc], wanted)


@pytest.mark.parametrize("lengths", [[1], [3], [0, 3, 1], [0]], ids=str)
def test_gradients(tag_set, lengths):
    crf = random_crf(tag_set)
    scores = [crf.transitions, crf.start, crf.end]
    sizes = torch.tensor(lengths)
    allowed = some_allowed(lengths, len(tag_set))
    skips = some_skips(lengths)
    counts = random_emissions(lengths, len(tag_set), seed=9)
    emissions = random_emissions(lengths, len(tag_set)).requires_grad_()

    def everything(emissions, *scores):
        return (
            crf.log_partition(emissions, sizes),
            crf.log_partition(emissions, sizes, allowed=allowed, skip_incoming=skips),
            crf.log_partition(emissions, sizes, log_weights=-counts.abs()),
            crf.expectation(emissions, sizes, counts),
        )

    assert torch.autograd.gradcheck(everything, (emissions, *scores))


def test_gradient_of_a_score(tag_set):
    crf = random_crf(tag_set)
    lengths = torch.tensor([3, 0, 2])
    tags = torch.zeros(3, 3, dtype=torch.long)
    tags[0] = torch.tensor([0, *tag_set.role_tags[0, [0, 2]]])
    emissions = random_emissions([3, 0, 2], len(tag_set)).requires_grad_()
    skips = torch.tensor([[True, False, False], [True] * 3, [False, True, True]])
    assert torch.autograd.gradcheck(
        lambda e, *scores: crf.score(e, lengths, tags, skip_incoming=skips),
        (emissions, crf.transitions, crf.start, crf.end),
    )


def test_padding_changes_nothing(tag_set):
    crf = random_crf(tag_set)
    lengths = torch.tensor([5, 0, 2, 3])
    emissions = random_emissions([5, 0, 2, 3], len(tag_set))
    together = crf.log_partition(emissions, lengths)
    alone = [
        crf.log_partition(emissions[doc : doc + 1, :length], lengths[doc : doc + 1])
        for doc, length in enumerate(lengths)
    ]
    close(together, torch.cat(alone))
    wild = emissions.clone()
    wild[2, 2:] = 1e30
    wild[1] = torch.nan
    close(crf.log_partition(wild, lengths), together)
    close(crf.marginals(wild, lengths), crf.marginals(emissions, lengths))
    assert torch.equal(crf.viterbi(wild, lengths)[0], crf.viterbi(emissions, lengths)[0])


def test_infeasible_knowledge_has_no_weight_and_no_gradient():
    crf = random_crf(BIO)
    emissions = random_emissions([3, 3], len(BIO)).requires_grad_()
    allowed = torch.ones(2, 3, len(BIO), dtype=torch.bool)
    allowed[0, 0] = False
    allowed[0, 0, BIO.tags.index("I-PER")] = True
    lengths = torch.tensor([3, 3])
    found = crf.log_partition(emissions, lengths, allowed=allowed)
    assert found[0] == -torch.inf
    close(found[1], crf.log_partition(emissions, lengths)[1])
    found[1].backward()
    assert emissions.grad.isfinite().all()
    assert not emissions.grad[0].any()
    assert crf.viterbi(emissions, lengths, allowed=allowed)[1][0] == -torch.inf


def test_single_precision_at_length():
    labels = [f"TYPE{i}" for i in range(12)]
    tag_set = TagSet(labels, scheme="bioes")
    lengths = torch.tensor([512, 300])
    assert len(tag_set) == 49
    crf = random_crf(tag_set, dtype=torch.float32)
    single = 4 * random_emissions([512, 300], 49, dtype=torch.float32)
    double_crf = CRF(tag_set).double()
    double_crf.load_state_dict({k: v.double() for k, v in crf.state_dict().items()})
    results = []
    for model, emissions in ((crf, single), (double_crf, single.double())):
        emissions.requires_grad_()
        partition = model.log_partition(emissions, lengths)
        (gradient,) = torch.autograd.grad(partition.sum(), emissions)
        ratio = model.expectation(emissions, lengths, torch.ones_like(emissions))
        results.append((partition, gradient.double(), ratio, model.viterbi(emissions, lengths)[0]))
    for found, wanted in zip(*results, strict=True):
        assert found.isfinite().all() if found.is_floating_point() else True
        torch.testing.assert_close(found, wanted, rtol=1e-5, atol=1e-6)
    close(results[0][2].detach(), lengths.double(), 1e-6)
    close(results[0][1].sum(2)[1], (torch.arange(512) < 300).double(), 1e-5)


def test_far_apart_scores():
    crf = CRF(BIO)
    for parameter in crf.parameters():
        parameter.data.zero_()
    lengths = torch.tensor([512])
    emissions = torch.zeros(1, 512, len(BIO))
    emissions[:, :, 0] = 200.0
    allowed = torch.ones_like(emissions, dtype=torch.bool)
    allowed[0, 300] = False
    allowed[0, 300, BIO.tags.index("I-LOC")] = True
    # The unknown token before must begin the entity, against odds of exp(400).
    found = crf.log_partition(emissions, lengths, allowed=allowed)
    close(found.detach(), torch.tensor([510 * 200.0], dtype=torch.float64))
    begins = crf.marginals(emissions, lengths, allowed=allowed)[0, 299, BIO.tags.index("B-LOC")]
    assert begins > 1 - 1e-9
