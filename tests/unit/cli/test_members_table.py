"""How `hyperscale members` shows an answer."""

from __future__ import annotations

import json

from hyperscale.cli.members import as_json, table
from hyperscale.nodes.member.queries import MemberRow, Members
from hyperscale.ui.output import Paint

ANSWER = Members(
    node_id="a",
    cluster="shop",
    env="prod",
    voters=["a", "b"],
    leader="a",
    term=3,
    rows=[
        MemberRow(
            node_id="a",
            role="probe",
            datacenter="eu-1",
            state="alive",
            confirmed=True,
            incarnation=1,
            address="127.0.0.1:7000",
            since_s=30.2,
            health_score=0,
            coordinate_error=0.25,
        ),
        MemberRow(
            node_id="b",
            role="probe",
            datacenter="eu-1",
            state="suspect",
            confirmed=False,
            incarnation=12,
            address="127.0.0.1:7001",
            since_s=7300.0,
            rtt_s=0.00123,
        ),
    ],
)


def test_one_line_for_the_cluster_and_one_for_each_member() -> None:
    assert table(ANSWER, Paint(on=False)) == [
        "cluster shop (prod), as a sees it: 1 of 2 alive; leader a, term 3, voters a b",
        "",
        "NODE  ROLE   DC    STATE     FOR  INC  HEALTH      RTT  ERROR  ADDRESS",
        "a*    probe  eu-1  alive     30s    1       0        -    25%  127.0.0.1:7000",
        "b     probe  eu-1  suspect?   2h   12       -  1.23 ms      -  127.0.0.1:7001",
    ]


def test_what_needs_a_look_is_coloured() -> None:
    lines = table(ANSWER, Paint(on=True))

    assert lines[4].startswith("\x1b[33m")
    assert "\x1b" not in lines[3]


def test_json_is_one_object() -> None:
    found = json.loads(as_json(ANSWER))

    assert found["leader"] == "a"
    assert [row["state"] for row in found["rows"]] == ["alive", "suspect"]
