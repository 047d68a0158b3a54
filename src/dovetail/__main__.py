"""``python -m dovetail``: the command line."""

from dovetail.cli import main

if __name__ == "__main__":
    main()
