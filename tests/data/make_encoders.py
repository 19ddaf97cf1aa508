#!/usr/bin/env python3
"""Writes tests/data/hugging_face/* of the newer architectures: tiny random encoders as transformers
saves them, chains of sentence-transformers' modules, and expected.safetensors with inputs ("in.NAME")
and the answers of PyTorch in FP32 ("out.NAME").
Needs torch, transformers, sentence-transformers and safetensors from PyPI.
Usage: make_encoders.py [NAME...]"""
import json
import pathlib
import shutil
import sys
import zlib

import torch
import transformers as T
from safetensors.torch import save_file
from sentence_transformers.base.modules.dense import Dense
from sentence_transformers.sentence_transformer.modules.layer_norm import LayerNorm
from sentence_transformers.sentence_transformer.modules.pooling import Pooling

here = pathlib.Path(__file__).parent / "hugging_face"
sizes = dict(vocab_size=24, hidden_size=16, num_hidden_layers=2, num_attention_heads=2,
             intermediate_size=20, max_position_embeddings=64)
special = dict(pad_token_id=0, bos_token_id=1, eos_token_id=2, cls_token_id=1, sep_token_id=2)


def randomise(model, name):
    torch.manual_seed(zlib.crc32(name.encode()))
    model.eval()
    with torch.no_grad():
        for key, p in model.named_parameters():
            p.normal_(0, 0.4)
            if "norm" in key.lower() and "weight" in key:
                p.add_(1)
            if name.endswith("_sharded"):
                p.copy_(p.bfloat16())
    return model


def make_inputs(length, types=0):
    ids = torch.randint(3, 24, (3, length))
    mask = torch.ones_like(ids)
    mask[1, length - 4:] = 0
    mask[2, 2:] = 0
    ids = torch.where(mask == 1, ids, 0)
    inputs = {"input_ids": ids, "attention_mask": mask}
    if types > 1:
        inputs["token_type_ids"] = torch.randint(0, types, ids.shape)
    return inputs


def save(name, model, inputs, outputs):
    folder = here / name
    shutil.rmtree(folder, ignore_errors=True)
    is_sharded = name.endswith("_sharded")
    if is_sharded:  # in bfloat16, which randomise() has rounded to
        model = model.bfloat16()
    model.save_pretrained(folder, save_original_format=not name.endswith("_own"),
                          max_shard_size="6KB" if is_sharded else "1GB")
    (folder / "generation_config.json").unlink(missing_ok=True)
    write_expected(folder, inputs, outputs)
    return folder


def write_expected(folder, inputs, outputs):
    save_file({**{"in." + k: v.contiguous() for k, v in inputs.items()},
               **{"out." + k: v.contiguous() for k, v in outputs.items()}}, folder / "expected.safetensors")


def hidden_states(name, model, length=24, types=0):
    model = randomise(model, name)
    inputs = make_inputs(length, types)
    with torch.no_grad():
        hidden = model(**inputs).last_hidden_state
    save(name, model, inputs, {"last_hidden_state": hidden * inputs["attention_mask"][..., None]})


def classes(name, model, length=24):
    model = randomise(model, name)
    inputs = make_inputs(length)
    with torch.no_grad():
        logits = model(**inputs).logits
    save(name, model, inputs, {"logits": logits})


def modern_bert(name, make=T.ModernBertModel, **more):
    settings = {**sizes, **special, "num_hidden_layers": 4, "local_attention": 8, **more}
    model = make(T.ModernBertConfig(**settings))
    (hidden_states if make is T.ModernBertModel else classes)(name, model)


def decoder(name, kind, **more):
    settings = {**sizes, "num_attention_heads": 4, "num_key_value_heads": 2, "pad_token_id": 0, **more}
    make_config, make = getattr(T, kind + "Config"), getattr(T, kind + "Model")
    hidden_states(name, make(make_config(**settings)))


def nomic_bert(name):
    """Saved with the names of the first checkpoints, config.json included (nomic-embed-text)."""
    config = T.NomicBertConfig(**sizes, type_vocab_size=2)
    hidden_states(name, T.NomicBertModel(config), types=2)
    (here / name / "config.json").write_text(json.dumps(dict(
        model_type="nomic_bert", architectures=["NomicBertModel"], activation_function="swiglu", causal=False,
        layer_norm_epsilon=config.layer_norm_eps, n_embd=16, n_head=2, n_inner=20, n_layer=2, n_positions=64,
        parallel_block=False, prenorm=False, rotary_emb_base=1000, rotary_emb_fraction=1.0,
        rotary_emb_interleaved=False, rotary_emb_scale_base=None, rotary_scaling_factor=None,
        scale_attn_weights=True, type_vocab_size=2, use_rms_norm=False, vocab_size=24), indent=1))


def gte_new(name):
    """As gte-base-en-v1.5: model_type "new", and rotations scaled by NTK (kexue.fm/archives/9706, equation 6)."""
    model = T.GteModel(T.GteConfig(**sizes, type_vocab_size=2, rope_parameters=dict(rope_theta=5000.0, rope_type="default")))
    exponents = torch.arange(0, 8, 2) / 8
    model.rotary_emb.inv_freq.copy_(1 / (5000.0 * 2) ** exponents / 2 ** (2 / 8))
    hidden_states(name, model, types=2)
    config = json.loads((here / name / "config.json").read_text())
    del config["rope_parameters"]
    config.update(model_type="new", rope_theta=5000.0, rope_scaling=dict(type="ntk", factor=2.0), pack_qkv=True,
                  layer_norm_type="layer_norm", position_embedding_type="rope", logn_attention_scale=False)
    (here / name / "config.json").write_text(json.dumps(config, indent=1))


def slopes(heads):
    """ALiBi's (arXiv 2108.12409, its code for numbers of heads that are no power of two)."""
    power = 2 ** (heads.bit_length() - 1)
    first = [2 ** (-8 / power * (i + 1)) for i in range(power)]
    return first if power == heads else first + slopes(2 * power)[0::2][:heads - power]


def jina_bert(name, heads, layers=2, hidden=24, wide=20, activation="gelu"):
    """JinaBERT from its description (arXiv 2310.19923): transformers has no code for it."""
    shapes = {"embeddings.word_embeddings.weight": (24, hidden), "embeddings.token_type_embeddings.weight": (2, hidden)}
    norms, matrices = ["embeddings.LayerNorm"], {}
    for i in range(layers):
        stem = f"encoder.layer.{i}."
        for part in ("attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense"):
            matrices[stem + part] = (hidden, hidden, True)
        matrices[stem + "mlp.gated_layers"] = (2 * wide, hidden, False)
        matrices[stem + "mlp.wo"] = (hidden, wide, True)
        norms += [stem + "attention.output.LayerNorm", stem + "mlp.layernorm"]
    for key, (out, into, has_bias) in matrices.items():
        shapes[key + ".weight"] = (out, into)
        if has_bias:
            shapes[key + ".bias"] = (out,)
    for key in norms:
        shapes[key + ".weight"] = shapes[key + ".bias"] = (hidden,)
    torch.manual_seed(zlib.crc32(name.encode()))
    w = {k: torch.randn(s) * 0.4 + ("orm.weight" in k) for k, s in shapes.items()}
    inputs = make_inputs(24, types=2)
    ids, mask = inputs["input_ids"], inputs["attention_mask"]
    rows, length = ids.shape
    linear = lambda x, key: torch.nn.functional.linear(x, w[key + ".weight"], w.get(key + ".bias"))
    norm = lambda x, key: torch.nn.functional.layer_norm(x, (hidden,), w[key + ".weight"], w[key + ".bias"], 1e-12)
    split = lambda x: x.view(rows, length, heads, -1).transpose(1, 2)
    at = torch.arange(length)
    bias = -torch.tensor(slopes(heads))[:, None, None] * (at[None] - at[:, None]).abs()
    bias = bias[None].masked_fill(mask[:, None, None] == 0, -1e30)
    x = w["embeddings.word_embeddings.weight"][ids] + w["embeddings.token_type_embeddings.weight"][inputs["token_type_ids"]]
    x = norm(x, "embeddings.LayerNorm")
    for i in range(layers):
        stem = f"encoder.layer.{i}."
        q, k, v = (split(linear(x, stem + "attention.self." + part)) for part in ("query", "key", "value"))
        weights = (q @ k.transpose(2, 3) / (hidden / heads) ** 0.5 + bias).softmax(-1)
        mixed = (weights @ v).transpose(1, 2).reshape(rows, length, hidden)
        x = norm(linear(mixed, stem + "attention.output.dense") + x, stem + "attention.output.LayerNorm")
        gate, up = linear(x, stem + "mlp.gated_layers").split(wide, -1)
        x = norm(linear(getattr(torch.nn.functional, activation)(gate) * up, stem + "mlp.wo") + x, stem + "mlp.layernorm")
    folder = here / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    save_file(w, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(dict(
        model_type="bert", architectures=["JinaBertForMaskedLM"], position_embedding_type="alibi",
        feed_forward_type={"gelu": "geglu", "relu": "reglu"}[activation], hidden_act="gelu", hidden_size=hidden,
        intermediate_size=wide, layer_norm_eps=1e-12, max_position_embeddings=64, num_attention_heads=heads,
        num_hidden_layers=layers, type_vocab_size=2, vocab_size=24), indent=1))
    write_expected(folder, inputs, {"last_hidden_state": x * mask[..., None]})


def albert(name, make=T.AlbertModel, **more):
    """Three layers with the same weights, or as `more` groups them; embeddings narrower than the layers."""
    model = randomise(make(T.AlbertConfig(**{**sizes, "num_hidden_layers": 3, "embedding_size": 6, **more})), name)
    inputs = make_inputs(24, types=2)
    with torch.no_grad():
        answer = model(**inputs)
    save(name, model, inputs, {"logits": answer.logits} if make is not T.AlbertModel else
         {"last_hidden_state": answer.last_hidden_state * inputs["attention_mask"][..., None],
          "pooler_output": answer.pooler_output})


def deberta(name, make=T.DebertaV2Model, **more):
    settings = {**sizes, "pad_token_id": 0, "relative_attention": True, "pos_att_type": ["p2c", "c2p"], **more}
    (hidden_states if make is T.DebertaV2Model else classes)(name, make(T.DebertaV2Config(**settings)), length=30)


def chain(name, modes, modules, flags=False, prompt=0):
    """A BERT with pooling and what stands behind it; `modules`: torch modules, or "Normalize"; `prompt`: tokens that
    pooling leaves out, which have a mask of 2."""
    bert = randomise(T.BertModel(T.BertConfig(**{**sizes, "num_hidden_layers": 1}), add_pooling_layer=False), name)
    inputs = make_inputs(9, types=2)
    with torch.no_grad():
        features = {"token_embeddings": bert(**inputs).last_hidden_state,
                    "attention_mask": inputs["attention_mask"], "prompt_length": prompt}
        pooling = Pooling(16, modes, include_prompt=prompt == 0)
        pooling(features)
        inputs["attention_mask"][:, :prompt] *= 2
        for m in modules:
            if m == "Normalize":
                x = features["sentence_embedding"]
                features["sentence_embedding"] = torch.nn.functional.normalize(x, dim=-1)
            else:
                randomise(m, name + str(modules.index(m)))(features)
    folder = save(name, bert, inputs, {"sentence_embedding": features["sentence_embedding"]})
    kinds = ["Transformer", "Pooling"] + [m if m == "Normalize" else type(m).__name__ for m in modules]
    listed = []
    for i, kind in enumerate(kinds):
        path = "" if i == 0 else f"{i}_{kind}"
        listed.append(dict(idx=i, name=str(i), path=path, type="sentence_transformers.models." + kind))
        if i == 1:
            (folder / path).mkdir()
            pooling.save(str(folder / path))
            if flags:  # as files before version 6 have it
                keys = {"mean": "mean_tokens", "max": "max_tokens", "cls": "cls_token",
                        "mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
                        "weightedmean": "weightedmean_tokens", "lasttoken": "lasttoken"}
                (folder / path / "config.json").write_text(json.dumps(
                    {"word_embedding_dimension": 16, "include_prompt": True,
                     **{"pooling_mode_" + v: k in modes for k, v in keys.items()}}, indent=1))
        elif i > 1 and kind != "Normalize":
            (folder / path).mkdir()
            modules[i - 2].save(str(folder / path))
    (folder / "modules.json").write_text(json.dumps(listed, indent=1))


nn = torch.nn
cases = {
    "chain_all_poolings": lambda: chain("chain_all_poolings", ("cls", "max", "mean", "mean_sqrt_len_tokens",
                                        "weightedmean", "lasttoken"), [], flags=True),
    "chain_prompt": lambda: chain("chain_prompt", ("cls", "max", "mean", "mean_sqrt_len_tokens", "weightedmean",
                                  "lasttoken"), [], prompt=1),
    "chain_last_dense": lambda: chain("chain_last_dense", "lasttoken", [
        Dense(16, 12, bias=False, activation_function=nn.Identity()), "Normalize"]),
    "chain_dense_norm": lambda: chain("chain_dense_norm", ("weightedmean", "mean"), [
        Dense(32, 12, activation_function=nn.GELU()), LayerNorm(12), "Normalize",
        Dense(12, 7, activation_function=nn.SiLU()), Dense(7, 5)]),
    "chain_norm_first": lambda: chain("chain_norm_first", "mean_sqrt_len_tokens", [
        "Normalize", LayerNorm(16), Dense(16, 9, activation_function=nn.Sigmoid())]),
    "modernbert": lambda: modern_bert("modernbert"),
    "modernbert_bias": lambda: modern_bert("modernbert_bias", norm_bias=True, attention_bias=True, mlp_bias=True,
                                           global_attn_every_n_layers=2, hidden_activation="gelu_pytorch_tanh"),
    "modernbert_classes": lambda: modern_bert("modernbert_classes", T.ModernBertForSequenceClassification,
                                              num_labels=3, classifier_pooling="mean", classifier_bias=True),
    "qwen3": lambda: decoder("qwen3", "Qwen3", head_dim=10, attention_bias=True),
    "qwen3_sharded": lambda: decoder("qwen3_sharded", "Qwen3", head_dim=8),
    "modernbert_bf16_sharded": lambda: modern_bert("modernbert_bf16_sharded"),
    "qwen3_classes": lambda: classes("qwen3_classes", T.Qwen3ForSequenceClassification(T.Qwen3Config(
        **sizes, num_key_value_heads=1, head_dim=8, num_labels=2, pad_token_id=0))),
    "qwen2_window": lambda: decoder("qwen2_window", "Qwen2", use_sliding_window=True, sliding_window=5,
                                    max_window_layers=1),
    "mistral": lambda: decoder("mistral", "Mistral", sliding_window=6),
    "llama": lambda: decoder("llama", "Llama", num_key_value_heads=4, rope_theta=500.0,
                             rope_scaling={"rope_type": "linear", "factor": 2.0}),
    "nomic_bert": lambda: nomic_bert("nomic_bert"),
    "nomic_bert_own": lambda: hidden_states("nomic_bert_own", T.NomicBertModel(T.NomicBertConfig(
        **sizes, type_vocab_size=2)), types=2),
    "gte_new": lambda: gte_new("gte_new"),
    "jina_bert": lambda: jina_bert("jina_bert", 6),
    "jina_bert_relu": lambda: jina_bert("jina_bert_relu", 4, activation="relu"),
    "albert": lambda: albert("albert"),
    "albert_groups": lambda: albert("albert_groups", num_hidden_groups=2, inner_group_num=2, hidden_act="gelu"),
    "albert_classes": lambda: albert("albert_classes", T.AlbertForSequenceClassification, num_labels=3),
    "deberta_v3": lambda: deberta("deberta_v3", position_buckets=8, share_att_key=True, norm_rel_ebd="layer_norm",
                                  position_biased_input=False, type_vocab_size=0),
    "deberta_v2": lambda: deberta("deberta_v2", pos_att_type="c2p|p2c", max_relative_positions=10),
    "deberta_classes": lambda: deberta("deberta_classes", T.DebertaV2ForSequenceClassification, num_labels=2,
                                       pos_att_type=["c2p"], position_buckets=8, share_att_key=True),
    "gte": lambda: hidden_states("gte", T.GteModel(T.GteConfig(**sizes, type_vocab_size=0))),
}

for name in sys.argv[1:] or cases:
    cases[name]()
