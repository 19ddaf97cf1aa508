"""The model that every Python server here calls: lists of token ids in, unit embeddings of 384 floats out.

ENGINE=openvino (NNCF INT8) | onnxruntime (dynamic INT8). GROUP=4: sort a batch by length and run groups of 4, lengths rounded up to 16
(the best that was found for these engines); GROUP=0: one batch, padded to its longest, as the frameworks' own examples do.
"""
import os
import pathlib

import numpy

MODELS = pathlib.Path(os.environ["MODELS"])


class Engine:
    def __init__(self):
        threads = int(os.environ.get("THREADS", "2"))
        self.group = int(os.environ.get("GROUP", "4"))
        if os.environ.get("ENGINE", "openvino") == "openvino":
            import openvino

            # On AMX its choice is bf16 for what is not INT8, which spoils this model (cosine to float32 down to 0.63); f32 costs 4%.
            options = {"INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32"}
            request = openvino.Core().compile_model(MODELS / "minilm_nncf.xml", "CPU", options).create_infer_request()
            self.run = lambda inputs: next(iter(request.infer(inputs).values()))
        else:
            import onnxruntime

            options = onnxruntime.SessionOptions()
            options.intra_op_num_threads = threads
            session = onnxruntime.InferenceSession(MODELS / "minilm_int8.onnx", options, providers=["CPUExecutionProvider"])
            self.run = lambda inputs: session.run(None, inputs)[0]

    def embed(self, sequences):
        if not self.group or len(sequences) <= self.group:
            return list(self.embed_padded(sequences))
        order = sorted(range(len(sequences)), key=lambda i: len(sequences[i]))
        results = [None] * len(sequences)
        for first in range(0, len(order), self.group):
            chosen = order[first : first + self.group]
            for i, vector in zip(chosen, self.embed_padded([sequences[i] for i in chosen])):
                results[i] = vector
        return results

    def embed_padded(self, sequences):
        longest = -(-max(map(len, sequences)) // 16) * 16
        ids = numpy.zeros((len(sequences), longest), numpy.int64)
        mask = numpy.zeros_like(ids)
        for row, sequence in enumerate(sequences):
            ids[row, : len(sequence)] = sequence
            mask[row, : len(sequence)] = 1
        hidden = self.run(dict(input_ids=ids, attention_mask=mask, token_type_ids=numpy.zeros_like(ids)))
        weight = mask.astype(numpy.float32)
        pooled = numpy.einsum("bld,bl->bd", hidden, weight) / weight.sum(1, keepdims=True)
        return pooled / numpy.linalg.norm(pooled, axis=1, keepdims=True)
