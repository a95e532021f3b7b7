"""A PyTorch module in a thinc model, built when its sizes are known.

A head's sizes come from the encoder and from the labels, so it can't be built with the config. The
sizes travel with the saved weights: loading builds the module before it reads them, and no
component has to know about it.
"""

from collections.abc import Callable
from typing import Any, cast

import srsly
import torch
from thinc.api import Model, PyTorchShim
from thinc.optimizers import Optimizer
from thinc.shims.pytorch import default_serialize_torch_model
from thinc.types import ArgsKwargs
from thinc.util import get_torch_default_device
from torch import nn

from ..errors import Errors

# Called with (width in, width out), and with the layer's build options by name.
ModuleBuilder = Callable[..., nn.Module]


class LazyTorchShim(PyTorchShim):
    """Holds a module that is built once its input and output width are known.

    build (ModuleBuilder): Makes the module from (width in, width out).
    """

    def __init__(self, build: ModuleBuilder) -> None:
        super().__init__(None)
        self._build = build

    @property
    def module(self) -> nn.Module:
        """RETURNS (nn.Module): The module, which has to be built."""
        if self._model is None:
            raise ValueError(Errors.R110)
        return cast(nn.Module, self._model)

    def build(self, width_in: int, width_out: int, **options: Any) -> None:
        """Make a new module, with random weights.

        width_in (int): Width of the token vectors.
        width_out (int): Number of outputs.
        **options: What else the module's shape depends on, saved with the sizes.
        """
        self.cfg = {"width_in": width_in, "width_out": width_out, **options}
        self._model = self._build(width_in, width_out, **options).to(get_torch_default_device())

    def finish_update(self, optimizer: Optimizer) -> None:
        if self._model is not None:
            super().finish_update(optimizer)

    def to_device(self, device_type: str, device_id: int) -> None:
        if self._model is not None:
            super().to_device(device_type, device_id)

    def to_bytes(self) -> bytes:
        state = None if self._model is None else default_serialize_torch_model(self._model)
        return cast(bytes, srsly.msgpack_dumps({"config": self.cfg, "state": state}))

    def from_bytes(self, bytes_data: bytes) -> "LazyTorchShim":
        saved = srsly.msgpack_loads(bytes_data)
        if saved["state"] is None:
            self.cfg, self._model = saved["config"], None
            return self
        if self._model is None or self.cfg != saved["config"]:
            self.build(**saved["config"])
        super().from_bytes(bytes_data)
        return self


def torch_layer(name: str, build: ModuleBuilder) -> Model[Any, Any]:
    """Make a thinc layer of a module. Its inputs and outputs are tensors as they are.

    name (str): The layer's name.
    build (ModuleBuilder): Makes the module from (width in, width out).
    RETURNS (Model): The layer; `initialize` builds the module from the dims nI and nO, and from
        the dict in the attribute "build_options".
    """
    return Model(
        name,
        _forward,
        init=_init,
        attrs={"build_options": {}},
        dims={"nI": None, "nO": None},
        shims=[LazyTorchShim(build)],
    )


def torch_module(layer: Model[Any, Any]) -> nn.Module:
    """RETURNS (nn.Module): The module of a layer made by `torch_layer`."""
    return cast(LazyTorchShim, layer.shims[0]).module


def module_device(module: nn.Module) -> torch.device:
    """RETURNS (torch.device): Where a module's weights are."""
    return next(module.parameters()).device


def _forward(
    model: Model[Any, Any], inputs: ArgsKwargs, is_train: bool
) -> tuple[Any, Callable[..., Any]]:
    return cast(LazyTorchShim, model.shims[0])(inputs, is_train)


def _init(model: Model[Any, Any], X: Any = None, Y: Any = None) -> None:
    shim = cast(LazyTorchShim, model.shims[0])
    options = model.attrs["build_options"]
    shim.build(model.get_dim("nI"), model.get_dim("nO"), **options)
