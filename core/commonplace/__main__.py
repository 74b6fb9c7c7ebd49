"""`python -m commonplace` is the command `commonplace`."""

from .cli import main

if __name__ == "__main__":
    main()
