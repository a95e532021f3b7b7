import pytest
import torch
from torch.func import functional_call

from spacy_robust_ner.candidates import CandidateTable
from spacy_robust_ner.span.heads import BiaffineHead, ConcatProductHead, WidthEmbeddingHead
from spacy_robust_ner.span.scanning import score_in_blocks, without_dropout
from spacy_robust_ner.types import SpanHead

WIDTH, N_LABELS = 6, 4


def make_concat(**settings):
    return ConcatProductHead(width=WIDTH, n_labels=N_LABELS, hidden_width=5, **settings)


def make_width(**settings):
    return WidthEmbeddingHead(
        width=WIDTH, n_labels=N_LABELS, max_width=3, hidden_width=5, embedding_width=2, **settings
    )


def make_biaffine(**settings):
    return BiaffineHead(width=WIDTH, n_labels=N_LABELS, hidden_width=5, **settings)


MAKERS = [make_concat, make_width, make_biaffine]


@pytest.mark.parametrize("make_head", MAKERS)
def test_similarity_without_making_the_representations(make_head):
    torch.manual_seed(0)
    head, tokens = make_head().double(), torch.randn(8, WIDTH, dtype=torch.float64)
    starts, ends = torch.tensor([0, 0, 2, 5, 7]), torch.tensor([1, 5, 4, 8, 8])
    represented = head.represent(tokens, starts, ends)
    anchor = torch.randn(represented.shape[1], dtype=torch.float64)
    expected = torch.nn.functional.normalize(represented, dim=1) @ anchor
    assert torch.allclose(head.similarity(tokens, anchor, starts, ends), expected)


def test_representations_are_those_of_the_papers():
    tokens = torch.randn(4, WIDTH)
    first, last = tokens[1], tokens[2]
    span = torch.tensor([1]), torch.tensor([3])
    expected = torch.cat((first, last, first - last, first * last))
    assert torch.equal(make_concat().represent(tokens, *span)[0], expected)
    head = make_width()
    expected = torch.cat((first, last, head.embedding.weight[1]))
    assert torch.equal(head.represent(tokens, *span)[0], expected)


def naive_concat(head, tokens, starts, ends):
    first, last = tokens[starts], tokens[ends - 1]
    concatenated = torch.cat((first, last, first - last, first * last), dim=1)
    vectors = torch.tanh(concatenated @ head.hidden.weight.T + head.hidden.bias)
    return vectors @ head.output.weight.T + head.output.bias, vectors


def naive_width(head, tokens, starts, ends):
    logits, vectors = [], []
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        embedded = head.embedding.weight[min(end - start, 3) - 1]
        span = torch.cat((tokens[start], tokens[end - 1], embedded))
        inner = torch.relu(head.hidden.weight @ span + head.hidden.bias)
        vector = torch.relu(head.hidden2.weight @ inner + head.hidden2.bias)
        vectors.append(vector)
        logits.append(head.output.weight @ vector + head.output.bias)
    return torch.stack(logits), torch.stack(vectors)


def naive_biaffine(head, tokens, starts, ends):
    logits, vectors = [], []
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        s = torch.relu(head.start.weight @ tokens[start] + head.start.bias)
        e = torch.relu(head.end.weight @ tokens[end - 1] + head.end.bias)
        bilinear = torch.stack([s @ head.bilinear[:, label] @ e for label in range(N_LABELS)])
        logits.append(bilinear + head.output.weight @ torch.cat((s, e)) + head.output.bias)
        vectors.append(s + e)
    return torch.stack(logits), torch.stack(vectors)


def make_batch(dtype=torch.float64):
    torch.manual_seed(3)
    table = CandidateTable([4, 0, 1, 5], max_width=4)
    spans = table.spans()
    tokens = torch.randn(table.n_tokens, WIDTH, dtype=dtype, requires_grad=True)
    return tokens, torch.from_numpy(spans.starts), torch.from_numpy(spans.ends)


def randomize(head):
    # Biases start at zero, where a mistake in their place would not show.
    for parameter in head.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    return head


@pytest.mark.parametrize(
    ("make", "naive"),
    [(make_concat, naive_concat), (make_width, naive_width), (make_biaffine, naive_biaffine)],
)
def test_factored_equals_naive_in_outputs_and_gradients(make, naive):
    head = randomize(make().double()).eval()
    tokens, starts, ends = make_batch()
    output = head(tokens, starts, ends)
    logits, vectors = naive(head, tokens, starts, ends)
    torch.testing.assert_close(output.logits, logits)
    torch.testing.assert_close(output.vectors, vectors)
    weigh_logits, weigh_vectors = torch.randn_like(logits), torch.randn_like(vectors)

    def gradients(logits, vectors):
        loss = (logits * weigh_logits).sum() + (vectors * weigh_vectors).sum()
        return torch.autograd.grad(loss, [tokens, *head.parameters()])

    factored = gradients(output.logits, output.vectors)
    for ours, theirs in zip(factored, gradients(logits, vectors), strict=True):
        assert theirs.abs().sum() > 0
        torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize("make", MAKERS)
def test_gradcheck(make):
    head = randomize(make().double()).eval()
    tokens, starts, ends = make_batch()
    names = [name for name, _ in head.named_parameters()]

    def run(tokens, *parameters):
        values = dict(zip(names, parameters, strict=True))
        output = functional_call(head, values, (tokens, starts, ends))
        return output.logits, output.vectors

    assert torch.autograd.gradcheck(run, (tokens, *head.parameters()))


@pytest.mark.parametrize("make", MAKERS)
def test_any_subset_is_scored_alike(make):
    head = make().eval()
    tokens, starts, ends = make_batch(torch.float32)
    projections = head.prepare(tokens)
    everything = head.score(projections, starts, ends)
    rows = torch.tensor([11, 0, 7, 7])
    some = head.score(projections, starts[rows], ends[rows])
    torch.testing.assert_close(some.logits, everything.logits[rows])
    torch.testing.assert_close(some.vectors, everything.vectors[rows])
    for block in (1, 4, 1000):
        blocks = score_in_blocks(head, projections, starts, ends, block=block)
        torch.testing.assert_close(blocks.logits, everything.logits)
        torch.testing.assert_close(blocks.vectors, everything.vectors)


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize(("n_tokens", "spans"), [(0, []), (1, []), (1, [(0, 1)]), (3, [])])
def test_hardly_anything(make, n_tokens, spans):
    head = make()
    tokens = torch.randn(n_tokens, WIDTH, requires_grad=True)
    starts = torch.tensor([start for start, _ in spans], dtype=torch.long)
    ends = torch.tensor([end for _, end in spans], dtype=torch.long)
    output = head(tokens, starts, ends)
    assert output.logits.shape == (len(spans), N_LABELS)
    assert output.vectors.shape == (len(spans), head.vector_width)
    output.logits.sum().backward()
    assert tokens.grad.shape == tokens.shape


@pytest.mark.parametrize("make", MAKERS)
def test_first_step_reaches_encoder_and_every_parameter(make):
    torch.manual_seed(0)
    head = make().eval()
    tokens, starts, ends = make_batch(torch.float32)
    output = head(tokens, starts, ends)
    targets = torch.arange(len(starts)) % N_LABELS
    torch.nn.functional.cross_entropy(output.logits, targets).backward()
    assert tokens.grad.norm() > 1e-3
    assert all(parameter.grad.abs().sum() > 0 for parameter in head.parameters())


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("place", ["token_dropout", "hidden_dropout"])
def test_dropout_acts_in_training_only(make, place):
    settings = {"token_dropout": 0.0, "hidden_dropout": 0.0, place: 0.5}
    torch.manual_seed(0)
    head = make(**settings).train()
    tokens, starts, ends = make_batch(torch.float32)
    assert not torch.equal(head(tokens, starts, ends).logits, head(tokens, starts, ends).logits)
    with without_dropout(head):
        first, second = head(tokens, starts, ends), head(tokens, starts, ends)
        assert torch.equal(first.logits, second.logits)
    assert head.training
    if place == "hidden_dropout" and make is not make_width:
        vectors = [head(tokens, starts, ends).vectors for _ in range(2)]
        assert torch.equal(*vectors)
    with pytest.raises(ValueError, match="R103"):
        make(**{place: 1.0})


@pytest.mark.parametrize("make", MAKERS)
def test_heads_fit_the_protocol(make):
    assert isinstance(make(), SpanHead)


def test_no_span_table_is_built():
    """The largest tensor of a span is as wide as the token vectors, not four times."""
    largest = 0

    class Watch(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            nonlocal largest
            result = func(*args, **(kwargs or {}))
            if isinstance(result, torch.Tensor) and result.dim() and result.shape[0] == len(starts):
                largest = max(largest, result.numel() // len(starts))
            return result

    head = make_concat()
    tokens, starts, ends = make_batch(torch.float32)
    with Watch():
        head(tokens, starts, ends)
    assert largest == WIDTH
