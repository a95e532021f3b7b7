import math

import pytest
import torch
from torch import nn

from spacy_robust_ner.dropout import Dropout


@pytest.mark.parametrize("rate", [0.1, 0.4, 0.5, 0.999])
@pytest.mark.parametrize("shape", [(999, 331), (7, 5, 3001)])
def test_values_are_dropped_with_the_rate_and_keep_their_mean(rate, shape):
    torch.manual_seed(0)
    values = torch.full(shape, 3.0, requires_grad=True)
    out = Dropout(rate)(values)
    dropped = min(round(256 * rate), 255) / 256
    kept = out != 0
    assert abs(dropped - rate) <= 1 / 256
    assert torch.allclose(out[kept], torch.tensor(3.0 / (1 - dropped)))
    n = values.numel()
    deviation = math.sqrt(dropped * (1 - dropped) / n)
    assert abs(1 - float(kept.double().mean()) - dropped) < 4 * deviation
    # No place of a random number is special, and neighbours are dropped independently.
    by_byte = kept.flatten()[: n // 8 * 8].view(-1, 8).double().mean(0)
    assert ((1 - by_byte - dropped).abs() < 4 * math.sqrt(8) * deviation).all()
    both = (kept.flatten()[1:] & kept.flatten()[:-1]).double().mean()
    assert abs(float(both) - (1 - dropped) ** 2) < 8 * deviation
    out.sum().backward()
    assert torch.equal(values.grad != 0, kept)
    assert torch.allclose(values.grad * 3.0, out)


def test_the_same_seed_drops_the_same_values():
    layer, values = Dropout(0.3), torch.ones(1000)
    outputs = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        outputs.append(layer(values))
    assert torch.equal(outputs[0], outputs[1])
    assert not torch.equal(outputs[0], outputs[2])
    assert not torch.equal(layer(values), outputs[2])


def test_nothing_is_dropped_in_evaluation_or_without_a_rate():
    values = torch.randn(100)
    assert torch.equal(Dropout(0.5).eval()(values), values)
    assert torch.equal(Dropout(0.0)(values), values)
    assert Dropout(0.5)(torch.empty(0, 4)).shape == (0, 4)


def test_a_rate_below_the_steps_is_torchs_own():
    torch.manual_seed(0)
    expected = nn.Dropout(0.001)(torch.ones(10_000))
    torch.manual_seed(0)
    assert torch.equal(Dropout(0.001)(torch.ones(10_000)), expected)


def test_gradient():
    values = torch.randn(4, 3, dtype=torch.float64, requires_grad=True)

    def dropped(x):
        torch.manual_seed(0)
        return Dropout(0.4)(x)

    assert torch.autograd.gradcheck(dropped, values)
