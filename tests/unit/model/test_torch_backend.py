"""``torch.compile`` with our backend: found without an import, right when things change, clear when it refuses."""

from __future__ import annotations

from collections.abc import Callable

import pytest

pytest.importorskip("torch")

import torch
from torch import Tensor

from dovetail.base.errors import CallError, IndexRangeError, UnsupportedError
from dovetail.model.torch_backend import reports
from dovetail.model.torch_run import TorchReport
from tests.unit.frontends.torch.traced import whole_numbers

OPTIONS = {"threads": 1, "jobs": 1}


@pytest.fixture(autouse=True)
def _fresh() -> None:
    torch._dynamo.reset()
    torch.manual_seed(0)


def compiled(function: Callable[..., object], **options: object) -> Callable[..., Tensor]:
    made: Callable[..., Tensor] = torch.compile(function, backend="dovetail", options={**OPTIONS, **options})
    return made


def latest() -> TorchReport:
    return reports()[-1]


def small() -> torch.nn.Module:
    layers = (torch.nn.Linear(8, 16), torch.nn.GELU(), torch.nn.Linear(16, 4), torch.nn.Softmax(-1))
    return torch.nn.Sequential(*layers).eval()


def test_the_backend_is_found_by_its_name() -> None:
    assert "dovetail" in torch._dynamo.list_backends()


def test_a_network_runs_without_pytorch() -> None:
    model, x = small(), torch.randn(3, 8)
    with torch.no_grad():
        torch.testing.assert_close(compiled(model, strict=True)(x), model(x))
    assert latest().fallbacks == ()
    assert latest().parts[0].count("compiled") >= 1


def test_a_convolutional_network_with_batch_norm() -> None:
    model = torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 3, padding=1),
        torch.nn.BatchNorm2d(8),
        torch.nn.ReLU(),
        torch.nn.MaxPool2d(2),
        torch.nn.Conv2d(8, 8, 3, groups=8),
        torch.nn.AdaptiveAvgPool2d(1),
        torch.nn.Flatten(),
    ).eval()
    x = torch.randn(2, 3, 12, 12)
    with torch.no_grad():
        torch.testing.assert_close(compiled(model, strict=True)(x), model(x))


def test_parameters_that_were_written_or_exchanged_are_seen() -> None:
    model, x = torch.nn.Linear(8, 4).eval(), whole_numbers(3, 8)
    run = compiled(model, strict=True)
    with torch.no_grad():
        for step in range(6):
            torch.testing.assert_close(run(x), model(x))
            model.weight.add_(1.0)
            if step == 2:
                model.bias = torch.nn.Parameter(torch.ones(4))
    assert latest().fallbacks == ()


def test_parameters_may_be_inputs_for_those_who_write_through_data() -> None:
    model, x = torch.nn.Linear(8, 4).eval(), whole_numbers(3, 8)
    run = compiled(model, strict=True, parameters="inputs")
    with torch.no_grad():
        run(x)
        model.weight.data.mul_(2.0)
        torch.testing.assert_close(run(x), model(x))


def test_training_stays_with_pytorch_and_says_so() -> None:
    model, x = small(), torch.randn(3, 8)
    compiled(model)(x).sum().backward()
    wanted = torch.autograd.grad(model(x).sum(), model[0].weight)[0]
    torch.testing.assert_close(model[0].weight.grad, wanted)
    assert "gradients are needed" in latest().fallbacks[0].reason


def test_strict_refuses_to_train() -> None:
    with pytest.raises(RuntimeError, match="gradients are needed"):
        compiled(small(), strict=True)(torch.randn(3, 8))


def test_an_operator_that_is_not_there_runs_in_pytorch_and_is_listed() -> None:
    def function(x: Tensor) -> Tensor:
        return torch.sort(x.exp(), dim=1)[0] + x

    x = torch.randn(3, 8)
    torch.testing.assert_close(compiled(function)(x), function(x))
    assert [fallback.operator for fallback in latest().fallbacks] == ["aten.sort.default"]
    assert len(latest().parts) == 2
    torch._dynamo.reset()
    with pytest.raises(UnsupportedError, match=r"aten\.sort\.default cannot be taken"):
        compiled(function, strict=True)(x)


def test_sizes_that_change_are_compiled_for_as_they_come() -> None:
    run = torch.compile(lambda x: x.softmax(-1) * 2, backend="dovetail", dynamic=True, options=OPTIONS)
    for rows in (2, 5, 3, 2):
        x = torch.randn(rows, 6)
        torch.testing.assert_close(run(x), x.softmax(-1) * 2)
    assert latest().fallbacks == ()


def test_inputs_written_in_place_are_written() -> None:
    def function(x: Tensor, y: Tensor) -> Tensor:
        x.mul_(2.0)
        return x.t() + y

    x, y = whole_numbers(3, 3), whole_numbers(3, 3, seed=1)
    other = x.clone()
    torch.testing.assert_close(compiled(function, strict=True)(x, y), function(other, y), rtol=0, atol=0)
    torch.testing.assert_close(x, other, rtol=0, atol=0)


def test_results_do_not_share_memory_unless_pytorchs_do() -> None:
    def function(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return x.clone(), (x + 1).clone(), x + 1

    x = whole_numbers(4)
    first, second, third = compiled(function, strict=True)(x)
    first.zero_()
    second.zero_()
    torch.testing.assert_close((x, third), (whole_numbers(4), whole_numbers(4) + 1))


def test_results_lie_in_memory_as_pytorchs_do() -> None:
    x = torch.randn(2, 3, 8, 8).to(memory_format=torch.channels_last)
    found = compiled(lambda x: (x * 2, (x + 1).transpose(1, 2)), strict=True)(x)
    assert [tensor.stride() for tensor in found] == [(x * 2).stride(), (x + 1).transpose(1, 2).stride()]
    torch.testing.assert_close(found, (x * 2, (x + 1).transpose(1, 2)))


def test_a_decomposition_that_fails_is_left_out() -> None:
    bounds = torch.tensor([0.0, 1.0])
    assert compiled(lambda x: torch.bucketize(x, bounds) + 1)(torch.tensor(0.5)) == 2


def test_an_index_outside_its_table_is_an_error() -> None:
    table = whole_numbers(4, 3)
    run = compiled(lambda rows: torch.nn.functional.embedding(rows, table), strict=True)
    torch.testing.assert_close(run(torch.tensor([3, 0])), table[[3, 0]], rtol=0, atol=0)
    with pytest.raises(IndexRangeError):
        run(torch.tensor([1, 4]))


def test_small_floats_are_computed_as_small_floats() -> None:
    model, x = small().to(torch.bfloat16), torch.randn(3, 8).to(torch.bfloat16)
    with torch.no_grad():
        torch.testing.assert_close(compiled(model, strict=True)(x), model(x))


@pytest.mark.parametrize(
    ("options", "message"),
    [({"stric": True}, "did you mean 'strict'"), ({"threads": "two"}, "not a int"), ({"parameters": "no"}, "one of")],
    ids=str,
)
def test_a_wrong_option_is_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises((CallError, RuntimeError), match=message):
        torch.compile(torch.exp, backend="dovetail", options=options)(torch.ones(2))


@pytest.mark.parametrize("layer", [torch.nn.LSTM, torch.nn.GRU, torch.nn.RNN])
def test_a_recurrent_layer_stays_whole(layer: type[torch.nn.Module]) -> None:
    model, x = layer(4, 8, bidirectional=True, batch_first=True).eval(), torch.randn(2, 5, 4)
    with torch.no_grad():
        torch.testing.assert_close(compiled(model, strict=True)(x), model(x))
    operator = layer.__name__.lower()
    assert [row.title for row in latest().parts[0].rows if operator in row.title] == [f"{operator} + {operator}"]


def test_a_recurrent_layer_learns_with_pytorch() -> None:
    model, x = torch.nn.LSTM(4, 8), torch.randn(5, 2, 4)
    compiled(model)(x)[0].sum().backward()
    assert model.weight_hh_l0.grad.abs().max() > 0
    assert "gradients" in latest().fallbacks[0].reason


def test_a_packed_sequence_gives_what_pytorch_gives() -> None:
    model = torch.nn.GRU(4, 8).eval()
    packed = torch.nn.utils.rnn.pack_padded_sequence(torch.randn(5, 3, 4), torch.tensor([5, 4, 2]))
    with torch.no_grad():
        torch.testing.assert_close(compiled(model)(packed), model(packed))
