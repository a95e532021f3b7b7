import numpy as np
import pytest
import torch
from chain_enumeration import TAG_SET_IDS, TAG_SETS, enumerated_scores, random_crf

from spacy_robust_ner.tagging.predict import predict_segments


@pytest.mark.parametrize("tag_set", TAG_SETS, ids=TAG_SET_IDS)
@pytest.mark.parametrize("with_crf", [False, True])
def test_entities_of_the_best_sequence_with_their_probabilities(tag_set, with_crf):
    lengths = torch.tensor([4, 0, 3, 1, 4])
    n_found = 0
    for seed in range(3):
        crf = random_crf(tag_set, seed)
        if not with_crf:
            for parameter in crf.parameters():
                parameter.data.zero_()
        generator = torch.Generator().manual_seed(seed)
        emissions = 2 * torch.randn(12, len(tag_set), generator=generator, dtype=torch.float64)
        segments, probs = predict_segments(
            emissions, lengths, tag_set=tag_set, crf=crf if with_crf else None
        )
        found = list(zip(*(part.tolist() for part in segments), probs.tolist(), strict=True))
        wanted = []
        for doc, values in enumerate(emissions.split(lengths.tolist())):
            sequences, scores = enumerated_scores(crf, values)
            decoded = [
                set(
                    zip(
                        *(
                            part.tolist()
                            for part in tag_set.decode(np.array(s, dtype=int), np.array([len(s)]))[
                                1:
                            ]
                        ),
                        strict=True,
                    )
                )
                for s in sequences
            ]
            shares = scores.softmax(0).tolist()
            for start, end, label in sorted(decoded[int(scores.argmax())]):
                span = (start, end, label)
                if with_crf:
                    prob = sum(p for p, spans in zip(shares, decoded, strict=True) if span in spans)
                else:
                    tags = tag_set.encode([span], len(values))[start:end]
                    rows = values.softmax(1)[start:end]
                    prob = float(rows.gather(1, torch.from_numpy(tags).unsqueeze(1)).prod())
                wanted.append((doc, *span, pytest.approx(prob)))
        assert found == wanted
        n_found += len(found)
    assert n_found > 5


def test_nothing_to_predict():
    tag_set = TAG_SETS[0]
    for lengths in (torch.zeros(0, dtype=torch.long), torch.zeros(2, dtype=torch.long)):
        for crf in (None, random_crf(tag_set)):
            nothing = torch.zeros(0, len(tag_set))
            segments, probs = predict_segments(nothing, lengths, tag_set=tag_set, crf=crf)
            assert len(segments.docs) == len(probs) == 0


def test_a_sure_entity_has_probability_one():
    tag_set = TAG_SETS[1]
    emissions = torch.zeros(2, len(tag_set))
    emissions[[0, 1], tag_set.encode([(0, 2, 0)], 2)] = 100.0
    for crf in (None, random_crf(tag_set, dtype=torch.float32)):
        _, probs = predict_segments(emissions, torch.tensor([2]), tag_set=tag_set, crf=crf)
        assert probs.tolist() == [pytest.approx(1.0)]
        assert probs[0] <= 1.0
