"""Every message that a user can meet, under a stable code.

R0xx annotation, reading and converting · R06x masking and statistics · R08x dictionaries ·
R1xx span component · R15x token component · R2xx project and report · W… warnings.
"""


class _WithCode(type):
    def __getattribute__(cls, name: str) -> str:
        message: str = super().__getattribute__(name)
        return message if name.startswith("__") else f"[{name}] {message}"


class Errors(metaclass=_WithCode):
    R001 = (
        "There is no corpus at '{path}'. Give a .spacy file, or a directory that holds .spacy files."
    )
    R002 = (
        "'{path}' is not a readable .spacy file ({reason}). Make it anew with "
        "'spacy-robust-ner convert', or check that it was copied as a binary file."
    )
    R003 = (
        "Can't write the corpus to '{path}': {reason}. Give the name of a .spacy file, or of a "
        "directory that is new or holds only shards written by this tool."
    )


class Warnings(metaclass=_WithCode):
    W001 = (
        "{count} documents of '{path}' were left out because they have at least max_length = "
        "{max_length} tokens and no sentence boundaries. Set max_length to 0, or add boundaries."
    )
