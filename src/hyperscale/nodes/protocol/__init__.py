"""What clients, managers and workers say to each other, one module per conversation."""
