"""Rendezvous and choices: worked examples."""

from __future__ import annotations

import os
import random
import subprocess
import sys

import pytest

from hyperscale.cluster.placement.choice import Ewma, power_of_two
from hyperscale.cluster.placement.hashing import stable_hash, unit_interval
from hyperscale.cluster.placement.rendezvous import health_weight, latency_factor, rank

KEYS = [f"job-{i}" for i in range(10_000)]


def test_the_hash_is_fixed_for_all_time() -> None:
    assert stable_hash("gate-1:8000") == 0x9E7DC87A1118A379
    assert stable_hash("ab", "c") != stable_hash("a", "bc")
    assert 0 < unit_interval("a") < 1


def test_processes_with_different_hash_seeds_agree_on_every_owner() -> None:
    program = (
        "import hashlib\n"
        "from hyperscale.cluster.placement.rendezvous import rank\n"
        "said = [rank({'a': 1.0, 'b': 0.5, 'c': 0.3}, f'job-{i}') for i in range(1000)]\n"
        "print(hashlib.sha256(repr(said).encode()).hexdigest())"
    )
    answers = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "2", "random")
    }
    assert len(answers) == 1


def test_rendezvous_shares_follow_the_weights() -> None:
    weights = {"a": 1.0, "b": 0.5, "c": 0.5}
    first = [rank(weights, key)[0] for key in KEYS]
    assert first.count("a") / len(KEYS) == pytest.approx(0.5, abs=0.02)
    assert first.count("b") / len(KEYS) == pytest.approx(0.25, abs=0.02)


def test_rank_keeps_the_best_and_leaves_out_the_weightless() -> None:
    assert len(rank({str(i): 1.0 for i in range(20)}, "k", keep=8)) == 8
    assert rank({"a": 0.0, "b": 1.0}, "k") == ["b"]
    assert rank({}, "k") == []


def test_health_is_rounded_so_that_small_changes_move_nobody() -> None:
    assert health_weight(0.0, 0.0) == 1.0
    assert health_weight(0.01, 0.04) == 1.0
    assert health_weight(0.1, 0.2) == 0.7
    assert health_weight(0.6, 1.0) == 0.1
    assert latency_factor(0.01, 0.01) == 0.0
    assert latency_factor(0.02, 0.01) == 0.5
    assert latency_factor(9.0, 0.01) == 1.0
    assert latency_factor(9.0, 0.0) == 0.0


def test_power_of_two_takes_the_less_loaded_and_copes_with_few() -> None:
    dice = random.Random(1)
    load = {"a": 5.0, "b": 1.0}
    assert power_of_two([], load.__getitem__, dice) is None
    assert power_of_two(["a"], load.__getitem__, dice) == "a"
    assert {power_of_two(["a", "b"], load.__getitem__, dice) for _ in range(20)} == {"b"}


def test_power_of_two_spreads_far_better_than_chance() -> None:
    dice = random.Random(2)
    names = [str(i) for i in range(100)]
    two: dict[str, float] = dict.fromkeys(names, 0.0)
    one: dict[str, float] = dict.fromkeys(names, 0.0)
    for _ in range(10_000):
        chosen = power_of_two(names, two.__getitem__, dice)
        assert chosen is not None
        two[chosen] += 1
        one[dice.choice(names)] += 1
    assert max(two.values()) - 100 < (max(one.values()) - 100) / 3


def test_ewma_starts_with_the_first_sample() -> None:
    mean = Ewma(0.2)
    assert mean.add(10.0) == 10.0
    assert mean.add(20.0) == pytest.approx(12.0)
    with pytest.raises(ValueError, match="alpha"):
        Ewma(0.0)
