import pytest
import torch

from spacy_robust_ner.tagging.padding import length_mask, pad, token_docs, unpad


@pytest.mark.parametrize("lengths", [[3], [0], [], [2, 0, 3], [0, 0], [4, 4]], ids=str)
@pytest.mark.parametrize("tail", [(), (5,)])
def test_round_trip(lengths, tail):
    sizes = torch.tensor(lengths, dtype=torch.long)
    flat = torch.randn(sum(lengths), *tail)
    padded = pad(flat, sizes, value=-7.0)
    assert padded.shape == (len(lengths), max(lengths, default=0), *tail)
    start = 0
    for doc, length in enumerate(lengths):
        assert torch.equal(padded[doc, :length], flat[start : start + length])
        assert (padded[doc, length:] == -7.0).all()
        start += length
    assert torch.equal(unpad(padded, sizes), flat)
    assert length_mask(sizes).sum() == sum(lengths)


def test_gradients_go_through():
    lengths = torch.tensor([2, 0, 3])
    flat = torch.randn(5, 2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: pad(x, lengths).sin(), (flat,))
    assert torch.autograd.gradcheck(lambda x: unpad(pad(x, lengths).sin(), lengths), (flat,))


def test_token_docs():
    assert token_docs(torch.tensor([2, 0, 1])).tolist() == [0, 0, 2]
