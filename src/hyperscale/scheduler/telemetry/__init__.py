"""How the scheduler is: numbers, findings, and the words its logs share."""
