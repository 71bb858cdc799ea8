"""HTTP/3: many requests at the same time on a connection of QUIC."""

from hyperscale.clients.extras import library

library("aioquic", "http3")
