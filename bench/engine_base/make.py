"""BERT-base's shape with random weights: DIR/model (Hugging Face), DIR/bert_base.onnx, DIR/bert_base_nncf.xml (OpenVINO INT8 by NNCF).

    make.py DIR        needs torch, transformers, onnx, openvino, nncf
"""
import os, sys

import numpy as np
import torch
from transformers import BertConfig, BertModel

folder = sys.argv[1]
os.makedirs(folder, exist_ok=True)
torch.manual_seed(0)
model = BertModel(BertConfig(vocab_size=4000, attn_implementation='eager'), add_pooling_layer=False).eval()
model.save_pretrained(f'{folder}/model')


class Named(torch.nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, input_ids, attention_mask, token_type_ids):
        return self.inner(input_ids=input_ids, attention_mask=attention_mask, token_type_ids=token_type_ids)[0]


names = ['input_ids', 'attention_mask', 'token_type_ids']
example = (torch.ones(2, 8, dtype=torch.long), torch.ones(2, 8, dtype=torch.long), torch.zeros(2, 8, dtype=torch.long))
torch.onnx.export(Named(model), example, f'{folder}/bert_base.onnx', input_names=names, output_names=['hidden'], opset_version=17,
                  dynamic_axes={n: {0: 'batch', 1: 'sequence'} for n in names + ['hidden']}, dynamo=False)

import nncf
import openvino

random = np.random.default_rng(0)
samples = [{n: (np.ones((1, l), np.int64) if n == 'attention_mask' else np.zeros((1, l), np.int64) if n == 'token_type_ids'
                else random.integers(4, 4000, (1, l))) for n in names} for l in random.integers(8, 96, 24)]
core = openvino.Core()
quantised = nncf.quantize(core.read_model(f'{folder}/bert_base.onnx'), nncf.Dataset(samples), subset_size=len(samples),
                          model_type=nncf.ModelType.TRANSFORMER, preset=nncf.QuantizationPreset.MIXED)
openvino.save_model(quantised, f'{folder}/bert_base_nncf.xml')
