"""`python -m comity`: the same as `comity`."""

from comity.authoring.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
