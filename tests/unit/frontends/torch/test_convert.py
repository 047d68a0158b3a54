"""Views, reductions, products, windows and lookups, with whole numbers and tolerance zero."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

import torch
from torch.nn import functional

from tests.unit.frontends.torch.traced import check, whole_numbers

X = whole_numbers(3, 4, 5)


def test_views_are_the_same_elements() -> None:
    check(lambda x: (x.view(12, 5), x.permute(2, 0, 1), x.transpose(0, -1), x[:, None], x.reshape(-1)), X)
    check(lambda x: (x.expand(2, 3, 4, 5), x.repeat(2, 1, 3), x.unfold(1, 2, 2), x.diagonal(1, 0, 2)), X)


def test_cuts_count_as_python_does() -> None:
    check(lambda x: (x[1:, ::2, -2:], x[-1], x.flip(0, 2), *x.split([1, 2, 2], 2), *x.unbind(0)), X)
    check(lambda x, y: torch.cat([x, y, x], dim=1), X, whole_numbers(3, 2, 5))


def test_padding_may_be_negative() -> None:
    check(lambda x: functional.pad(x, (1, -2, 0, 3), value=7.0), X)


def test_an_empty_tensor_needs_no_code() -> None:
    check(lambda x: torch.cat([x[:, :0].exp(), x], dim=1), X)


@pytest.mark.parametrize("keepdim", [False, True])
def test_reductions_over_axes(keepdim: bool) -> None:
    check(lambda x: (x.sum((0, 2), keepdim), x.amax(1, keepdim), *x.max(2, keepdim), x.argmin(0, keepdim)), X)
    check(lambda x: (x.sum(), x.prod(2), (x > 3).any(1, keepdim), (x > -5).all(), x.cumsum(1), x.argmax()), X)


def test_means_and_spreads() -> None:
    check(lambda x: (x.mean(1), x.var(2), x.std(0, correction=0), *torch.var_mean(x, 1)), X, exact=False)
    check(lambda x: [torch.linalg.vector_norm(x, p, 1) for p in (0, 1, 2, 3.5, float("inf"))], X, exact=False)


def test_products_of_matrices() -> None:
    a, b = whole_numbers(4, 6), whole_numbers(6, 5, seed=1)
    check(lambda a, b: (a @ b, torch.addmm(b[0], a, b, beta=2, alpha=-1)), a, b)
    check(lambda a, b: torch.matmul(a[None], b), a, whole_numbers(2, 6, 5, seed=1))


@pytest.mark.parametrize("groups", [1, 2])
def test_convolutions(groups: int) -> None:
    w = whole_numbers(4, 4 // groups, 3, 2, seed=1)
    x, b = whole_numbers(2, 4, 7, 6), whole_numbers(4, seed=2)
    check(lambda x, w, b: functional.conv2d(x, w, b, (2, 1), (1, 0), (1, 2), groups), x, w, b)
    check(lambda x, w: functional.conv_transpose2d(x, w, None, 2, 1, 1, groups), x, w)


def test_pooling() -> None:
    x = whole_numbers(2, 3, 7, 7)
    check(lambda x: functional.max_pool2d(x, 3, 2, 1, return_indices=True), x)
    check(lambda x: functional.max_pool2d(x[0], 2, 2, ceil_mode=True), x)
    check(lambda x: functional.avg_pool2d(x, 4, 2, 1, True, False), x, exact=False)
    check(lambda x: functional.avg_pool2d(x, 2, 2, divisor_override=4, ceil_mode=True), x)
    check(lambda x: functional.adaptive_avg_pool2d(x, (3, 7)), x, exact=False)
    check(lambda x: functional.adaptive_max_pool2d(x, (7, 2)), x)


def test_norms_and_softmax() -> None:
    x, w = whole_numbers(2, 4, 6), whole_numbers(6, seed=1)
    check(lambda x, w: (functional.layer_norm(x, (6,), w, w), functional.group_norm(x, 2)), x, w, exact=False)
    check(lambda x: (x.softmax(1), x.log_softmax(-1), torch.logsumexp(x, 1)), x, exact=False)
    mean, var = whole_numbers(4), whole_numbers(4).abs() + 1
    check(lambda x, m, v: functional.batch_norm(x, m, v), x, mean, var, exact=False)


def test_lookups_by_several_index_tensors() -> None:
    i, j = torch.tensor([[0, 2], [-1, 1]]), torch.tensor([3, -4])
    check(lambda x, i, j: (x[i], x[:, :, j], x[i, j], x[:, i, j], x[i, :, j]), X, i, j)
    check(lambda x, i: (x.index_select(1, i), functional.embedding(i, x[0])), X, torch.tensor([2, 0, 2]))
    check(lambda x, i: x.gather(2, i), X, torch.randint(0, 5, (3, 2, 4)))


def test_the_last_write_stays_and_sums_add_up() -> None:
    i, v = torch.tensor([1, 0, 1]), whole_numbers(3, seed=1)
    check(lambda x, i, v: (x.index_put((i,), v), x.index_put((i,), v, accumulate=True)), whole_numbers(4), i, v)
    check(
        lambda x, i, s: (x.scatter_add(0, i, s), x.scatter_reduce(0, i, s, "amax", include_self=False)), X, *_places()
    )
    check(lambda x: x.masked_fill(x > 0, -1.0), X)


def _places() -> tuple[torch.Tensor, torch.Tensor]:
    return torch.randint(0, 3, (2, 4, 5)), whole_numbers(2, 4, 5, seed=3)


def test_attention_is_taken_apart() -> None:
    q, k, v = (whole_numbers(1, 2, 4, 8, seed=seed) / 4 for seed in range(3))
    check(lambda q, k, v: functional.scaled_dot_product_attention(q, k, v, is_causal=True), q, k, v, exact=False)
