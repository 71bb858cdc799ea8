from __future__ import annotations

import pytest

from hyperscale.workload.scope import fold_ids


@pytest.mark.parametrize(
    ("path", "folded"),
    [
        ("/items/77", "/items/{id}"),
        ("/items/77/parts/8", "/items/{id}/parts/{id}"),
        ("/u/1b4e28ba-2fa1-11d2-883f-0016d3cca427/x", "/u/{id}/x"),
        ("/blob/deadbeef00112233", "/blob/{id}"),
        ("/v2/items", "/v2/items"),
        ("/feedbeefface", "/feedbeefface"),
        ("/report-2024.csv", "/report-{id}.csv"),
        ("/", "/"),
    ],
)
def test_numbers_and_identifiers_are_folded(path: str, folded: str) -> None:
    assert fold_ids(path) == folded
