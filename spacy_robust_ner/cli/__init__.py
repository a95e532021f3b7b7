"""Command line: ``spacy-robust-ner …`` and ``python -m spacy robust-ner …``."""

from ._app import app

__all__ = ["app", "main"]


def main() -> None:
    """Run the command line."""
    app(prog_name="spacy-robust-ner")
