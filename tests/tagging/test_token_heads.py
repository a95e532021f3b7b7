import pytest
import torch

from spacy_robust_ner.tagging.heads import AngleHead, SoftmaxHead, simplex_vertices
from spacy_robust_ner.tagging.types import TokenHead


@pytest.mark.parametrize("k", [2, 3, 5, 17, 50])
def test_simplex(k):
    vertices = simplex_vertices(k)
    assert vertices.shape == (k, k - 1)
    gram = vertices @ vertices.t()
    wanted = torch.full((k, k), -1 / (k - 1), dtype=torch.float64)
    wanted.fill_diagonal_(1.0)
    torch.testing.assert_close(gram, wanted)
    torch.testing.assert_close(vertices.sum(0), torch.zeros(k - 1, dtype=torch.float64))


def test_simplex_formula():
    # W_j = -(1 + sqrt(k)) / (k - 1)^(3/2) + sqrt(k / (k - 1)) e_{j-1}, for k = 4.
    second = simplex_vertices(4)[1].tolist()
    assert second == pytest.approx([-3 / 27**0.5 + (4 / 3) ** 0.5, -3 / 27**0.5, -3 / 27**0.5])


@pytest.mark.parametrize("head_class", [SoftmaxHead, AngleHead])
@pytest.mark.parametrize("hidden_width", [None, 6])
def test_heads_score_every_token_with_gradient(head_class, hidden_width):
    head = head_class(width=8, n_tags=5, hidden_width=hidden_width, dropout=0.5)
    assert isinstance(head, TokenHead)
    tokens = torch.randn(7, 8, requires_grad=True)
    head.train()
    assert not torch.equal(head(tokens), head(tokens))
    head.eval()
    emissions = head(tokens)
    assert emissions.shape == (7, 5)
    assert torch.equal(head(tokens), emissions)
    assert (emissions.std(0) > 0).all()
    emissions[:, 0].sum().backward()
    assert tokens.grad.abs().sum() > 0
    assert head(torch.zeros(0, 8)).shape == (0, 5)


def test_angle_head_sums_to_zero_and_softmax_head_does_not():
    tokens = torch.randn(20, 8)
    angle = AngleHead(width=8, n_tags=9)(tokens)
    torch.testing.assert_close(angle.sum(1), torch.zeros(20), atol=1e-5, rtol=0)
    assert SoftmaxHead(width=8, n_tags=9)(tokens).sum(1).abs().max() > 0.01


def test_vertices_are_saved_and_not_trained():
    head = AngleHead(width=8, n_tags=5)
    assert "vertices" in head.state_dict()
    assert all(parameter is not head.vertices for parameter in head.parameters())


def test_wrong_settings():
    with pytest.raises(ValueError, match=r"R103.*dropout.*1.0"):
        SoftmaxHead(width=8, n_tags=5, dropout=1.0)
    with pytest.raises(ValueError, match=r"R103.*hidden_width.*0"):
        SoftmaxHead(width=8, n_tags=5, hidden_width=0)
    with pytest.raises(ValueError, match=r"R152"):
        AngleHead(width=8, n_tags=1)
