"""`python -m neuclust.serve.learner`: the child of a service, which gives the store's address on standard input."""

import sys

from neuclust.serve.learner.lease import SECONDS
from neuclust.serve.learner.process import child_main

if __name__ == "__main__":
    child_main(sys.stdin, float(sys.argv[1]) if len(sys.argv) > 1 else SECONDS)
