"""What goes over the wire, against the examples and readers of others."""

from __future__ import annotations

import base64
import struct
from datetime import UTC, datetime

import pytest

from hyperscale.reporting.backends.aws import AwsConfig, signed
from hyperscale.reporting.backends.cosmosdb import authorization
from hyperscale.reporting.backends.lines import graphite_lines, influx_lines, statsd_lines
from hyperscale.reporting.backends.prometheus import snappy, varint
from hyperscale.reporting.points import Points, Row


class Signer(AwsConfig, frozen=True, kw_only=True):
    scheme = "example"


# https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html
EXAMPLE = Signer(
    aws_access_key_id="AKIAIOSFODNN7EXAMPLE",
    aws_secret_access_key="wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
    region_name="us-east-1",
)
AT = datetime(2013, 5, 24, tzinfo=UTC)


@pytest.mark.parametrize(
    ("method", "path", "headers", "body", "signature"),
    [
        ("GET", "/test.txt", {"Range": "bytes=0-9"}, b"",
         "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"),
        ("PUT", "/test%24file.text",
         {"Date": "Fri, 24 May 2013 00:00:00 GMT", "x-amz-storage-class": "REDUCED_REDUNDANCY"},
         b"Welcome to Amazon S3.",
         "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"),
        ("GET", "/?max-keys=2&prefix=J", {}, b"",
         "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"),
    ],
)  # fmt: skip
def test_signatures_are_those_of_the_documentation(
    method: str, path: str, headers: dict[str, str], body: bytes, signature: str
) -> None:
    given = {"Host": "examplebucket.s3.amazonaws.com", **headers}
    made = signed(EXAMPLE, "s3", method, path, given, body, AT)
    assert made["Authorization"].rpartition("Signature=")[2] == signature


def test_the_token_of_cosmosdb_is_that_of_the_documentation() -> None:
    """https://learn.microsoft.com/rest/api/cosmos-db/access-control-on-cosmosdb-resources"""
    key = "dsZQi3KtZmCv1ljt3VNWNm7sQUF1y5rJfC6kv5JiwvW0EndXdDku/dkKBp8/ufDToSxLzR4y+O/0H/t4bQtVNw=="
    date = "Thu, 27 Apr 2017 00:51:12 GMT"
    made = authorization(base64.b64decode(key), "GET", "dbs", "dbs/ToDoList", date)
    expected = "c09PEVJrgp2uQRkr934kFbTqhByc7TVr3OHyqlu%2bc%2bc%3d"
    assert made.lower() == f"type%3dmaster%26ver%3d1.0%26sig%3d{expected}".lower()


def unsnapped(data: bytes) -> bytes:
    """The format's literals, read as its description says."""
    size = shift = at = 0
    while True:
        size |= (data[at] & 0x7F) << shift
        shift, at = shift + 7, at + 1
        if data[at - 1] < 0x80:
            break
    made = b""
    while at < len(data):
        assert data[at] == 61 << 2
        (length,) = struct.unpack_from("<H", data, at + 1)
        made += data[at + 3 : at + 4 + length]
        at += 4 + length
    assert len(made) == size
    return made


@pytest.mark.parametrize("size", [0, 1, 60, 65_535, 65_536, 65_537, 200_000])
def test_blocks_hold_what_was_put_in(size: int) -> None:
    data = bytes(number % 251 for number in range(size))
    assert unsnapped(snappy(data)) == data


def test_numbers_of_variable_length() -> None:
    assert [varint(n) for n in (0, 127, 128, 300)] == [b"\0", b"\x7f", b"\x80\x01", b"\xac\x02"]


ROW = Row("step", {"workflow": "Shop", "step": "a, b=c"}, {"requests": 3}, {"requests": 9},
          {"p95_ms": 1.5})  # fmt: skip
POINTS = [Points({"run": "r", "test": "my test", "empty": ""}, 1_700_000_000.5, 1.0, 0.0, [ROW])]


def test_lines_of_influxdb() -> None:
    assert influx_lines(POINTS).decode() == (
        r"hyperscale_step,run=r,test=my\ test,workflow=Shop,step=a\,\ b\=c "
        "requests=3i,p95_ms=1.5 1700000000500000000"
    )


def test_lines_of_graphite() -> None:
    assert graphite_lines(POINTS, "load").decode().splitlines() == [
        "load.hyperscale.my_test.Shop.a_b_c.requests 3 1700000000",
        "load.hyperscale.my_test.Shop.a_b_c.p95_ms 1.5 1700000000",
    ]


@pytest.mark.parametrize(
    ("dialect", "line"),
    [
        ("statsd", "hyperscale.my_test.Shop.a_b_c.requests:3|c"),
        (
            "dogstatsd",
            "hyperscale.step.requests:3|c|#run:r,test:my_test,workflow:Shop,step:a_b_c",
        ),
        ("telegraf", "hyperscale.step.requests,run=r,test=my_test,workflow=Shop,step=a_b_c:3|c"),
    ],
)
def test_lines_of_statsd(dialect: str, line: str) -> None:
    assert next(iter(statsd_lines(POINTS, dialect))) == line
