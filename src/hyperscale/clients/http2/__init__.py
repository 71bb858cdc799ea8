"""HTTP/2: many requests at the same time on a connection, over TLS or with prior knowledge."""
