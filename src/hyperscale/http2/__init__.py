"""HTTP/2 without any I/O (RFC 9113 and RFC 7541): the client and the embedded target speak it.

`hpack` turns fields into blocks and back, `frames` says what the bytes of a frame are, `stream`
holds the states of a stream, and `session` is one side of a connection: bytes in, calls of the
streams and bytes out.
"""
