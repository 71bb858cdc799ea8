from __future__ import annotations

from hyperscale.workload.graph import find_cycle, layers, stages


def test_layers_are_longest_path_not_distance() -> None:
    graph = {
        "Setup": (),
        "LoadTest": (),
        "Validate": ("LoadTest",),
        "Report": ("Validate", "LoadTest"),
    }
    assert layers(graph) == [["Setup", "LoadTest"], ["Validate"], ["Report"]]


def test_a_shortcut_does_not_pull_a_node_forward() -> None:
    assert layers({"a": (), "b": ("a",), "c": ("a", "b")}) == [["a"], ["b"], ["c"]]


def test_roots_run_alone_and_deeper_layers_together() -> None:
    diamond = {"a": (), "b": ("a",), "c": ("a",), "d": ("b", "c"), "e": ()}
    assert stages(diamond) == [["a"], ["e"], ["b", "c"], ["d"]]


def test_nothing_has_no_stage() -> None:
    assert stages({}) == []
    assert find_cycle({}) is None


def test_a_cycle_is_shown_as_it_runs() -> None:
    assert find_cycle({"a": ("c",), "b": ("a",), "c": ("b",), "d": ("a",)}) == ["a", "c", "b", "a"]
    assert find_cycle({"a": ("a",)}) == ["a", "a"]


def test_a_long_chain_does_not_recurse() -> None:
    chain = {str(number): (str(number - 1),) if number else () for number in range(5000)}
    assert len(layers(chain)) == 5000
    assert find_cycle({**chain, "0": ("4999",)}) is not None
