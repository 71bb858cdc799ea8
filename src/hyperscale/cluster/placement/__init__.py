"""Who serves whom: rings, rendezvous ranking, random choices and sticky pools of peers."""
