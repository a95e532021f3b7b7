"""Makes the files that finished runs leave, with predictions as good as one wants."""

import json
import random

PEOPLE = ["Ada Lovelace", "Grace Hopper", "Alan", "Mary Ann Evans"]
PLACES = ["London", "New York", "Rio"]
FIRMS = ["Acme", "Blue Sky Ltd"]
FRAMES = [
    "{PER} met {PER} in {LOC} .",
    "{ORG} of {LOC} hires {PER} , who worked for {ORG} before .",
    "Nothing happened in {LOC} today .",
    "{PER} <b>left</b> {ORG} & went </script> home .",
]
NAMES = {"PER": PEOPLE, "LOC": PLACES, "ORG": FIRMS}


def make_document(rng):
    words, entities = [], []
    for piece in rng.choice(FRAMES).split(" "):
        label = piece.strip("{}")
        if label in NAMES:
            name = rng.choice(NAMES[label]).split(" ")
            entities.append([len(words), len(words) + len(name), label])
            words += name
        else:
            words.append(piece)
    return words, entities


def make_prediction(rng, split, *, recall, rate=0.0, scored=True):
    words, gold = make_document(rng)
    predicted = []
    for start, end, label in gold:
        draw = rng.random()
        if draw < recall:
            predicted.append([start, end, label])
        elif draw < recall + 0.05:
            predicted.append([start, end, "ORG" if label != "ORG" else "LOC"])
        elif draw < recall + 0.1 and end - start > 1:
            predicted.append([start, end - 1, label])
    free = [i for i in range(len(words)) if not any(s <= i < e for s, e, _ in gold + predicted)]
    if free and rng.random() < 0.15:
        place = rng.choice(free)
        predicted.append([place, place + 1, "PER"])
    scores = [round(rng.uniform(0.5, 1), 4) if scored else None for _ in predicted]
    return {
        "split": split,
        "words": words,
        "spaces": [True] * (len(words) - 1) + [False],
        "gold": gold,
        "masked": [] if split == "test" else [e for e in gold if rng.random() < rate],
        "predicted": [[*entity, score] for entity, score in zip(predicted, scores, strict=True)],
    }


def figures(predictions):
    """Test figures of predictions, counted one by one."""
    labels = sorted({e[2] for p in predictions for e in [*p["gold"], *p["predicted"]]})

    def score(label=None):
        right = gold = predicted = 0
        for p in predictions:
            true = {tuple(e) for e in p["gold"] if label in (None, e[2])}
            found = {tuple(e[:3]) for e in p["predicted"] if label in (None, e[2])}
            right, gold = right + len(true & found), gold + len(true)
            predicted += len(found)
        return {
            "precision": right / predicted if predicted else 0.0,
            "recall": right / gold if gold else 0.0,
            "f1": 2 * right / (gold + predicted) if gold + predicted else 0.0,
            "gold": gold,
            "predicted": predicted,
            "correct": right,
        }

    return {
        **score(),
        "per_label": {label: score(label) for label in labels},
        "documents": len(predictions),
        "tokens": sum(len(p["words"]) for p in predictions),
        "tokens_per_second": 1000.0,
    }


def write_run(output, predictions, *, history=(), **fields):
    """Write one run, and return its line of results.jsonl."""
    test = [p for p in predictions if p["split"] == "test"]
    masked = [(p, e) for p in predictions for e in p["masked"]]
    found = sum(tuple(e) in {tuple(f[:3]) for f in p["predicted"]} for p, e in masked)
    result = {
        "dataset": "made",
        "lang": "en",
        "mask_rate": 0.0,
        "mask_kind": "entity" if fields.get("mask_rate") else None,
        "method": "ner",
        "encoder": "cnn",
        "seed": 0,
        "overrides": {},
        "training_seconds": 12.5,
        "peak_bytes": 2**30,
        "threads": 1,
        "device": "cpu",
        "dev_f1": 0.5,
        "test": figures(test),
        "recovery": {"masked": len(masked), "recovered": found, "recovered_other_label": 0}
        if masked
        else None,
        "fingerprint": {"versions": {"spacy": "3.8"}},
        **fields,
    }
    result.setdefault("variant", result["method"])
    result.setdefault("title", result["variant"].upper())
    kind = result["mask_kind"]
    masking = f"{kind}-{result['mask_rate']:g}" if kind else "given"
    parts = (result["dataset"], masking, result["variant"], result["encoder"])
    result["cell"] = "--".join([*parts, f"seed{result['seed']}"])
    folder = output / result["cell"]
    folder.mkdir(parents=True)
    write_lines(folder / "predictions.jsonl", predictions)
    write_lines(folder / "history.jsonl", history)
    write_lines(output / "results.jsonl", [result], mode="a")
    return result


def write_lines(path, lines, mode="w"):
    with path.open(mode, encoding="utf8") as file:
        file.writelines(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)


def write_experiment(output, *, rates=(0.0, 0.5, 0.8), documents=150):
    """Write an experiment in which robust methods suffer less from masking."""
    methods = {"ner": 0.9, "span-all": 0.8, "span-ns": 0.3, "token-crf": 0.8, "token-ratio": 0.1}
    for rate in rates:
        for method, harm in methods.items():
            for seed in (0, 1):
                # The same texts in every run, whatever was found in them.
                recall = 0.9 * (1 - harm * rate) + 0.02 * seed
                rng = random.Random(f"{method}-{rate}-{seed}")
                predictions = []
                for split, count in (("test", documents), ("train", documents // 3)):
                    for i in range(count):
                        state = random.Random(f"{split}-{i}")
                        made = make_prediction(
                            state, split, recall=0.0, rate=rate, scored=method != "ner"
                        )
                        noise = make_prediction(random.Random(f"{split}-{i}"), split, recall=0.0)
                        assert noise["words"] == made["words"]
                        kept = [e for e in made["gold"] if rng.random() < recall]
                        scored = [
                            [*e, None if method == "ner" else round(rng.uniform(0.6, 1), 4)]
                            for e in kept
                        ]
                        taken = [e for e in made["predicted"] if not _overlap(e, kept)]
                        if method == "ner":
                            taken = [[*e[:3], None] for e in taken]
                        predictions.append({**made, "predicted": scored + taken})
                history = [
                    {
                        "epoch": epoch,
                        "step": 10 * (epoch + 1),
                        "score": recall * epoch / 5,
                        "losses": {},
                        "scores": {"ents_f": 100 * recall * epoch / 5},
                    }
                    for epoch in range(6)
                ]
                write_run(
                    output,
                    predictions,
                    history=history,
                    method=method,
                    mask_rate=rate,
                    seed=seed,
                    training_seconds=10.0 + 10 * harm,
                )
    return output


def _overlap(entity, others):
    return any(entity[0] < other[1] and other[0] < entity[1] for other in others)
