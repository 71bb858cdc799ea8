"""The manager: takes jobs, gives them to workers, and does not forget them."""
