"""Embeddings with `langchain-openai`: langchain_embeddings.py [URL] [MODEL]"""
import sys

from langchain_openai import OpenAIEmbeddings

url, model = (sys.argv[1:] + ["http://127.0.0.1:8080", "minilm"][len(sys.argv) - 1 :])[:2]
# Texts go as they are; the package would make tokens of OpenAI's vocabulary of them otherwise.
embeddings = OpenAIEmbeddings(base_url=f"{url}/v1", api_key="none", model=model, check_embedding_ctx_length=False)
vectors = embeddings.embed_documents(["A man is eating food.", "The weather is nice."])
print(len(vectors), len(vectors[0]), vectors[0][:3])
print(len(embeddings.embed_query("Who eats?")))
