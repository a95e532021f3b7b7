"""Loaded by spaCy's command line through the ``spacy_cli`` entry point: joins our commands to it
as ``python -m spacy robust-ner``."""

from spacy.cli._util import app as spacy_app

from . import app

spacy_app.add_typer(app, name="robust-ner")
