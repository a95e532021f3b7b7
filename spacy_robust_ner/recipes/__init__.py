"""Complete training configs, made from one block an encoder and one block a method.

``make_config("ner", "cnn")`` is what ``spacy-robust-ner init-config`` writes and what lies under
``configs/``: the same encoder, optimizer and batches for every method, so that runs compare.
"""

from .catalogue import ENCODERS, METHODS, Encoder, Method
from .compose import config_text, make_config

__all__ = ["ENCODERS", "METHODS", "Encoder", "Method", "config_text", "make_config"]
