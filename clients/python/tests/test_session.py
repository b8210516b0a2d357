"""The protocol without a process."""

from __future__ import annotations

import json
from concurrent.futures import Future
from typing import Any

import pytest

from taskforce_sidecar import TaskforceError
from taskforce_sidecar._errors import lost
from taskforce_sidecar._session import Session, encode

from .runs import refusal


def asked(session: Session, method: str = "ping") -> Future[Any]:
    reply: Future[Any] = Future()
    session.request(method, {}, reply)
    return reply


def test_answers_cut_byte_by_byte_and_out_of_order() -> None:
    session = Session()
    first, second = asked(session), asked(session)
    stream = (
        '{"jsonrpc":"2.0","id":2,"result":{"text":"a\u2028b\u0085c"}}\r\n\n'
        '{"jsonrpc":"2.0","id":1,"result":null}\n'
    )
    for byte in stream.encode():
        session.receive(bytes([byte]))
    assert second.result(0) == {"text": "a\u2028b\u0085c"}
    assert first.result(0) is None


def test_separators_inside_strings_survive() -> None:
    frame = encode({"text": "a\u2028b\u2029c\u0085d\ne\x00"})
    assert frame.count(b"\n") == 1
    assert json.loads(frame) == {"text": "a\u2028b\u2029c\u0085d\ne\x00"}


@pytest.mark.parametrize("value", ["\ud800", float("nan"), object()])
def test_what_json_cannot_hold_is_not_sent(value: object) -> None:
    with pytest.raises((ValueError, TypeError)):
        Session().request("ping", {"value": value}, Future())


@pytest.mark.parametrize("line", [b"hello\n", b"[]\n", b"\xff\n", b"1\n"])
def test_what_is_not_protocol_is_a_fault(line: bytes) -> None:
    error = refusal(lambda: Session().receive(line))
    assert error.code == "E_SIDECAR_LOST"
    assert repr(line[:-1]) in error.message


def test_unknown_answers_and_notifications_are_ignored() -> None:
    session = Session()
    reply = asked(session)
    session.receive(b'{"jsonrpc":"2.0","id":7,"result":1}\n')
    session.receive(b'{"jsonrpc":"2.0","method":"other","params":{}}\n')
    session.receive(b'{"jsonrpc":"2.0","id":"1","result":1}\n')
    assert not reply.done()


ANONYMOUS = (
    b'{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"bad",'
    b'"data":{"code":"E_PARSE","retryable":false}}}\n'
)


def test_an_error_without_id_goes_to_the_only_request() -> None:
    session = Session()
    session.receive(ANONYMOUS)
    reply = asked(session)
    session.receive(ANONYMOUS)
    assert refusal(lambda: reply.result(0)).code == "E_PARSE"


def test_an_error_without_id_and_several_requests_is_a_fault() -> None:
    session = Session()
    asked(session)
    asked(session)
    assert refusal(lambda: session.receive(ANONYMOUS)).code == "E_SIDECAR_LOST"


def test_an_error_without_data_is_internal() -> None:
    session = Session()
    reply = asked(session)
    session.receive(b'{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"odd"}}\n')
    error = refusal(lambda: reply.result(0))
    assert (error.code, error.message, error.retryable) == ("E_INTERNAL", "odd", False)


def test_losing_fails_everyone_and_refuses_later_calls() -> None:
    session = Session()
    replies = [asked(session), asked(session)]
    session.lose(lost("gone"))
    errors = [reply.exception(0) for reply in replies]
    for error in errors:
        assert isinstance(error, TaskforceError)
        assert error.details.get("outcome") == "unknown"
    assert errors[0] is not errors[1]
    late = refusal(lambda: asked(session))
    assert late.details.get("outcome") == "not_executed"


def test_abandoning() -> None:
    session = Session()
    id, _ = session.request("ping", {}, Future())
    frame = session.abandon(id, sent=True)
    assert frame and json.loads(frame)["params"] == {"id": id}
    session.receive(b'{"jsonrpc":"2.0","id":1,"result":{}}\n')
    assert session.abandon(id, sent=True) is None
    id, _ = session.request("ping", {}, Future())
    assert session.abandon(id, sent=False) is None


def test_errors_can_be_copied_and_shown() -> None:
    error = TaskforceError("E_INPUT", "no")
    assert str(error) == "E_INPUT: no"
    assert error.details["code"] == "E_INPUT"
