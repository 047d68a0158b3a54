"""The host: chosen by features, never only by name, with a reason."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from dovetail.targets.cpuid import cpuid
from dovetail.targets.files import read_target
from dovetail.targets.host import Host, choose, find_host, missing_features, missing_on, tables_for
from dovetail.targets.load import load_target
from dovetail.targets.topology import Cache, counted_on, find_caches, find_cores

V3 = frozenset(["sse4.2", "popcnt", "avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe"])
V4 = V3 | frozenset(["avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"])
ZEN4 = V4 | frozenset(
    ["sse4a", "avx512bf16", "avx512bitalg", "avx512ifma", "avx512vbmi", "avx512vbmi2", "avx512vnni", "avx512vpopcntdq"]
)
ZEN5 = ZEN4 | {"avxvnni", "avx512vp2intersect", "gfni", "vaes"}
TRIPLE = "x86_64-unknown-linux-gnu"


@pytest.mark.parametrize(
    ("host", "target"),
    [
        (Host(TRIPLE, "haswell", V3), "x86-64-v3"),
        (Host(TRIPLE, "skylake-avx512", V4), "x86-64-v4"),
        (Host(TRIPLE, "znver4", ZEN4), "znver4"),
        (Host(TRIPLE, "znver5", ZEN5), "znver5"),
        (Host(TRIPLE, "znver5", ZEN4), "x86-64-v4"),
        (Host(TRIPLE, "znver4", V3), "x86-64-v3"),
        (Host(TRIPLE, "znver4", ZEN4 - {"avx512dq"}), "x86-64-v3"),
        (Host(TRIPLE, "haswell", V3 - {"fma"}), "generic"),
        (Host(TRIPLE, "", frozenset()), "generic"),
        (Host("aarch64-unknown-linux-gnu", "apple-m1", frozenset({"neon"})), "generic"),
        (Host("", "", frozenset()), "generic"),
    ],
)
def test_the_best_target_whose_features_are_all_there_is_chosen(host: Host, target: str) -> None:
    assert choose(host)[0] == target
    assert missing_on(host, read_target("host", lambda: tables_for(host))) == ()


def test_the_reason_says_what_was_missing() -> None:
    assert "x86-64-v3 needs fma" in choose(Host(TRIPLE, "haswell", V3 - {"fma"}))[1]
    assert "no shipped target describes riscv64" in choose(Host("riscv64-unknown-linux-gnu", "", frozenset()))[1]


def test_what_was_found_out_is_filled_in() -> None:
    caches = (Cache(1, 49152), Cache(2, 2 << 20, 64, 2), Cache(3, 60 << 20, 64, 48))
    host = Host(TRIPLE, "sapphirerapids", V4, frozenset({"sse4a", "prefer-256-bit"}), 24, caches)
    target = read_target("host", lambda: tables_for(host))
    assert [(c.name, c.bytes, c.per) for c in target.caches] == [
        ("L1", 49152, "core"), ("L2", 2 << 20, "core"), ("L3", 60 << 20, ""),
    ]  # fmt: skip
    assert target.unit("core").count == (24,)
    assert target.llvm is not None and target.llvm.cpu == "sapphirerapids"
    assert "-sse4a" in target.llvm.features and "-prefer-256-bit" in target.llvm.features


def test_a_cache_that_is_not_there_is_not_described() -> None:
    target = read_target("host", lambda: tables_for(Host(TRIPLE, "x", V3, caches=(Cache(1, 32768), Cache(2, 1 << 20)))))
    assert [c.name for c in target.caches] == ["L1", "L2"]


def test_a_virtual_machine_that_hides_features_gets_no_illegal_instruction() -> None:
    host = Host(TRIPLE, "znver4", V3, absent=ZEN4 - V3)
    target = read_target("host", lambda: tables_for(host))
    assert target.llvm is not None and "-avx512f" in target.llvm.features and "+avx512f" not in target.llvm.features
    assert target.vector_bytes == (32,)


def test_this_machine_can_run_its_own_target() -> None:
    host = load_target("host")
    assert missing_features(host) == () and host.reason and host.unit("core").count[0] >= 1


def test_a_target_for_another_machine_is_refused() -> None:
    machines = Path(__file__).parents[2] / "targets"
    host = replace(find_host(), triple=TRIPLE, features=V3)
    assert missing_on(host, load_target(machines / "sme.toml")) == ("aarch64",)
    assert missing_on(host, load_target(machines / "toy16.toml")) == ("llvm",)
    assert "avx512f" in missing_on(host, load_target("x86-64-v4"))
    assert missing_on(host, load_target("x86-64-v3")) == ()


def test_cores_are_physical_and_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for cpu, core in enumerate((0, 0, 1, 1)):
        folder = tmp_path / f"cpu{cpu}/topology"
        folder.mkdir(parents=True)
        (folder / "core_id").write_text(f"{core}\n")
        (folder / "physical_package_id").write_text("0\n")
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1, 2, 3}, raising=False)
    quota = tmp_path / "cpu.max"
    assert find_cores(tmp_path, quota)[0] == 2
    quota.write_text("100000 100000\n")
    assert find_cores(tmp_path, quota) == (1, "1 of 2 cores by the container's processor limit")
    quota.write_text("max 100000\n")
    assert find_cores(tmp_path, quota)[0] == 2
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {2, 3}, raising=False)
    assert find_cores(tmp_path, quota)[0] == 1
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {2, 3, 9}, raising=False)
    assert find_cores(tmp_path, quota) == (
        3, "hardware threads counted as cores, the system does not say which share one",
    )  # fmt: skip


def test_caches_are_read_from_the_system(tmp_path: Path) -> None:
    rows = (("1", "Data", "48K", "0"), ("1", "Instruction", "32K", "0"), ("3", "Unified", "16M", "0-7,16-23"))
    for number, (level, kind, size, shared) in enumerate(rows):
        folder = tmp_path / f"cpu0/cache/index{number}"
        folder.mkdir(parents=True)
        for key, value in (("level", level), ("type", kind), ("size", size), ("shared_cpu_list", shared)):
            (folder / key).write_text(value + "\n")
    assert find_caches("x86_64", tmp_path) == (
        (Cache(1, 49152), Cache(3, 16 << 20, 64, 16)), "caches from the system",
    )  # fmt: skip


def test_without_system_files_the_processor_is_asked(tmp_path: Path) -> None:
    caches, note = find_caches(find_host().architecture, tmp_path)
    if find_host().architecture != "x86_64" or not caches:
        assert "stand in" in note
        return
    assert note == "caches from cpuid" and caches[0].level == 1 and 8 << 10 <= caches[0].bytes <= 1 << 20
    assert cpuid(0, 0)[0] > 0
    assert "stand in" in find_caches("riscv64", tmp_path)[1]


def test_a_few_cores_count_on_their_part_of_a_last_cache_that_a_socket_shares() -> None:
    assert counted_on(Cache(3, 300 << 20, 64, 2), 2).bytes == 32 << 20
    for cache, cores in ((Cache(3, 32 << 20, 64, 2), 2), (Cache(3, 60 << 20, 64, 48), 24), (Cache(2, 2 << 20), 1)):
        assert counted_on(cache, cores) == cache
