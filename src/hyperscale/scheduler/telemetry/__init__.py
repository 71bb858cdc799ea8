"""How the scheduler is: numbers, findings, and the words its logs share (S-85 to S-91)."""
