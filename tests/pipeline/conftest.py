import pytest
import torch
import transformers
from span_pipes import TRAIN_DATA, make_examples, make_nlp, train


@pytest.fixture(autouse=True, scope="session")
def _one_thread():
    torch.set_num_threads(1)


@pytest.fixture(scope="module")
def trained():
    """A pipeline that knows the training data by heart; tests must not change it."""
    nlp = make_nlp()
    train(nlp, make_examples(nlp), steps=40)
    return nlp


@pytest.fixture(scope="session")
def tiny_bert(tmp_path_factory):
    """The directory of a BERT with random weights and a vocabulary of letters and words."""
    path = tmp_path_factory.mktemp("tiny_bert")
    words = sorted({word for text, _ in TRAIN_DATA for word in text.split()})
    letters = [chr(code) for code in range(33, 127)]
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *letters]
    pieces += [f"##{letter}" for letter in letters] + [w for w in words if len(w) > 1]
    (path / "vocab.txt").write_text("\n".join(pieces) + "\n", encoding="utf8")
    with torch.random.fork_rng():
        torch.manual_seed(0)
        config = transformers.BertConfig(
            vocab_size=len(pieces),
            hidden_size=32,
            num_hidden_layers=2,
            num_attention_heads=2,
            intermediate_size=64,
            max_position_embeddings=64,
        )
        transformers.BertModel(config).save_pretrained(path)
    tokenizer = transformers.BertTokenizerFast(str(path / "vocab.txt"), do_lower_case=False)
    tokenizer.save_pretrained(path)
    return path
