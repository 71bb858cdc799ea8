"""Who serves whom: rendezvous ranking and random choices."""
