"""`python -m commonplace.cli` is `commonplace`."""

from . import main

if __name__ == "__main__":
    main()
