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
    R004 = (
        "The tag '{tag}' does not belong to the scheme '{scheme}'. Give the right one with --scheme "
        "({known}), or the right column with --tag-column."
    )
    R005 = "Unknown tag scheme '{scheme}'. Known: {known}."
    R006 = (
        "The tag '{tag}' has no prefix such as B- or I-. If every tag is a bare label, use "
        "--scheme io; if it is not a tag at all, choose the column with --tag-column."
    )
    R007 = (
        "The tags have the prefixes {prefixes}, which no known scheme has together ({known}). "
        "Look for a wrong --tag-column, or for parts in different schemes and convert them apart."
    )
    R008 = "{path}, line {line}: {reason} Mend it, or leave it out with --skip-bad."
    R009 = (
        "{path}, line {line}: the JSON is malformed ({reason}). Nothing after this place can be "
        "read, so --skip-bad does not help here: mend the file, or write one record a line (.jsonl)."
    )
    R010 = (
        "The format of '{path}' can't be told from its content ({reason}). Give it with --format: "
        "{known}."
    )
    R011 = "Unknown format '{format}'. Known: auto, {known}."
    R012 = (
        "'{path}' has tags as numbers, and there is no list of what they mean. Give it with "
        "--tag-map (JSON of tag and number, a JSON list, or a text file with a tag a line), or put "
        "it beside the input as {names}."
    )
    R013 = "The tag map '{path}' can't be used: {reason}."
    R014 = (
        "'{path}' has no -DOCSTART- lines, so --docs docstart would make a single document of it. "
        "Use --docs sentence."
    )
    R015 = (
        "{path}, line {line}: the span {text!r} ({label}) does not begin and end with a token. "
        "Choose another tokenization with --lang, or what to do with --misaligned "
        "(missing, expand, contract)."
    )
    R016 = "Unknown value '{value}' for {option}. Known: {known}."
    R017 = "There is no file at '{path}' to convert."
    R018 = "Nothing to convert: give at least one input, as an argument or with --complete/--incomplete."
    R019 = "The input '{path}' is given twice, with different statements about its completeness."
    R020 = "Can't make a blank pipeline for the language '{lang}' ({reason}). Give a code with --lang."
    R021 = (
        "The output '{path}' is also an input. Convert to another place: inputs are read while the "
        "output is written."
    )
    R022 = "{path}: {reason}"
    R023 = "The shard size must be at least 1, not {value}."
    R200 = "Unknown {kind} '{value}'. Known: {known}."
    R201 = "There is no experiment file at '{path}'."
    R202 = "The experiment file '{path}' can't be used: {reason}."
    R203 = (
        "There is no config at '{path}'. Write it with 'spacy-robust-ner init-config {path} "
        "--method {method} --encoder {encoder}', or set 'configs' in the experiment file."
    )
    R204 = "There are no finished runs in '{path}'. Run 'spacy-robust-ner experiment' first."
    R205 = "Plots need matplotlib. Install it with: pip install 'spacy-robust-ner[plots]'."


class Warnings(metaclass=_WithCode):
    W001 = (
        "{count} documents of '{path}' were left out because they have at least max_length = "
        "{max_length} tokens and no sentence boundaries. Set max_length to 0, or add boundaries."
    )
