"""gRPC on our own HTTP/2: one call or a stream of them, with messages of protobuf."""
