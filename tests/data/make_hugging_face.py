#!/usr/bin/env python3
"""Writes tests/data/hugging_face/*: one tiny random encoder of each family as transformers saves it,
and expected.safetensors with inputs ("in.NAME") and the answers of PyTorch ("out.NAME").
Needs torch, transformers and safetensors from PyPI. Usage: make_hugging_face.py"""
import json
import os
import pathlib
import shutil

import torch
import transformers as T
from safetensors.torch import save_file

here = pathlib.Path(__file__).parent / "hugging_face"
sizes = dict(vocab_size=24, hidden_size=8, num_hidden_layers=2, num_attention_heads=2,
             intermediate_size=12, max_position_embeddings=20)
distil = dict(vocab_size=24, dim=8, n_layers=2, n_heads=2, hidden_dim=12, max_position_embeddings=20)
cases = {
    "bert": T.BertModel(T.BertConfig(**sizes, hidden_act="gelu_new")),
    "bert_classes": T.BertForSequenceClassification(T.BertConfig(**sizes, num_labels=3)),
    "roberta_classes": T.RobertaForSequenceClassification(
        T.RobertaConfig(**sizes, type_vocab_size=1, num_labels=3, hidden_act="relu")),
    "xlm_roberta": T.XLMRobertaModel(T.XLMRobertaConfig(**sizes, type_vocab_size=1)),
    "distilbert_classes": T.DistilBertForSequenceClassification(T.DistilBertConfig(**distil, num_labels=3)),
    "mpnet": T.MPNetModel(T.MPNetConfig(**{**sizes, "max_position_embeddings": 170})),
    "electra_classes": T.ElectraForSequenceClassification(
        T.ElectraConfig(**sizes, embedding_size=6, num_labels=3, hidden_act="silu")),
    "sentence": T.BertModel(T.BertConfig(**sizes)).half(),
    "bert_answers": T.BertForQuestionAnswering(T.BertConfig(**sizes)),
}


def mean_and_normalise(hidden, mask):
    weights = mask[..., None].to(hidden.dtype)
    mean = (hidden * weights).sum(1) / weights.sum(1)
    return torch.nn.functional.normalize(mean, dim=-1)


for number, (name, model) in enumerate(cases.items()):
    torch.manual_seed(number)
    model.eval()
    with torch.no_grad():
        for key, p in model.named_parameters():
            p.normal_(0, 0.4)
            if "norm.weight" in key.lower():
                p.add_(1)
    folder = here / name
    shutil.rmtree(folder, ignore_errors=True)
    model.save_pretrained(folder)
    (folder / "generation_config.json").unlink(missing_ok=True)
    model = model.float()
    length = 60 if name == "mpnet" else 9  # larger ones are not folded by the test
    pad = model.config.pad_token_id
    ids = torch.randint(3, 24, (2, length))
    mask = torch.ones_like(ids)
    mask[1, length - 4:] = 0
    ids[1, length - 4:] = pad
    inputs = {"input_ids": ids, "attention_mask": mask}
    if model.config.model_type in ("bert", "electra"):
        inputs["token_type_ids"] = torch.randint(0, 2, ids.shape)
    with torch.no_grad():
        answer = model(**inputs)
    if name == "sentence":
        outputs = {"sentence_embedding": mean_and_normalise(answer.last_hidden_state, mask)}
        os.makedirs(folder / "1_Pooling")
        modules = ["models.Transformer", "models.Pooling", "models.Normalize"]
        paths = ["", "1_Pooling", "2_Normalize"]
        (folder / "modules.json").write_text(json.dumps(
            [dict(idx=i, name=str(i), path=p, type="sentence_transformers." + m)
             for i, (m, p) in enumerate(zip(modules, paths))]))
        (folder / "1_Pooling/config.json").write_text(json.dumps(
            dict(word_embedding_dimension=8, pooling_mode_cls_token=False, pooling_mode_mean_tokens=True)))
    elif "classes" in name:
        outputs = {"logits": answer.logits}
    elif "answers" in name:
        outputs = {k: answer[k] for k in ("start_logits", "end_logits")}
    else:
        outputs = {"last_hidden_state": answer.last_hidden_state * mask[..., None],
                   "pooler_output": answer.pooler_output}
    save_file({**{"in." + k: v.contiguous() for k, v in inputs.items()},
               **{"out." + k: v.contiguous() for k, v in outputs.items()}}, folder / "expected.safetensors")
