"""Hugging Face directories: every supported family, element types, shards, and the modules of sentence-transformers; the
reference is PyTorch itself."""
import json
import re

import numpy
import torch

from architectures import VOCABULARY, tokens

SIZES = ((1, 7), (3, 12), (5, 5), (2, 31))
SMALL = dict(vocab_size=VOCABULARY, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64, max_position_embeddings=64)
FAMILIES = {
    "bert": ("BertModel", "BertConfig", {}, True),
    "roberta": ("RobertaModel", "RobertaConfig", {}, False),
    "xlm-roberta": ("XLMRobertaModel", "XLMRobertaConfig", {}, False),
    "camembert": ("CamembertModel", "CamembertConfig", {}, False),
    "distilbert": ("DistilBertModel", "DistilBertConfig", dict(dim=32, n_layers=2, n_heads=4, hidden_dim=64), False),
    "mpnet": ("MPNetModel", "MPNetConfig", {}, False),
    "electra": ("ElectraModel", "ElectraConfig", dict(embedding_size=16), True),
    "albert": ("AlbertModel", "AlbertConfig", dict(embedding_size=16), True),
}
STORED = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}
POOLINGS = ("mean", "cls", "max", "mean_sqrt_len", "lasttoken", "weightedmean")


def make_net(family):
    import transformers
    model, config, more, types = FAMILIES[family]
    torch.manual_seed(9)
    net = getattr(transformers, model)(getattr(transformers, config)(**{**SMALL, **more})).eval()
    with torch.no_grad():
        for p in net.parameters():
            p.mul_(4 if p.dim() > 1 else 1).add_(torch.randn_like(p) * 0.02)
    return net, types


def pool(hidden, mask, kind):
    m = mask.unsqueeze(-1).float()
    if kind == "cls":
        return hidden[:, 0]
    if kind == "max":
        return hidden.masked_fill(m == 0, -1e9).amax(1)
    if kind == "lasttoken":
        return hidden[torch.arange(len(hidden)), mask.sum(1) - 1]
    if kind == "weightedmean":
        m = m * torch.arange(1, hidden.shape[1] + 1).view(1, -1, 1)
    total = (hidden * m).sum(1)
    return total / (m.sum(1).sqrt() if kind == "mean_sqrt_len" else m.sum(1)).clamp(min=1e-9)


def write_modules(folder, pooling, dense, normalise):
    """modules.json and its parts; returns the dense layer."""
    keys = {"mean": "mean_tokens", "cls": "cls_token", "max": "max_tokens", "mean_sqrt_len": "mean_sqrt_len_tokens", "lasttoken": "lasttoken",
            "weightedmean": "weightedmean_tokens"}
    kinds = [("", "Transformer"), ("1_Pooling", "Pooling")]
    (folder / "1_Pooling").mkdir(exist_ok=True)
    config = {"word_embedding_dimension": 32, **{f"pooling_mode_{v}": k == pooling for k, v in keys.items()}}
    (folder / "1_Pooling/config.json").write_text(json.dumps(config))
    layer = None
    if dense:
        from safetensors.torch import save_file
        layer = torch.nn.Linear(32, 12)
        place = folder / "2_Dense"
        place.mkdir(exist_ok=True)
        (place / "config.json").write_text(json.dumps({"in_features": 32, "out_features": 12, "bias": True,
                                                       "activation_function": "torch.nn.modules.activation.Tanh"}))
        save_file({"linear.weight": layer.weight.detach().contiguous(), "linear.bias": layer.bias.detach()}, place / "model.safetensors")
        kinds.append(("2_Dense", "Dense"))
    if normalise:
        (folder / f"{len(kinds)}_Normalize").mkdir(exist_ok=True)
        kinds.append((f"{len(kinds)}_Normalize", "Normalize"))
    (folder / "modules.json").write_text(json.dumps([
        {"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.models.{kind}"} for i, (path, kind) in enumerate(kinds)]))
    return layer


def write(folder, family, stored="f32", shards=False, pooling=None, dense=False, normalise=False):
    net, types = make_net(family)
    net = net.to(STORED[stored])
    net.save_pretrained(folder, **({"max_shard_size": "30KB"} if shards else {}))
    net = net.float()
    layer = write_modules(folder, pooling, dense, normalise) if pooling else None
    arrays, kept = {}, []
    make = tokens(types)
    for number, (b, s) in enumerate(SIZES):
        feeds = make(b, s, numpy.random.default_rng(50 + number))
        given = {k: torch.from_numpy(v) for k, v in feeds.items()}
        with torch.no_grad():
            answer = net(**given).last_hidden_state
            if pooling:
                answer = pool(answer, given["attention_mask"], pooling)
                answer = torch.tanh(layer(answer)) if layer else answer
                answer = torch.nn.functional.normalize(answer, dim=-1) if normalise else answer
        for k, v in feeds.items():
            arrays[f"{number}/in/{k}"] = v
        arrays[f"{number}/out/{'sentence_embedding' if pooling else 'last_hidden_state'}"] = answer.numpy()
        kept.append([number, b, s])
    numpy.savez(folder / "cases.npz", **arrays)
    (folder / "meta.json").write_text(json.dumps({"cases": kept, "seconds": 1e-3, "noise": 0}))


def recipes():
    for family in FAMILIES:
        yield f"{family}.directory-f32", dict(family=family)
        yield f"{family}.directory-bf16", dict(family=family, stored="bf16")
    yield "bert.directory-f16-sharded", dict(family="bert", stored="f16", shards=True)
    yield "mpnet.directory-sharded", dict(family="mpnet", shards=True)
    for pooling in POOLINGS:
        yield f"bert.sentence-{pooling}", dict(family="bert", pooling=pooling)
    yield "roberta.sentence-mean-normalise", dict(family="roberta", pooling="mean", normalise=True)
    yield "distilbert.sentence-mean-dense", dict(family="distilbert", pooling="mean", dense=True)
    yield "mpnet.sentence-cls-dense-normalise", dict(family="mpnet", pooling="cls", dense=True, normalise=True)


def make(folder, pattern, attempt):
    for name, recipe in recipes():
        if re.search(pattern, name):
            attempt(folder, name, lambda path: write(path.parent, **recipe), lambda place: None)
