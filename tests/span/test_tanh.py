import pytest
import torch

from spacy_robust_ner.span.tanh import tanh_


@pytest.mark.parametrize(("dtype", "error"), [(torch.float32, 2e-7), (torch.float64, 4e-16)])
def test_values(dtype, error):
    values = torch.cat(
        (torch.linspace(-30, 30, 10_001), torch.tensor([0.0, 1e-30, 1e4, -1e38, torch.inf]))
    ).to(dtype)
    found = tanh_(values.clone())
    assert found.dtype == dtype
    assert (found - torch.tanh(values)).abs().max() <= error
    assert tanh_(torch.tensor([torch.nan], dtype=dtype)).isnan().all()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_coarse_numbers_are_torchs_own(dtype):
    values = torch.randn(100).to(dtype)
    assert torch.equal(tanh_(values.clone()), torch.tanh(values))


def test_gradient():
    values = torch.randn(5, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: tanh_(x * 1.0), values)


def test_gradients_are_those_of_torch_before_and_after_it():
    weights, tokens = torch.randn(4, 6), torch.randn(7, 6)
    gradients = []
    for function in (torch.tanh, tanh_):
        layer = weights.clone().requires_grad_()
        hidden = function(tokens @ layer.t())
        (hidden.square().sum() + hidden.sum()).backward()
        gradients.append(layer.grad)
    assert torch.allclose(*gradients, atol=1e-5)
