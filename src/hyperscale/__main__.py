"""`python -m hyperscale` is the `hyperscale` program."""

from hyperscale.cli import main

if __name__ == "__main__":
    main()
