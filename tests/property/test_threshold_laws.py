"""Laws of selectors: what is selected by all values of a key adds up to the whole."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from hypothesis import given
from hypothesis import strategies as st

from hyperscale.engine.observation import observe
from hyperscale.metrics.histogram import Histogram
from hyperscale.metrics.results import RequestResult, StepResult, WorkflowResult
from hyperscale.workload.selectors import Scope, read_scope
from hyperscale.workload.threshold_scopes import Names, bind
from hyperscale.workload.thresholds import parse_threshold

GROUPS = {"view": "browsing", "search": "browsing", "pay": "buying"}
TAGS = {"area": ("front", "back")}
NAMES = Names("Shop", tuple(GROUPS), groups=GROUPS, tags=TAGS)
KEYS = {
    "step": tuple(GROUPS),
    "group": ("browsing", "buying"),
    "status": ("200", "404", "500"),
    "method": ("GET", "POST"),
    "name": ("/", "/items/{id}"),
    "kind": ("http", "custom"),
    "area": ("front", "back"),
}
exchanges = st.fixed_dictionaries(
    {key: st.sampled_from(values) for key, values in KEYS.items() if key != "group"}
    | {"ms": st.floats(0.1, 10_000), "bytes": st.integers(0, 10_000), "failed": st.booleans()}
)


def workflow_of(made: Iterable[dict[str, object]]) -> WorkflowResult:
    """As the recorder tells them when a threshold asks for histograms by status."""
    made = list(made)
    steps = []
    for step, group in GROUPS.items():
        inside = [each for each in made if each["step"] == step]
        rows: dict[tuple[object, ...], list[dict[str, object]]] = {}
        for each in inside:
            key = tuple(each[name] for name in ("name", "method", "kind", "area", "status"))
            rows.setdefault(key, []).append(each)
        requests = [
            RequestResult(
                name=str(name),
                step=step,
                workflow="Shop",
                method=str(method),
                kind=str(kind),
                tags={"area": str(area), "status": str(status)},
                **sums(found),  # type: ignore[arg-type]
            )
            for (name, method, kind, area, status), found in rows.items()
        ]
        whole = StepResult(
            name=step,
            workflow="Shop",
            group=group,
            requests=requests,
            **sums(inside),  # type: ignore[arg-type]
        )
        steps.append(whole)
    return WorkflowResult(name="Shop", elapsed_s=10.0, steps=steps)


def sums(made: list[dict[str, object]]) -> dict[str, object]:
    latencies = Histogram()
    for each in made:
        latencies.record(float(each["ms"]) / 1000)  # type: ignore[arg-type]
    told = latencies.distribution()
    return {
        "count": len(made),
        "failed": sum(bool(each["failed"]) for each in made),
        "bytes_in": sum(int(each["bytes"]) for each in made),  # type: ignore[call-overload]
        "statuses": dict(Counter(str(each["status"]) for each in made)),
        "service": told,
        "response": told,
    }


def seen(expression: str, workflow: WorkflowResult) -> tuple[float, float, int]:
    observation = observe(bind(parse_threshold(expression), NAMES), workflow)
    return observation.count, observation.hits, observation.histogram.count


@given(st.lists(exchanges, max_size=30), st.sampled_from(sorted(KEYS)))
def test_the_values_of_a_key_share_out_the_whole(made: list[dict[str, object]], key: str) -> None:
    workflow = workflow_of(made)
    for metric, rule in (
        ("http_reqs", "count>0"),
        ("http_req_duration", "avg>0"),
        ("http_req_failed", "rate>0"),
        ("data_received", "count>0"),
    ):
        parts = [seen(f"{metric}{{{key}:{value}}}: {rule}", workflow) for value in KEYS[key]]
        assert tuple(map(sum, zip(*parts, strict=True))) == seen(f"{metric}: {rule}", workflow)


@given(st.lists(exchanges, max_size=30), st.sampled_from(sorted(KEYS)), st.data())
def test_two_keys_select_what_has_both(
    made: list[dict[str, object]], key: str, data: st.DataObject
) -> None:
    other = data.draw(st.sampled_from([each for each in ("name", "method") if each != key]))
    one, two = data.draw(st.sampled_from(KEYS[key])), data.draw(st.sampled_from(KEYS[other]))
    count, _, _ = seen(f"http_reqs{{{key}:{one},{other}:{two}}}: count>0", workflow_of(made))
    told = [{**each, "group": GROUPS[str(each["step"])]} for each in made]
    assert count == sum(each[key] == one and each[other] == two for each in told)


@given(
    st.dictionaries(
        st.text(
            st.characters(exclude_characters="{},:'\" \t\n", exclude_categories=["Z", "C"]),
            min_size=1,
        ),
        st.text(st.characters(exclude_characters="'", exclude_categories=["C"]), min_size=1),
        max_size=3,
    )
)
def test_a_scope_is_read_as_it_was_written(pairs: dict[str, str]) -> None:
    scope = Scope("http_reqs", pairs)
    if not any(value.startswith('"') for value in pairs.values()):
        assert read_scope(str(scope)) == scope
        assert parse_threshold(f"{scope}: count<5").scope == str(scope)
