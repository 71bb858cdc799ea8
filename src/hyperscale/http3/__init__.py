"""HTTP/3 as a session of streams, over QUIC of `aioquic`: what client and embedded target share."""
