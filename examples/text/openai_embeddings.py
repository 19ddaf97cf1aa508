"""Embeddings with the `openai` package: openai_embeddings.py [URL] [MODEL]"""
import sys

from openai import OpenAI

url, model = (sys.argv[1:] + ["http://127.0.0.1:8080", "minilm"][len(sys.argv) - 1 :])[:2]
client = OpenAI(base_url=f"{url}/v1", api_key="none")
response = client.embeddings.create(model=model, input=["A man is eating food.", "The weather is nice."])
for item in response.data:
    print(item.index, len(item.embedding), item.embedding[:3])
print(response.usage.total_tokens, "tokens")
