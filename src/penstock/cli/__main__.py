"""``python -m penstock.cli`` runs the ``penstock`` command."""

from penstock.cli.main import main

if __name__ == "__main__":
    raise SystemExit(main())
