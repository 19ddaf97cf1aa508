"""Text to a KServe model with `tritonclient`: triton_text.py [URL] [MODEL]"""
import sys

import numpy
import tritonclient.http as triton

url, model = (sys.argv[1:] + ["http://127.0.0.1:8080", "minilm"][len(sys.argv) - 1 :])[:2]
client = triton.InferenceServerClient(url.removeprefix("http://"))
texts = numpy.array(["A man is eating food.", "The weather is nice."], dtype=object)
text = triton.InferInput("text", texts.shape, "BYTES")
text.set_data_from_numpy(texts)
vectors = client.infer(model, [text]).as_numpy("sentence_embedding")
print(vectors.shape, vectors[0, :3])
