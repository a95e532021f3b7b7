"""Training steps of the span component: losses, gradients, epochs, resuming."""

import numpy as np
import pytest
import torch
from span_pipes import (
    NAME,
    TRAIN_DATA,
    change,
    example_of,
    make_examples,
    make_nlp,
    misc,
    spans_of,
    train,
    weights,
)

SAMPLERS = {
    "all": misc("AllSampler"),
    "uniform": misc("UniformSampler", rate=0.5),
    "weighted": misc("WeightedSampler", rate=0.5),
    "similar": misc("TopSimilaritySampler", share=0.3),
    "fraction": misc("FractionSampler", share=0.5),
}
LOSSES = {
    "cross_entropy": misc("CrossEntropy"),
    "nrces": misc("NRCES", w=2.0),
    "pu": misc("PURisk", unlabeled_factor=2.0),
}
EXTRAS = {
    "plain": {},
    "all_terms": {
        "contrastive": misc("ContrastiveTerm", weight=0.2),
        "ratio": misc("RatioTerm", ratio=0.3, margin=0.0, unit="spans"),
        "retrieval": misc("Retrieval"),
    },
}


def naive_logits(head, tokens, spans):
    """The concat-product head as the paper writes it."""
    first = tokens[[start for start, _ in spans]]
    last = tokens[[end - 1 for _, end in spans]]
    concatenated = torch.cat((first, last, first - last, first * last), dim=1)
    vectors = torch.tanh(concatenated @ head.hidden.weight.t() + head.hidden.bias)
    return vectors @ head.output.weight.t() + head.output.bias, vectors


def naive_objective(pipe, examples, tokens, *, contrastive=None, ratio=None):
    """Cross entropy of all spans a document, and the other terms, by loops."""
    spans, targets, offset, n_tokens = [], [], 0, 0
    for example in examples:
        gold = {(s.start, s.end): s.label_ for s in example.reference.ents}
        n = len(example.predicted)
        for start in range(n):
            for end in range(start + 1, min(n, start + pipe.max_width) + 1):
                spans.append((offset + start, offset + end))
                targets.append(("O", *pipe.labels).index(gold.get((start, end), "O")))
        offset += n
        n_tokens += n
    logits, vectors = naive_logits(pipe.head, tokens, spans)
    log_probs = logits.log_softmax(1)
    main = -sum(log_probs[i, target] for i, target in enumerate(targets)) / len(examples)
    total, terms = main, {"spans": main}
    if contrastive is not None:
        unit = vectors / vectors.norm(dim=1, keepdim=True)
        similarity = unit @ unit.t() / contrastive.temperature
        term = 0.0
        for i, own in enumerate(targets):
            others = [j for j in range(len(targets)) if j != i]
            partners = [j for j in others if targets[j] == own]
            if partners:
                norm = torch.logsumexp(similarity[i, others], 0)
                term = term + sum(norm - similarity[i, j] for j in partners) / len(partners)
        term = contrastive.weight * term / len(targets)
        terms = {"spans": (1 - contrastive.weight) * main, "contrastive": term}
        total = terms["spans"] + term
    if ratio is not None:
        sizes = [end - start if ratio.unit == "tokens" else 1 for start, end in spans]
        expected = ((1 - log_probs[:, 0].exp()) * torch.tensor(sizes)).sum() / n_tokens
        terms["ratio"] = ratio.weight * torch.relu(abs(expected - ratio.ratio) - ratio.margin)
        total = total + terms["ratio"]
    return total, terms


@pytest.mark.parametrize("extras", ["plain", "all_terms"])
@pytest.mark.parametrize("chunk_size", [7, 32768])
def test_losses_and_gradients_are_those_of_the_naive_objective(extras, chunk_size):
    settings = dict(EXTRAS[extras])
    if settings and chunk_size == 7:
        settings["ratio"] = {**settings["ratio"], "unit": "tokens"}
    nlp = make_nlp(chunk_size=chunk_size, max_width=3, **settings)
    examples = make_examples(nlp)
    nlp.initialize(lambda: examples)
    pipe = nlp.get_pipe(NAME)
    vectors, _ = pipe.model.begin_update([eg.predicted for eg in examples])
    logged, d_vectors = pipe.get_loss(examples, vectors)
    head_gradients = {n: p.grad.clone() for n, p in pipe.head.named_parameters()}
    pipe.head.zero_grad(set_to_none=True)
    tokens = torch.tensor(np.concatenate(vectors), requires_grad=True)
    total, terms = naive_objective(
        pipe, examples, tokens, contrastive=pipe.contrastive, ratio=pipe.ratio
    )
    total.backward()
    assert logged[NAME] == pytest.approx(total.item(), rel=1e-5)
    if extras == "all_terms":
        for name, term in terms.items():
            assert logged[f"{NAME}_{name}"] == pytest.approx(term.item(), rel=1e-4), name
        assert sum(logged[f"{NAME}_{n}"] for n in terms) == pytest.approx(logged[NAME], rel=1e-5)
    assert np.allclose(np.concatenate(d_vectors), tokens.grad.numpy(), atol=1e-5)
    assert [len(d) for d in d_vectors] == [len(eg.predicted) for eg in examples]
    for name, parameter in pipe.head.named_parameters():
        assert torch.allclose(head_gradients[name], parameter.grad, atol=1e-4), name


def test_gradient_against_finite_differences():
    nlp = make_nlp(max_width=3)
    examples = make_examples(nlp)
    nlp.initialize(lambda: examples)
    pipe = nlp.get_pipe(NAME)
    vectors, _ = pipe.model.begin_update([eg.predicted for eg in examples])
    _, d_vectors = pipe.get_loss(examples, vectors)
    pipe.head.double()
    for place in [(0, 0, 0), (0, 4, 3), (1, 2, 15), (1, 6, 7)]:
        doc, token, column = place
        values = []
        for step in (1e-4, -1e-4):
            moved = [v.astype(np.float64) for v in vectors]
            moved[doc][token, column] += step
            tokens = torch.from_numpy(np.concatenate(moved)).requires_grad_()
            values.append(pipe._objective_of(examples, tokens)[0].item())
        slope = (values[0] - values[1]) / 2e-4
        assert d_vectors[doc][token, column] == pytest.approx(slope, rel=1e-3, abs=1e-6)


def test_counters_and_observer_agree():
    nlp = make_nlp(sampler=misc("UniformSampler", rate=0.3))
    examples = make_examples(nlp)
    nlp.initialize(lambda: examples)
    pipe, seen = nlp.get_pipe(NAME), []
    pipe.sample_observer = lambda _, *columns: seen.append([c.tolist() for c in columns])
    losses = nlp.update(examples)
    assert losses[f"{NAME}_positives"] == 3
    assert losses[f"{NAME}_negatives"] == len(seen[0][0]) == 2 + 3
    assert np.bincount(seen[0][0]).tolist() == [2, 3]
    for doc, start, end in zip(*seen[0], strict=True):
        assert 0 <= start < end <= len(examples[doc].predicted)


@pytest.mark.parametrize(
    "examples_of",
    [
        lambda nlp: [example_of(nlp, ["a", "b", "c"]), example_of(nlp, ["d"])],
        lambda nlp: [example_of(nlp, ["a", "b"], missing=[0, 1])],
        lambda nlp: [example_of(nlp, []), example_of(nlp, ["a"], [(0, 1, "PER")])],
        lambda nlp: [example_of(nlp, [" ", "a"], [(1, 2, "PER")]), example_of(nlp, ["\n"])],
    ],
    ids=["no positives", "nothing known", "an empty document", "whitespace"],
)
@pytest.mark.parametrize("loss", ["cross_entropy", "nrces", "pu"])
@pytest.mark.parametrize("extras", EXTRAS)
def test_edge_batches_train(examples_of, loss, extras):
    nlp = make_nlp(loss=LOSSES[loss], **EXTRAS[extras])
    optimizer = nlp.initialize(lambda: make_examples(nlp))
    losses = nlp.update(examples_of(nlp), sgd=optimizer)
    assert np.isfinite(losses[NAME])
    assert all(np.isfinite(array).all() for array in weights(nlp.get_pipe(NAME).model))


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_nothing_to_learn_from_is_no_change(sampler):
    nlp = make_nlp(sampler=SAMPLERS[sampler])
    optimizer = nlp.initialize(lambda: make_examples(nlp))
    optimizer.L2 = 0.0
    before = weights(nlp.get_pipe(NAME).model)
    losses = nlp.update([example_of(nlp, ["a", "b"], missing=[0, 1])], sgd=optimizer)
    assert losses[NAME] == losses[f"{NAME}_negatives"] == 0
    assert change(before, weights(nlp.get_pipe(NAME).model)) == 0


def test_update_of_empty_documents_changes_nothing():
    nlp = make_nlp()
    optimizer = nlp.initialize(lambda: make_examples(nlp))
    before = weights(nlp.get_pipe(NAME).model)
    assert nlp.update([example_of(nlp, [])], sgd=optimizer) == {NAME: 0.0}
    assert change(before, weights(nlp.get_pipe(NAME).model)) == 0


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_training_is_deterministic_by_seed(sampler):
    runs = []
    for _ in range(2):
        nlp = make_nlp(sampler=SAMPLERS[sampler], **EXTRAS["all_terms"])
        history = train(nlp, make_examples(nlp), steps=4)
        runs.append((history, weights(nlp.get_pipe(NAME).model)))
    assert runs[0][0] == runs[1][0]
    assert change(runs[0][1], runs[1][1]) == 0


def test_head_learns_at_its_own_rate():
    moved = []
    for scale in (1.0, 10.0):
        nlp = make_nlp(head_learn_rate_scale=scale)
        examples = make_examples(nlp)
        optimizer = nlp.initialize(lambda examples=examples: examples)
        optimizer.L2 = 0.0
        model = nlp.get_pipe(NAME).model
        encoder, head = model.get_ref("tok2vec"), model.get_ref("head")
        before = weights(encoder), weights(head)
        nlp.update(examples, sgd=optimizer)
        moved.append((change(before[0], weights(encoder)), change(before[1], weights(head))))
    assert moved[0][0] == pytest.approx(moved[1][0], rel=1e-5)
    assert moved[1][1] == pytest.approx(10 * moved[0][1], rel=1e-3)


def test_accumulated_gradients_are_those_of_one_batch():
    changes = []
    for split in (False, True):
        nlp = make_nlp(loss=misc("CrossEntropy", normalization="sum"))
        examples = make_examples(nlp)
        nlp.initialize(lambda examples=examples: examples)
        pipe = nlp.get_pipe(NAME)
        for batch in [[eg] for eg in examples] if split else [examples]:
            nlp.update(batch, sgd=None)
        changes.append([p.grad.clone() for p in pipe.head.parameters()])
    for one, two in zip(*changes, strict=True):
        assert torch.allclose(one, two, atol=1e-4)


def test_labels_of_the_data_that_the_pipe_does_not_know_are_unlabeled():
    nlp = make_nlp()
    nlp.get_pipe(NAME).add_label("LOC")
    nlp.initialize()
    losses = nlp.update(make_examples(nlp))
    assert losses[f"{NAME}_positives"] == 2


def test_resumed_training_reaches_the_same_spans(tmp_path):
    nlp = make_nlp()
    train(nlp, make_examples(nlp), steps=20)
    nlp.to_disk(tmp_path / "half")
    again = make_nlp(seed=7).from_disk(tmp_path / "half")
    train(again, make_examples(again), steps=20, initialize=False)
    assert spans_of(again(TRAIN_DATA[0][0]).ents) == [(0, 2, "PER"), (4, 5, "LOC")]
