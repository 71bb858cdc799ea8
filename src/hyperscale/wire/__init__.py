"""Messages between nodes: frames, kinds, requests and answers, handshake, certificates, datagrams.

A node holds one `Endpoint`, listens with a `Server` and calls others through a `Peer`; UDP goes
through `sealed`. Everything a stranger can send ends in a typed refusal or a count.
"""
