import numpy as np
import pytest
import torch
from thinc.api import Adam, Model
from thinc.types import ArgsKwargs
from torch import nn

from spacy_robust_ner.architectures.torch_layer import (
    LazyTorchShim,
    module_device,
    torch_layer,
    torch_module,
)


class Affine(nn.Module):
    def __init__(self, width_in: int, width_out: int) -> None:
        super().__init__()
        self.linear = nn.Linear(width_in, width_out)
        self.register_buffer("offset", torch.randn(width_out))

    def forward(self, x):
        return self.linear(x) + self.offset


def built(width_in=3, width_out=2):
    layer = torch_layer("affine", Affine)
    layer.set_dim("nI", width_in)
    layer.set_dim("nO", width_out)
    layer.initialize()
    return layer


def state(layer):
    return {name: value.clone() for name, value in torch_module(layer).state_dict().items()}


def same(one, two):
    return one.keys() == two.keys() and all(torch.equal(one[name], two[name]) for name in one)


def test_the_module_is_built_when_its_sizes_are_known():
    layer = torch_layer("affine", Affine)
    with pytest.raises(ValueError, match=r"R110.*nlp\.initialize"):
        torch_module(layer)
    layer = built(5, 4)
    module = torch_module(layer)
    assert (module.linear.in_features, module.linear.out_features) == (5, 4)
    assert module_device(module) == torch.device("cpu")


def test_an_unbuilt_layer_takes_part_in_everything():
    layer = torch_layer("affine", Affine)
    layer.finish_update(Adam(0.1))
    layer.to_cpu()
    with layer.use_params({}):
        pass
    loaded = torch_layer("affine", Affine).from_bytes(layer.to_bytes())
    with pytest.raises(ValueError, match="R110"):
        torch_module(loaded)


def test_bytes_keep_weights_buffers_and_sizes():
    layer = built(5, 4)
    loaded = torch_layer("affine", Affine).from_bytes(layer.to_bytes())
    assert same(state(layer), state(loaded))
    assert (loaded.get_dim("nI"), loaded.get_dim("nO")) == (5, 4)
    assert all(p.requires_grad for p in torch_module(loaded).parameters())


def test_disk_keeps_weights(tmp_path):
    layer = built()
    layer.to_disk(tmp_path / "layer")
    loaded = torch_layer("affine", Affine).from_disk(tmp_path / "layer")
    assert same(state(layer), state(loaded))


def test_loading_replaces_weights_of_another_size():
    shim, other = (built(*sizes).shims[0] for sizes in ((3, 2), (6, 5)))
    shim.from_bytes(other.to_bytes())
    assert isinstance(shim, LazyTorchShim)
    assert shim.module.linear.weight.shape == (5, 6)
    assert torch.equal(shim.module.linear.weight, other.module.linear.weight)


def test_loading_replaces_weights_in_place_if_sizes_agree():
    layer, other = built(), built()
    module = torch_module(layer)
    layer.from_bytes(other.to_bytes())
    assert torch_module(layer) is module
    assert same(state(layer), state(other))


def test_a_copy_has_its_own_weights():
    layer = built()
    copy = layer.copy()
    with torch.no_grad():
        torch_module(copy).linear.weight.zero_()
    assert torch_module(layer).linear.weight.abs().sum() > 0


def test_forward_and_backward_are_those_of_the_module():
    layer = built()
    x = torch.randn(4, 3, requires_grad=True)
    y, backprop = layer(ArgsKwargs((x,), {}), is_train=True)
    expected = torch_module(layer)(x)
    assert torch.equal(y, expected)
    backprop(ArgsKwargs(((y,),), {"grad_tensors": (torch.ones_like(y),)}))
    assert torch.allclose(x.grad, torch_module(layer).linear.weight.sum(0).expand(4, 3))


def test_finish_update_moves_weights_and_clears_gradients():
    layer = built()
    module = torch_module(layer)
    before = module.linear.weight.detach().clone()
    module(torch.ones(2, 3)).sum().backward()
    layer.finish_update(Adam(0.1, L2=0.0))
    assert np.allclose((before - module.linear.weight).detach(), 0.1, atol=1e-3)
    assert not any(p.grad is not None and p.grad.abs().sum() for p in module.parameters())


def test_layers_nest():
    inner = built()
    outer = Model("outer", lambda model, x, is_train: (x, lambda d: d), layers=[inner])
    copy = Model(
        "outer", lambda model, x, is_train: (x, lambda d: d), layers=[torch_layer("affine", Affine)]
    )
    copy.from_bytes(outer.to_bytes())
    assert same(state(inner), state(copy.layers[0]))
