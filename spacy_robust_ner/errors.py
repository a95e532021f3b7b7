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
        "There is no corpus at '{path}'. Give a .spacy file, or a directory that holds "
        ".spacy files."
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
        "The tag '{tag}' does not belong to the scheme '{scheme}'. Give the right one with "
        "--scheme ({known}), or the right column with --tag-column."
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
        "read, so --skip-bad does not help here: mend the file, or write a record a line (.jsonl)."
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
    R018 = "Nothing to convert: give an input as an argument, or with --complete or --incomplete."
    R019 = "The input '{path}' is given twice, with different statements about its completeness."
    R020 = "Can't make a blank pipeline for '{lang}' ({reason}). Give a language with --lang."
    R021 = (
        "The output '{path}' is also an input. Convert to another place: inputs are read while the "
        "output is written."
    )
    R022 = (
        "'{path}' is a directory, which the format '{format}' can't be: only .spacy files may come "
        "as a directory. Give the files in it."
    )
    R023 = "The shard size must be at least 1, not {value}."
    R040 = "{place}: the frame has {problem}. The syntax is described in spacy_robust_ner.sample."
    R041 = "Can't write the sample to '{path}': it is a file. Give the name of a directory."
    R060 = "The {name} probability must lie between 0 and 1, not {value}. For 80 percent, give 0.8."
    R061 = (
        "No entity of the corpus has the label {labels}, for which a masking probability was "
        "given. Labels of the corpus: {known}. Nothing was written."
    )
    R062 = "Masked tokens can't become '{value}'. Choose one of: {allowed}."
    R063 = (
        "The paths of {name} ('{path}') and {other_name} ('{other}') are the same or lie one in "
        "the other. Gold annotation could leak into training; give paths apart from each other."
    )
    R064 = "Can't read the label probability '{value}'. Write LABEL=PROBABILITY, as in PER=0.8."
    R065 = "Say what to mask: a probability with --probability, or one or more of --label LABEL=P."
    R066 = "Can't draw to '{path}': the file name must end in one of {known}."
    R110 = (
        "The model of the component has no weights yet. Call nlp.initialize(), or load a trained "
        "pipeline."
    )
    R111 = (
        "The loss {loss} estimates a risk over all unlabeled spans, which needs a fair sample of "
        "them; {sampler} chooses by the model's scores. Use the sampler All, Uniform or Fraction."
    )
    R112 = (
        "{head} is no span head: it lacks prepare() and score(). See SpanHead in "
        "spacy_robust_ner.types."
    )
    R113 = (
        "The loss {loss} needs the confidence of a first stage. Set the component's 'confidence' "
        "to a block such as spacy_robust_ner.PipelineConfidence.v1."
    )
    R114 = (
        "There are no labels for '{name}'. Give them with 'labels' under [initialize.components."
        "{name}], or check that the training data have entities: {count} examples were read."
    )
    R140 = (
        "Retrieval mixes the probabilities of independent spans; with the loss {loss} spans "
        "compete. Set retrieval to null, or use another loss."
    )
    R141 = (
        "Conf-MPU needs a first-stage pipeline, and its path is not set. Train one, for instance "
        "with the method span-ns, and give it as --paths.first_stage training/model-best."
    )
    R115 = (
        "'{name}' would write nothing: set annotate_ents to true, or spans_key to the name of a "
        "span group."
    )
    R116 = (
        "'{name}' has a retrieval block, but no centroids were fitted. Fit them with "
        "'spacy-robust-ner fit-centroids', or set retrieval to null."
    )
    R117 = "'{path}' holds no confidence for the text that starts with '{text}'."
    R118 = (
        "Line {line} of the confidence file '{path}' can't be used: {reason}. Each line is a JSON "
        'object with "tokens" and "spans", a list of [start, end, confidence].'
    )
    R119 = (
        "The pipeline '{path}' has no component that gives span probabilities. Train a first stage "
        "with robust_span_ner."
    )
    R120 = (
        "The label '{label}' can't be added to '{name}': its model has outputs for {labels}. Give "
        "all labels before nlp.initialize(), or initialize the component again."
    )
    R121 = (
        "There is no confidence file at '{path}'. It is needed in training only: give its path in "
        "the component's 'confidence' block, or set that block to null."
    )
    R122 = (
        "'{name}' can't be initialized without a token: none of the {count} training examples has "
        "any. Check the paths of the corpus."
    )
    R130 = (
        "The masked and the gold corpus differ at document {number}: {reason}. Both must hold the "
        "same documents in the same order, as 'spacy-robust-ner mask' writes them."
    )
    R131 = (
        "The pipeline '{path}' has no component robust_span_ner{wanted}. Its components: {known}."
    )
    R132 = (
        "The component '{name}' has no retrieval block, so it would not read centroids. Add one "
        "with --add, or train with a config that has it, such as the method scl-rai."
    )
    R133 = (
        "Can't read the sampler '{value}'. Write NAME, NAME=RATE or NAME=RATE,RATE with one of: "
        "{known}. The rate is negatives a token, or for some samplers a share of the candidates."
    )
    R134 = (
        "There is no pipeline or config at '{path}'. Give the directory of a pipeline, a "
        "package's name or a .cfg file."
    )
    R200 = "Unknown {kind} '{value}'. Known: {known}."
    R201 = "There is no experiment file at '{path}'."
    R202 = "The experiment file '{path}' can't be used: {reason}."
    R203 = (
        "There is no config at '{path}'. Write it with 'spacy-robust-ner init-config {path} "
        "--method {method} --encoder {encoder}', or set 'configs' in the experiment file."
    )
    R204 = "There are no finished runs in '{path}'. Run 'spacy-robust-ner experiment' first."
    R206 = (
        "The experiment overrides '{setting}' for {cell}, but its datasets and seeds decide about "
        "that. Take it out of the overrides."
    )
    R207 = (
        "The experiment overrides '{setting}' for {cell}, whose config has no such setting. Known "
        "there: {known}. Settings of single methods or encoders belong to their own 'overrides'."
    )
    R208 = "Another experiment runs in '{path}'. Wait for it, or give this one another directory."
    R209 = (
        "Can't read the GPUs '{value}'. Write different numbers with commas between them, as in "
        "0,1, or -1 for the CPU."
    )
    R221 = (
        "{path}, line {line}, can't be used: {reason}. Run 'spacy-robust-ner experiment' anew for "
        "this run."
    )
    R210 = (
        "Runs on a Ray cluster need ray. Install it on all machines with: pip install "
        "'spacy-robust-ner[ray]'."
    )
    R211 = (
        "The Ray cluster '{address}' has no {wanted} for a run. Start Ray with what there is, or "
        "change --threads and --gpu-ids."
    )
    R222 = (
        "No span of a training document is '{text}'. Write it as it stands there, in whole tokens, "
        "and no wider than the component's max_width."
    )
    R223 = (
        "The gold corpus '{path}' lacks the training document that starts with '{text}'. Give the "
        "corpus that the training data were made from, or leave the option away."
    )
    R224 = "The corpus has no entities whose vectors could be compared. Give an annotated corpus."
    R212 = "'{encoder}' names no encoder. Use one of {known}, or the name or path of a transformer."
    R205 = "Plots need matplotlib. Install it with: pip install 'spacy-robust-ner[plots]'."
    R080 = "There is no dictionary at '{path}'. Give PATH or LABEL=PATH of a file or a directory."
    R081 = "{path}, line {line}: {reason} Mend the dictionary, or leave it out with --skip-bad."
    R082 = (
        "The dictionaries leave nothing to match ({reason}). Check the files, and loosen "
        "--exclude, --min-length or --ambiguous."
    )
    R083 = "Unknown value '{value}' for {option}. Known: {known}."
    R084 = (
        "The gold corpus and the input differ at document {number}: {reason}. Both must hold the "
        "same documents in the same order."
    )
    R085 = (
        "The input has no annotated document to evaluate against. Give the annotation as a "
        "separate corpus with --gold, or leave --evaluate away."
    )
    R086 = "{option} must be at least {minimum}, not {value}."
    R087 = "There is no file at '{path}'. Give a text file, for --exclude with one word a line."
    R088 = "{path}, line {line}: {reason} Save the file as UTF-8."
    R089 = (
        "Nothing to do: give --output for the annotated corpus, or --evaluate or --gold to measure."
    )
    R090 = "Give either --evaluate or --gold: there can be only one gold annotation."
    R100 = (
        "max_width = {max_width} leaves no candidate spans. Set it to the widest entity you want "
        "to find, or to null for all spans."
    )
    R101 = (
        "The span of tokens {start} to {end} (end exclusive) does not lie in document {doc} of the "
        "batch. Give token positions counted in the document, and a document of the batch."
    )
    R102 = (
        "A budget of {budget} candidates a chunk can't hold a single span. Set it to at least 1; "
        "some ten thousands are fast."
    )
    R103 = "The setting '{name}' is {value}, but it has to be {wanted}. Change it in the config."
    R104 = (
        "The {part} needs '{value}', which was not given. Pass it, or choose a part that does "
        "without."
    )
    R105 = "The setting '{name}' is '{value}'. Set it to one of: {choices}."
    R106 = (
        "There are {n_priors} class priors for {n_labels} labels. Give one number for each label, "
        "in the order of the labels, 'no entity' included (its number is not read)."
    )
    R107 = (
        "The class priors {priors} are not shares of the candidate spans: each has to be at least "
        "0, and their sum below 1. Count the entities of each type that you expect, and divide by "
        "the number of candidate spans."
    )
    R108 = (
        "The centroids are {found}, but the model has {wanted}. They belong to another model: fit "
        "them anew with this one."
    )
    R150 = "Unknown tag scheme '{scheme}' for a token model. Set it to one of: {known}."
    R151 = (
        "The label '{label}' is the name of the extra type for spans that are no entities. Rename "
        "the label in the corpus, or switch the sampling of such spans off."
    )
    R152 = (
        "A head for {n_tags} tag(s) has nothing to decide. Give the component at least one label "
        "before the model is built."
    )
    R153 = (
        "No tag sequence that the scheme '{scheme}' allows agrees with what is known about "
        "document {doc} of the batch. Look for tags in a wrong order, or for allowed tag sets that "
        "leave a token nothing."
    )
    R154 = "Line {line} of the removed tokens can't be read: {reason}. Select them anew."
    R155 = (
        "The spans {first} and {second} of the dictionary matches overlap. Resolve overlaps first; "
        "a span that may have several labels is given once, with all of them."
    )
    R156 = (
        "The class priors {priors} are not shares of the tokens: each has to be at least 0, and "
        "their sum below 1. Estimate how many tokens are in entities of each label, and divide by "
        "the number of all tokens."
    )
    R157 = "There is no class prior for {labels}. Give one for each label in the setting 'priors'."
    R180 = (
        "The loss {loss} is one of tag sequences and needs a CRF. Set 'crf = true' in the "
        "component's model, or choose another loss."
    )
    R181 = (
        "The loss {loss} looks at each token alone and would leave the model's CRF untrained. Set "
        "'crf = false' in the component's model, or choose a loss with CRF."
    )
    R182 = (
        "'{name}' trains a model in advance, and needs the pipeline for it. Call nlp.initialize() "
        "instead of the component's own initialize(), or pass it 'nlp'."
    )
    R183 = (
        "'{name}' trains a model in advance on the whole training corpus, but with max_epochs = -1 "
        "the corpus is a stream of which it sees the beginning. Set max_epochs to 0 or more, or "
        "take the steps one by one with 'spacy-robust-ner select'."
    )
    R184 = (
        "There is no list of removed tokens at '{path}'. Write one with 'spacy-robust-ner select', "
        "or set 'read_from' in the block 'two_step' to null."
    )
    R185 = (
        "The list of removed tokens '{path}' names no document of the training corpus. It belongs "
        "to other data: select the tokens anew, with the corpus and the reader of the training."
    )
    R186 = (
        "The file of tag weights does not know the text that starts with '{text}'. Write it anew "
        "for this corpus, with 'write_to' in a CrossFitting block."
    )
    R187 = (
        "There is no file with tag weights at '{path}'. Write it with 'write_to' in a CrossFitting "
        "block, or use that block itself as 'completion'."
    )
    R188 = (
        "Line {line} of the tag weights '{path}' can't be used: {reason}. Each line is a JSON "
        'object with "tokens" and "q", an object of tags and probabilities for each token.'
    )
    R189 = (
        "'{name}' shall remove as many O tokens as there seem to be unlabeled entity tokens, but "
        "was initialized without an estimate of them. Give the share: 'share' in the block "
        "'two_step', or --share."
    )
    R190 = (
        "Cross-fitting with {folds} folds needs at least as many documents, and there are {count}. "
        "Lower 'folds', or check the paths of the corpus."
    )
    R191 = (
        "The weights of cross-fitting are not saved with the pipeline. To go on with its training, "
        "write them to a file with 'write_to', and use FileCompletion with that file."
    )
    R192 = (
        "Cross-fitting has seen no text that starts with '{text}'. Train on the corpus that the "
        "component was initialized with, and without augmentation of its words."
    )
    R193 = (
        "The pipeline '{path}' has no component robust_token_tagger{wanted}. Its components: "
        "{known}."
    )
    R194 = (
        "There is nothing to detect: among the tokens of '{masked}' that are marked O and may hide "
        "entities there must be some that '{gold}' has in entities, and others. Give a corpus as "
        "'spacy-robust-ner mask' writes it, with its gold corpus."
    )


class Warnings(metaclass=_WithCode):
    W001 = (
        "{count} documents or sentences of '{path}' were left out because they have at least "
        "max_length = {max_length} tokens and no sentence boundaries inside. Raise max_length, set "
        "it to 0 for no limit, or add boundaries."
    )
    W100 = (
        "{count} of {total} labeled entities ({share:.1%}) are wider than max_width = {max_width} "
        "tokens and can be neither learned nor found by '{name}'. Raise max_width in its model."
    )
    W102 = (
        "The loss {loss} learns what is no entity from negatives, and with rate = 0 the sampler "
        "draws none: there are only those of complete documents and rejected spans. Set "
        "sampler.rate above 0 (Li et al. use 0.35), use another sampler, or the loss "
        "spacy_robust_ner.SegmentationLikelihood.v1, which needs none."
    )
    W101 = (
        "'{name}' can't estimate how many entities to expect: no string is labeled twice in "
        "the training data. It takes the ratio of labeled ones, {ratio:.4f}, which is too low if "
        "labels are missing. Set 'ratio' in its ratio block to a number."
    )
    W103 = (
        "'{name}' writes its entities to doc.spans['{key}'] alone, and the score weights are those "
        "of doc.ents, which will be 0: `spacy train` could not tell which checkpoint is best. Add "
        "spans_{key}_f = 1.0 to [training.score_weights], and set ents_f to null."
    )
    W104 = (
        "'{name}' leaves {count} labels as they are that have an unlabeled capitalized word beside "
        "them: most capitalized words of the training data are in no entity, as in languages that "
        "capitalize all nouns, so that these labels need not be parts of longer names. Set "
        "withdraw_fragments = false to say so yourself."
    )
    W105 = (
        "No training document of '{name}' has the span group '{key}' or a missing tag: its fuzzy "
        "CRF takes every token outside of a match for O, as an ordinary CRF does. Add the group "
        "with `python -m spacy robust-ner phrases`, name another one in loss.phrases_key, or set "
        "it to null to say that there are no phrases."
    )
    W200 = (
        "'{path}' can't be locked ({reason}). Take care that no other experiment runs there at the "
        "same time."
    )
