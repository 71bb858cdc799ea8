"""What DevTools tell of a page's network, as requests that were written to a socket."""

from __future__ import annotations

from typing import Any

import pytest

from hyperscale.clients.browser.exchanges import Exchanged, Exchanges, outcome_of
from hyperscale.clients.browser.vitals import Vitals
from hyperscale.workload.results import Outcome

TIMING = {
    "requestTime": 10.0,
    "dnsStart": 1.0,
    "dnsEnd": 3.0,
    "connectStart": 3.0,
    "connectEnd": 10.0,
    "sslStart": 5.0,
    "sslEnd": 9.0,
    "sendStart": 11.0,
    "sendEnd": 12.0,
    "receiveHeadersStart": 20.0,
    "receiveHeadersEnd": 21.0,
}
OLD = dict.fromkeys(TIMING, -1.0) | {
    "requestTime": 10.0,
    "sendStart": 0.5,
    "sendEnd": 0.6,
    "receiveHeadersEnd": 5.0,
}


class Page:
    def __init__(self) -> None:
        self.told: list[Exchanged] = []
        self.exchanges = Exchanges(self.told.append)
        self.exchanges._shift_s = 0.0

    def asks(self, number: str, url: str, kind: str = "Script", **more: Any) -> None:
        self.exchanges.will_be_sent(
            {
                "requestId": number,
                "frameId": more.pop("frame", "main"),
                "type": kind,
                "timestamp": 9.9,
                "request": {"method": "GET", "url": url, **more.pop("request", {})},
                **more,
            }
        )

    def writes(self, number: str) -> None:
        self.exchanges.was_sent({"requestId": number, "headers": {"Accept": "*/*"}})

    def gets(self, number: str, status: int = 200, **more: Any) -> None:
        response = {"status": status, "statusText": "Said", "timing": TIMING, **more}
        self.exchanges.answered({"requestId": number, "response": response})

    def ends(self, number: str, size: int = 100) -> None:
        self.exchanges.finished(
            {"requestId": number, "timestamp": 10.05, "encodedDataLength": size}
        )


def test_a_request_with_its_phases() -> None:
    page = Page()
    page.exchanges.main_name = "home"
    page.asks("1", "http://shop/?q=1", "Document", request={"method": "POST", "postData": "abc"})
    page.writes("1")
    page.gets("1")
    page.ends("1")
    (one,) = page.told
    assert (one.method, one.name, one.is_sent, one.status) == ("POST", "home", True, 200)
    assert (one.outcome, one.error, one.bytes_in) == (Outcome.OK, "", 100)
    assert one.bytes_out == len("POST / HTTP/1.1\r\n\r\n") - 2 + len("Accept: */*\r\n") + 3
    assert (one.started, one.sent) == pytest.approx((10.011, 10.012))
    assert (one.first_byte, one.ended) == pytest.approx((10.02, 10.05))
    assert one.connect is not None
    found = (one.connect.dns_s, one.connect.connect_s, one.connect.tls_s)
    assert found == pytest.approx((0.002, 0.003, 0.004))
    assert page.exchanges.under_way == 0


def test_names_are_those_of_http_and_of_others_with_their_host() -> None:
    page = Page()
    page.asks("1", "http://shop/", "Document")
    page.asks("2", "http://shop/items/17")
    page.asks("3", "https://cdn:8443/a/0123456789abcdef.js")
    page.asks("4", "http://ads/", "Document", frame="inner")
    page.asks("5", "http://shop/items")
    for number in "12345":
        page.gets(number, timing=OLD)
        page.ends(number)
    assert [one.name for one in page.told] == [
        *("/", "/items/{id}", "cdn:8443/a/{id}.js", "ads/", "/items")
    ]
    assert page.told[0].connect is None


def test_redirects_are_requests_each() -> None:
    page = Page()
    page.asks("1", "http://shop/old", "Document")
    page.writes("1")
    page.writes("1")  # this is told of the next one before that is
    redirect = {"status": 302, "timing": TIMING, "encodedDataLength": 7}
    page.asks("1", "http://shop/new", "Document", redirectResponse=redirect)
    page.gets("1", 404)
    page.ends("1")
    assert [(one.url, one.status, one.bytes_in) for one in page.told] == [
        ("http://shop/old", 302, 7),
        ("http://shop/new", 404, 100),
    ]
    assert [one.outcome for one in page.told] == [Outcome.OK, Outcome.STATUS]
    assert (page.told[1].error, page.exchanges.failed) == ("404 Said", 1)
    assert all(one.bytes_out for one in page.told)


def test_what_never_went_out_does_not_count() -> None:
    page = Page()
    page.asks("1", "http://shop/a.js")
    page.exchanges.of_cache({"requestId": "1"})
    page.gets("1")
    page.ends("1")
    page.asks("2", "http://shop/b.js")
    page.gets("2", fromDiskCache=True)
    page.ends("2")
    page.asks("3", "data:text/plain,hello")
    page.ends("3")
    page.asks("4", "http://shop/late.js")
    page.exchanges.broke({"requestId": "4", "timestamp": 10.1, "errorText": "net::ERR_ABORTED"})
    assert (page.told, page.exchanges.under_way) == ([], 0)


def test_that_there_is_no_favicon_is_no_failure() -> None:
    page = Page()
    page.asks("1", "http://shop/", "Document")
    page.gets("1")
    page.ends("1")
    page.asks("2", "http://shop/favicon.ico")
    page.gets("2", 404)
    page.ends("2")
    assert [(one.status, one.outcome) for one in page.told[1:]] == [(404, Outcome.OK)]


@pytest.mark.parametrize(
    ("error", "more", "sent"),
    [
        ("net::ERR_EMPTY_RESPONSE", {}, True),
        ("net::ERR_INVALID_HTTP_RESPONSE", {}, True),
        ("net::ERR_CONNECTION_REFUSED", {}, False),
        ("net::ERR_BLOCKED_BY_CSP", {"blockedReason": "csp"}, False),
    ],
)
def test_failures_tell_whether_there_was_a_request(
    error: str, more: dict[str, str], sent: bool
) -> None:
    page = Page()
    page.asks("1", "http://shop/")
    page.exchanges.broke({"requestId": "1", "timestamp": 10.1, "errorText": error, **more})
    page.writes("1")  # told too late
    (one,) = page.told
    assert (one.is_sent, bool(one.bytes_out)) == (sent, sent)
    assert page.exchanges.failed == 1


def test_what_is_under_way_when_the_page_is_left() -> None:
    page = Page()
    page.asks("1", "http://shop/slow")
    page.writes("1")
    page.asks("2", "http://shop/not-yet")
    page.exchanges.cut(Outcome.CANCELLED, "left")
    assert [(one.url, one.outcome) for one in page.told] == [
        ("http://shop/slow", Outcome.CANCELLED)
    ]
    page.ends("1")
    assert len(page.told) == 1, "its end comes too late"


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        ("net::ERR_NAME_NOT_RESOLVED", Outcome.DNS),
        ("net::ERR_CONNECTION_REFUSED", Outcome.REFUSED),
        ("net::ERR_EMPTY_RESPONSE", Outcome.RESET),
        ("net::ERR_CERT_AUTHORITY_INVALID", Outcome.TLS),
        ("net::ERR_SSL_PROTOCOL_ERROR", Outcome.TLS),
        ("net::ERR_CONNECTION_TIMED_OUT", Outcome.TIMEOUT),
        ("net::ERR_ABORTED", Outcome.CANCELLED),
        ("net::ERR_INVALID_HTTP_RESPONSE", Outcome.PROTOCOL),
        ("csp", Outcome.PROTOCOL),
    ],
)
def test_errors_of_chromium(error: str, outcome: Outcome) -> None:
    assert outcome_of(error) is outcome


def test_the_last_word_of_a_page_is_its_vital() -> None:
    seen: list[tuple[str, float]] = []
    vitals = Vitals()

    def measure(name: str, value: float) -> None:
        seen.append((name, value))

    for page, name, value in (
        ("a", "lcp", 100),
        ("a", "lcp", 250.5),
        ("a", "cls", 0),
        ("a", "price", 3),
        ("a", "inp", "many"),
        ("b", "lcp", 40),
    ):
        vitals.told({"page": page, "name": name, "value": value}, measure)
    assert seen == [("browser_web_vital_lcp", 250.5), ("browser_web_vital_cls", 0.0)]
    vitals.end()
    vitals.end()
    assert seen[2:] == [("browser_web_vital_lcp", 40.0)]
