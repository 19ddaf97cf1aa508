#!/bin/sh
# Text with curl: curl.sh [URL] [MODEL]
url=${1:-http://127.0.0.1:8080} model=${2:-minilm}
set -e
curl -sSf "$url/v1/embeddings" -d "{\"model\": \"$model\", \"input\": \"A man is eating food.\", \"encoding_format\": \"base64\"}"
curl -sSf "$url/models/$model/embed" -d '{"inputs": ["A man is eating food.", "The weather is nice."]}'
curl -sSf "$url/models/$model/similarity" -d '{"inputs": {"source_sentence": "Who eats?", "sentences": ["A man.", "Rain."]}}'
curl -sSf "$url/models/$model/tokenize" -d '{"inputs": "A man is eating food."}'
curl -sSf "$url/v2/models/$model/infer" -d '{"inputs": [{"name": "text", "datatype": "BYTES", "shape": [1], "data": ["Rain."]}]}'
