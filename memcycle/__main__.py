"""`python -m memcycle`."""

from memcycle.cli import main

if __name__ == "__main__":
    main()
