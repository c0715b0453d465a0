"""`python -m neuclust` is the `neuclust` command."""

from neuclust.cli import main

if __name__ == "__main__":
    main()
