"""Run the command `comity` as `python -m comity`."""

from comity.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
