import math

import pytest
import torch

from spacy_robust_ner.span.losses import NRCES, CrossEntropy
from spacy_robust_ner.span.positive_unlabeled import BoundedNonNegativePURisk, ConfidencePURisk
from spacy_robust_ner.types import LossInput, SpanLoss

N_SPANS, N_LABELS = 9, 4
PRIORS = (0.0, 0.1, 0.05, 0.2)


def make_batch(o_index=0, weighted=False, logits=None, **settings):
    torch.manual_seed(5)
    fresh = torch.randn(N_SPANS, N_LABELS, dtype=torch.float64, requires_grad=True)
    targets = torch.tensor([0, 1, 0, 3, 0, 1, 2, 0, 0])
    if o_index == 3:
        targets = (targets - 1) % N_LABELS
    return LossInput(
        logits=fresh if logits is None else logits,
        targets=targets,
        n_docs=3,
        o_index=o_index,
        weights=torch.rand(N_SPANS, dtype=torch.float64) + 0.5 if weighted else None,
        confidence=torch.rand(N_SPANS, dtype=torch.float64),
        **settings,
    )


def softmax(row):
    exps = [math.exp(x) for x in row]
    return [x / sum(exps) for x in exps]


def rows_of(batch):
    weights = batch.weights.tolist() if batch.weights is not None else [1.0] * N_SPANS
    return list(
        zip(
            batch.logits.tolist(),
            batch.targets.tolist(),
            weights,
            batch.confidence.tolist(),
            strict=True,
        )
    )


def priors_for(o_index):
    return PRIORS if o_index == 0 else (*PRIORS[1:], 0.9)


LOSSES = {
    "cross_entropy": lambda o: CrossEntropy(),
    "cross_entropy_mean": lambda o: CrossEntropy(normalization="mean"),
    "nrces": lambda o: NRCES(w=2),
    "nrces_sigmoid": lambda o: NRCES(w=2, variant="without_separate_training"),
    "bnpu": lambda o: BoundedNonNegativePURisk(priors=priors_for(o)),
    "bnpu_ce": lambda o: BoundedNonNegativePURisk(priors=priors_for(o), surrogate="ce"),
    "mpu": lambda o: BoundedNonNegativePURisk(priors=priors_for(o), one_vs_rest=False),
    "mpu_ce": lambda o: BoundedNonNegativePURisk(
        priors=priors_for(o), one_vs_rest=False, surrogate="ce", gamma=3
    ),
    "conf_mpu": lambda o: ConfidencePURisk(priors=priors_for(o)),
    "conf_mpu_ce": lambda o: ConfidencePURisk(
        priors=priors_for(o), surrogate="ce", clamp_each=False
    ),
}


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("o_index", [0, 3])
def test_gradcheck(name, weighted, o_index):
    loss = LOSSES[name](o_index)
    assert isinstance(loss, SpanLoss)
    batch = make_batch(o_index, weighted)

    def run(logits):
        return loss(make_batch(o_index, weighted, logits, epoch=3))

    assert torch.autograd.gradcheck(run, (batch.logits,))
    (gradient,) = torch.autograd.grad(run(batch.logits), batch.logits)
    assert gradient.abs().sum() > 0


@pytest.mark.parametrize("name", LOSSES)
def test_label_order_does_not_matter(name):
    first = make_batch(0)
    last = make_batch(3, logits=first.logits.detach()[:, [1, 2, 3, 0]])
    torch.testing.assert_close(LOSSES[name](0)(first), LOSSES[name](3)(last))


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("targets", [[], [0], [1], [0, 0], [1, 2]])
def test_hardly_any_spans(name, targets):
    logits = torch.randn(len(targets), N_LABELS, requires_grad=True)
    batch = LossInput(
        logits=logits,
        targets=torch.tensor(targets, dtype=torch.long),
        n_docs=0,
        confidence=torch.full((len(targets),), 0.5),
    )
    loss = LOSSES[name](0)(batch)
    loss.backward()
    assert torch.isfinite(loss)
    assert torch.isfinite(logits.grad).all()
    if not targets:
        assert loss.item() == 0


@pytest.mark.parametrize("name", LOSSES)
def test_extreme_logits_are_safe(name):
    logits = torch.tensor([[200.0, -200.0, 0, 0], [-200.0, 200.0, 0, 0]], requires_grad=True)
    for targets in ([0, 1], [1, 0]):
        batch = LossInput(
            logits=logits,
            targets=torch.tensor(targets),
            n_docs=1,
            epoch=2,
            confidence=torch.tensor([0.0, 1.0]),
        )
        loss = LOSSES[name](0)(batch)
        (gradient,) = torch.autograd.grad(loss, logits)
        assert torch.isfinite(loss)
        assert torch.isfinite(gradient).all()


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("normalization", ["document", "mean", "positives", "sum"])
def test_cross_entropy_normalizations(normalization, weighted):
    batch = make_batch(weighted=weighted)
    total = sum(w * -math.log(softmax(o)[y]) for o, y, w, _ in rows_of(batch))
    divisor = {
        "document": 3,
        "mean": sum(w for _, _, w, _ in rows_of(batch)),
        "positives": 4,
        "sum": 1,
    }[normalization]
    loss = CrossEntropy(normalization=normalization)(batch)
    assert loss.item() == pytest.approx(total / divisor)


@pytest.mark.parametrize("epoch", [0, 1, 6])
@pytest.mark.parametrize(
    ("variant", "of_positive", "of_negative"),
    [
        ("full", lambda ce, cs: ce, lambda ce, cs: cs),
        ("without_sigmoid", lambda ce, cs: ce, lambda ce, cs: ce),
        ("without_separate_training", lambda ce, cs: cs, lambda ce, cs: cs),
        ("without_negative_indicator", lambda ce, cs: ce + cs, lambda ce, cs: cs),
        ("without_positive_indicator", lambda ce, cs: ce, lambda ce, cs: ce + cs),
    ],
)
def test_nrces_and_its_ablations(variant, of_positive, of_negative, epoch):
    batch = make_batch(epoch=epoch)
    beta = math.exp(-epoch / 2.5)
    total = 0.0
    for scores, target, _, _ in rows_of(batch):
        ce = -math.log(softmax(scores)[target])
        cs = beta * ce + (1 - beta) * (1 - 1 / (1 + math.exp(-scores[target])))
        total += of_negative(ce, cs) if target == 0 else of_positive(ce, cs)
    assert NRCES(w=2.5, variant=variant, normalization="sum")(batch).item() == pytest.approx(total)


def test_nrces_lets_go_of_negatives_that_look_like_entities():
    """The point of the loss: a confident entity among the negatives loses its gradient."""
    logits = torch.tensor([[-6.0, 6.0]], dtype=torch.float64, requires_grad=True)

    def gradient(loss, epoch):
        batch = LossInput(logits=logits, targets=torch.tensor([0]), n_docs=1, epoch=epoch)
        return torch.autograd.grad(loss(batch), logits)[0]

    early, late = gradient(NRCES(w=2), 0), gradient(NRCES(w=2), 20)
    torch.testing.assert_close(early, gradient(CrossEntropy(), 0))
    assert late.abs().max() < 0.01 * early.abs().max()
    assert late[0, 0] < 0, "descent still raises the score of 'no entity'"


def expected_bnpu(batch, priors, gamma, surrogate, with_positives):
    risk = 0.0
    rows = rows_of(batch)
    for k in range(N_LABELS):
        if k == batch.o_index:
            continue

        def loss(scores, wanted, k=k):
            p = softmax(scores)[k]
            if surrogate == "mae":
                return abs(wanted - p)
            return -math.log(p if wanted else 1 - p)

        def mean(rows, wanted, loss=loss):
            return sum(w * loss(o, wanted) for o, _, w, _ in rows) / sum(w for *_, w, _ in rows)

        mine = [row for row in rows if row[1] == k]
        unlabeled = rows if with_positives else [row for row in rows if row[1] != k]
        risk += gamma * priors[k] * mean(mine, 1)
        risk += max(0, mean(unlabeled, 0) - priors[k] * mean(mine, 0))
    return risk


@pytest.mark.parametrize("surrogate", ["mae", "ce"])
@pytest.mark.parametrize("with_positives", [True, False])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("priors", [PRIORS, (0.0, 0.9, 0.05, 0.01)])
def test_bnpu_against_brute_force(surrogate, with_positives, weighted, priors):
    batch = make_batch(weighted=weighted)
    loss = BoundedNonNegativePURisk(
        priors=priors,
        gamma=2.0,
        surrogate=surrogate,
        positives_are_unlabeled_too=with_positives,
    )
    expected = expected_bnpu(batch, priors, 2.0, surrogate, with_positives)
    assert loss(batch).item() == pytest.approx(expected)


def test_bnpu_risk_is_not_negative():
    """Priors that are too high: the negatives' part stops at zero and gives no gradient."""
    logits = torch.tensor([[5.0, -5.0], [-5.0, 5.0]], dtype=torch.float64, requires_grad=True)
    batch = LossInput(logits=logits, targets=torch.tensor([0, 1]), n_docs=1)
    loss = BoundedNonNegativePURisk(priors=(0.0, 0.9), positives_are_unlabeled_too=False)
    risk = loss(batch)
    assert risk.item() == pytest.approx(0.9 * softmax([5, -5])[1])
    (gradient,) = torch.autograd.grad(risk, logits)
    assert gradient[0].abs().max() == 0
    assert gradient[1].abs().max() > 0


def multiclass_loss(scores, target, surrogate):
    p = softmax(scores)
    if surrogate == "ce":
        return -math.log(p[target])
    return sum(abs(p[i] - (i == target)) for i in range(N_LABELS)) / N_LABELS


@pytest.mark.parametrize("surrogate", ["mae", "ce"])
@pytest.mark.parametrize("with_positives", [True, False])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("priors", [PRIORS, (0.0, 0.9, 0.05, 0.01)])
def test_mpu_against_brute_force(surrogate, with_positives, weighted, priors):
    batch = make_batch(weighted=weighted)
    rows = rows_of(batch)

    def mean(rows, target):
        total = sum(w * multiclass_loss(o, target, surrogate) for o, _, w, _ in rows)
        return total / sum(w for *_, w, _ in rows)

    unlabeled = rows if with_positives else [row for row in rows if row[1] == 0]
    positive, negative = 0.0, mean(unlabeled, 0)
    for k in range(1, N_LABELS):
        mine = [row for row in rows if row[1] == k]
        positive += priors[k] * mean(mine, k)
        negative -= priors[k] * mean(mine, 0)
    loss = BoundedNonNegativePURisk(
        priors=priors,
        gamma=2.0,
        surrogate=surrogate,
        one_vs_rest=False,
        positives_are_unlabeled_too=with_positives,
    )
    assert loss(batch).item() == pytest.approx(2 * positive + max(0, negative))


@pytest.mark.parametrize("surrogate", ["mae", "ce"])
@pytest.mark.parametrize("clamp_each", [True, False])
@pytest.mark.parametrize("with_positives", [True, False])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("threshold", [0.2, 0.5, 0.9])
def test_conf_mpu_against_brute_force(surrogate, clamp_each, with_positives, weighted, threshold):
    batch = make_batch(weighted=weighted)
    rows = rows_of(batch)
    positive = 0.0
    for k in range(1, N_LABELS):
        mine = [row for row in rows if row[1] == k]
        total = 0.0
        for scores, target, weight, confidence in mine:
            own = multiclass_loss(scores, target, surrogate)
            outside = multiclass_loss(scores, 0, surrogate)
            bracket = own - outside + (outside / confidence if confidence > threshold else 0)
            total += weight * (max(0, bracket) if clamp_each else bracket)
        positive += PRIORS[k] * total / sum(w for *_, w, _ in mine)
    if not clamp_each:
        positive = max(0, positive)
    unlabeled = rows if with_positives else [row for row in rows if row[1] == 0]
    negative = sum(
        w * multiclass_loss(o, 0, surrogate) for o, _, w, c in unlabeled if c <= threshold
    ) / sum(w for *_, w, _ in unlabeled)
    loss = ConfidencePURisk(
        priors=PRIORS,
        threshold=threshold,
        gamma=2.0,
        surrogate=surrogate,
        clamp_each=clamp_each,
        positives_are_unlabeled_too=with_positives,
    )
    assert loss(batch).item() == pytest.approx(2 * positive + negative)


def test_pu_risks_are_unbiased():
    """With true priors and confidences the expected risk over which entities got labelled is the
    fully supervised risk, as long as no maximum cuts in."""
    torch.manual_seed(0)
    n_spans = 4_000
    truth = (torch.rand(n_spans) < 0.3).long()
    logits = torch.randn(n_spans, 2, dtype=torch.float64) + torch.stack(
        (1.0 - truth, 1.0 * truth), dim=1
    )
    losses = 1 - torch.softmax(logits, dim=1)
    supervised = losses.gather(1, truth.unsqueeze(1)).mean().item()
    prior = truth.double().mean().item()
    # The first stage says the true class, so that only sure spans are treated as entities.
    confidence = torch.where(truth == 1, 1.0, 0.0)
    labelled = truth * (torch.rand(n_spans) < 0.3)
    batch = LossInput(logits=logits, targets=labelled, n_docs=1, confidence=confidence)
    for loss in (
        BoundedNonNegativePURisk(priors=(0.0, prior)),
        ConfidencePURisk(priors=(0.0, prior)),
    ):
        assert loss(batch).item() == pytest.approx(supervised, abs=0.02)


@pytest.mark.parametrize(
    ("normalization", "make_optimizer", "trains"),
    [
        ("document", lambda parameters: torch.optim.Adam(parameters, lr=0.01), True),
        ("positives", lambda parameters: torch.optim.Adam(parameters, lr=0.01), True),
        ("document", lambda parameters: torch.optim.SGD(parameters, lr=0.1), True),
        ("mean", lambda parameters: torch.optim.SGD(parameters, lr=0.1), False),
    ],
)
def test_naive_baseline_with_few_positives(normalization, make_optimizer, trains):
    """All candidates as negatives, one positive in 150 spans, clipped gradients as in spaCy."""
    torch.manual_seed(0)
    inputs = torch.randn(1200, 12)
    targets = torch.zeros(1200, dtype=torch.long)
    targets[:8] = 1
    inputs[:8, 0] += 4.0
    model = torch.nn.Sequential(torch.nn.Linear(12, 16), torch.nn.Tanh(), torch.nn.Linear(16, 2))
    optimizer = make_optimizer(model.parameters())
    loss = CrossEntropy(normalization=normalization)
    for _ in range(150):
        optimizer.zero_grad()
        loss(LossInput(logits=model(inputs), targets=targets, n_docs=16)).backward()
        for parameter in model.parameters():
            torch.nn.utils.clip_grad_norm_(parameter, 1.0)
        optimizer.step()
    found = model(inputs).argmax(1)
    assert (found[:8].float().mean() > 0.8) == trains
    assert found[8:].float().mean() < 0.01


def test_settings_and_inputs_are_checked():
    for code, make in [
        ("R103", lambda: NRCES(w=0)),
        ("R105", lambda: NRCES(variant="other")),
        ("R105", lambda: CrossEntropy(normalization="other")),
        ("R105", lambda: BoundedNonNegativePURisk(priors=PRIORS, surrogate="other")),
        ("R103", lambda: ConfidencePURisk(priors=PRIORS, threshold=1)),
        ("R106", lambda: BoundedNonNegativePURisk(priors=(0.1,))(make_batch())),
        ("R107", lambda: BoundedNonNegativePURisk(priors=(0, 0.5, 0.5, 0.1))(make_batch())),
        ("R107", lambda: ConfidencePURisk(priors=(0, -0.5, 0.5, 0.1))(make_batch())),
    ]:
        with pytest.raises(ValueError, match=code):
            make()
    batch = make_batch()
    without = LossInput(logits=batch.logits, targets=batch.targets, n_docs=1)
    with pytest.raises(ValueError, match="R104"):
        ConfidencePURisk(priors=PRIORS)(without)
