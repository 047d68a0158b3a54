"""Measuring what a machine can do at best."""

from dovetail.runtime.peak import Peak, Vectors, vectors_of
from dovetail.targets.load import load_target


def test_the_widest_vectors_and_registers_of_a_target_are_used() -> None:
    assert vectors_of(load_target("x86-64-v3")).lanes == 8
    assert vectors_of(load_target("x86-64-v3")).sums == 12
    assert vectors_of(load_target("x86-64-v4")).lanes == 16
    assert vectors_of(load_target("x86-64-v4")).sums == 24


def test_both_limits_are_measured() -> None:
    flops, read = Peak(Vectors(4, 4, 0), threads=1).measure()
    assert flops > 1e8
    assert read > 1e7
