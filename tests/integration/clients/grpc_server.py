"""A real gRPC server of grpcio, in threads of its own."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent import futures
from contextlib import contextmanager
from typing import Any

import grpc
from grpc_reflection.v1alpha import reflection

PROTO = """
syntax = "proto3";
package shop;
import "google/protobuf/timestamp.proto";
message Order { string item = 1; int32 amount = 2; google.protobuf.Timestamp at = 3; }
message Bill { string text = 1; int64 cents = 2; }
service Shop {
  rpc Buy(Order) returns (Bill);
  rpc Watch(Order) returns (stream Bill);
  rpc Load(stream Order) returns (Bill);
  rpc Talk(stream Order) returns (stream Bill);
}
"""


class Counts:
    def __init__(self) -> None:
        self.calls = 0
        self.metadata: dict[str, Any] = {}
        self.left_ms = 0.0
        self.port = 0


def _handlers(order: Any, bill: Any, counts: Counts) -> grpc.GenericRpcHandler:
    def seen(context: grpc.ServicerContext) -> None:
        counts.calls += 1
        counts.metadata = dict(context.invocation_metadata())
        counts.left_ms = context.time_remaining() * 1000

    def buy(asked: Any, context: grpc.ServicerContext) -> Any:
        seen(context)
        match asked.item:
            case "nothing":
                context.abort(grpc.StatusCode.NOT_FOUND, "no such thing: ☕")
            case "slow":
                time.sleep(asked.amount / 1000)
            case "zip":
                context.set_compression(grpc.Compression.Gzip)
            case "big":
                return bill(text="x" * asked.amount)
        context.send_initial_metadata((("shop-id", "7"),))
        context.set_trailing_metadata((("cost", "low"), ("raw-bin", b"\0\1")))
        return bill(text=f"{asked.amount} {asked.item}" * (100 if asked.item == "zip" else 1))

    def watch(asked: Any, context: grpc.ServicerContext) -> Iterator[Any]:
        seen(context)
        for number in range(asked.amount):
            yield bill(cents=number, text="x" * 1000)

    def load(asked: Iterator[Any], context: grpc.ServicerContext) -> Any:
        seen(context)
        return bill(cents=sum(one.amount for one in asked))

    def talk(asked: Iterator[Any], context: grpc.ServicerContext) -> Iterator[Any]:
        seen(context)
        for one in asked:
            yield bill(text=one.item)

    read, write = order.FromString, lambda one: one.SerializeToString()
    return grpc.method_handlers_generic_handler(
        "shop.Shop",
        {
            "Buy": grpc.unary_unary_rpc_method_handler(buy, read, write),
            "Watch": grpc.unary_stream_rpc_method_handler(watch, read, write),
            "Load": grpc.stream_unary_rpc_method_handler(load, read, write),
            "Talk": grpc.stream_stream_rpc_method_handler(talk, read, write),
        },
    )


@contextmanager
def grpc_serving(pool: Any, *, reflects: bool = True) -> Iterator[Counts]:
    """`pool` describes the service of PROTO."""
    from google.protobuf.message_factory import GetMessageClass

    counts = Counts()
    order, bill = (
        GetMessageClass(pool.FindMessageTypeByName(f"shop.{n}")) for n in ("Order", "Bill")
    )
    server = grpc.server(futures.ThreadPoolExecutor(8))
    server.add_generic_rpc_handlers((_handlers(order, bill, counts),))
    if reflects:
        reflection.enable_server_reflection(["shop.Shop"], server, pool=pool)
    counts.port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield counts
    finally:
        server.stop(None).wait(5)
