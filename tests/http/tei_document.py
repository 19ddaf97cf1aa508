"""An OpenAPI document of text-embeddings-inference's routes: its paths, schemas, fields and defaults, oddities included
(defaults that are strings), from which clients are generated. tests/http/test_tei_client.py uses it."""


def ref(name):
    return {"$ref": f"#/components/schemas/{name}"}


def array(items, **more):
    return {"type": "array", "items": items, **more}


def one_of(*schemas):
    return {"oneOf": list(schemas)}


def record(required, **properties):
    return {"type": "object", "required": required.split(), "properties": properties}


STRING, NUMBER, FLAG = {"type": "string"}, {"type": "number", "format": "float"}, {"type": "boolean"}
COUNT = {"type": "integer", "minimum": 0}
ID = {"type": "integer", "format": "int32", "minimum": 0}
MAYBE_STRING = {"type": "string", "nullable": True}
MAYBE_COUNT = {"type": "integer", "minimum": 0, "nullable": True}
TRUNCATION = {
    "truncate": {"type": "boolean", "default": "false", "nullable": True},
    "truncation_direction": {"allOf": [ref("TruncationDirection")], "default": "Right"},
}
PROMPT = {"prompt_name": {"type": "string", "default": "null", "nullable": True}}
ON, OFF = {"type": "boolean", "default": "true"}, {"type": "boolean", "default": "false"}

SCHEMAS = {
    "ClassifierModel": record("id2label label2id", id2label={"type": "object", "additionalProperties": STRING}, label2id={"type": "object", "additionalProperties": COUNT}),
    "DecodeRequest": record("ids", ids=ref("InputIds"), skip_special_tokens=ON),
    "DecodeResponse": array(STRING),
    "EmbedAllRequest": record("inputs", inputs=ref("Input"), **PROMPT, **TRUNCATION),
    "EmbedAllResponse": array(array(array(NUMBER))),
    "EmbedRequest": record("inputs", inputs=ref("Input"), dimensions=MAYBE_COUNT, normalize=ON, **PROMPT, **TRUNCATION),
    "EmbedResponse": array(array(NUMBER)),
    "EmbedSparseRequest": record("inputs", inputs=ref("Input"), **PROMPT, **TRUNCATION),
    "EmbedSparseResponse": array(array(ref("SparseValue"))),
    "Embedding": one_of(array(NUMBER), STRING),
    "EmbeddingModel": record("pooling", pooling=STRING),
    "EncodingFormat": {"type": "string", "enum": ["float", "base64"]},
    "ErrorResponse": record("error error_type", error=STRING, error_type=ref("ErrorType")),
    "ErrorType": {"type": "string", "enum": ["Unhealthy", "Backend", "Overloaded", "Validation", "Tokenizer", "Empty"]},
    "Info": record(
        "model_id model_dtype model_type max_concurrent_requests max_input_length max_batch_tokens max_client_batch_size auto_truncate tokenization_workers version",
        model_id=STRING, model_sha=MAYBE_STRING, model_dtype=STRING, model_type=ref("ModelType"), max_concurrent_requests=COUNT, max_input_length=COUNT,
        max_batch_tokens=COUNT, max_batch_requests=MAYBE_COUNT, max_client_batch_size=COUNT, auto_truncate=FLAG, tokenization_workers=COUNT,
        version=STRING, sha=MAYBE_STRING, docker_label=MAYBE_STRING),
    "Input": one_of(ref("InputType"), array(ref("InputType"))),
    "InputIds": one_of(array(ID), array(array(ID))),
    "InputType": one_of(STRING, array(ID)),
    "ModelType": one_of(record("classifier", classifier=ref("ClassifierModel")), record("embedding", embedding=ref("EmbeddingModel")), record("reranker", reranker=ref("ClassifierModel"))),
    "OpenAICompatEmbedding": record("object embedding index", object=STRING, embedding=ref("Embedding"), index=COUNT),
    "OpenAICompatErrorResponse": record("message code error_type", message=STRING, code=ID, error_type=ref("ErrorType")),
    "OpenAICompatRequest": record("input", input=ref("Input"), model=MAYBE_STRING, user=MAYBE_STRING, encoding_format={"allOf": [ref("EncodingFormat")], "default": "float"}),
    "OpenAICompatResponse": record("object data model usage", object=STRING, data=array(ref("OpenAICompatEmbedding")), model=STRING, usage=ref("OpenAICompatUsage")),
    "OpenAICompatUsage": record("prompt_tokens total_tokens", prompt_tokens=COUNT, total_tokens=COUNT),
    "PredictInput": one_of(STRING, array(STRING, minItems=2, maxItems=2), array(one_of(array(STRING, minItems=1, maxItems=1), array(STRING, minItems=2, maxItems=2)))),
    "PredictRequest": record("inputs", inputs=ref("PredictInput"), raw_scores=OFF, **TRUNCATION),
    "PredictResponse": one_of(array(ref("Prediction")), array(array(ref("Prediction")))),
    "Prediction": record("score label", score=NUMBER, label=STRING),
    "Rank": record("index score", index=COUNT, score=NUMBER, text={"type": "string", "nullable": True}),
    "RerankRequest": record("query texts", query=STRING, texts=array(STRING), raw_scores=OFF, return_text=OFF, **TRUNCATION),
    "RerankResponse": array(ref("Rank")),
    "SimilarityInput": record("source_sentence sentences", source_sentence=STRING, sentences=array(STRING)),
    "SimilarityParameters": record("truncation_direction", **PROMPT, **TRUNCATION),
    "SimilarityRequest": record("inputs", inputs=ref("SimilarityInput"), parameters={"allOf": [ref("SimilarityParameters")], "nullable": True}),
    "SimilarityResponse": array(NUMBER),
    "SimpleToken": record("id text special", id=ID, text=STRING, special=FLAG, start=MAYBE_COUNT, stop=MAYBE_COUNT),
    "SparseValue": record("index value", index=COUNT, value=NUMBER),
    "TokenizeInput": one_of(STRING, array(STRING)),
    "TokenizeRequest": record("inputs", inputs=ref("TokenizeInput"), add_special_tokens=ON, **PROMPT),
    "TokenizeResponse": array(array(ref("SimpleToken"))),
    "TruncationDirection": {"type": "string", "enum": ["Left", "Right"]},
}  # fmt: skip

# Path: operation, schemas of the request and the response, statuses of its errors.
POSTS = {
    "/decode": ("decode", "DecodeRequest", "DecodeResponse", "422"),
    "/embed": ("embed", "EmbedRequest", "EmbedResponse", "413 422 424 429"),
    "/embed_all": ("embed_all", "EmbedAllRequest", "EmbedAllResponse", "413 422 424 429"),
    "/embed_sparse": ("embed_sparse", "EmbedSparseRequest", "EmbedSparseResponse", "413 422 424 429"),
    "/predict": ("predict", "PredictRequest", "PredictResponse", "413 422 424 429"),
    "/rerank": ("rerank", "RerankRequest", "RerankResponse", "413 422 424 429"),
    "/similarity": ("similarity", "SimilarityRequest", "SimilarityResponse", "413 422 424 429"),
    "/tokenize": ("tokenize", "TokenizeRequest", "TokenizeResponse", "422"),
    "/v1/embeddings": ("openai_embed", "OpenAICompatRequest", "OpenAICompatResponse", "413 422 424 429"),
}


def content(schema, kind="application/json"):
    return {"content": {kind: {"schema": schema}}}


def post(operation, request, response, errors):
    error = "OpenAICompatErrorResponse" if request.startswith("OpenAI") else "ErrorResponse"
    responses = {"200": {"description": "result", **content(ref(response))}}
    responses |= {status: {"description": "error", **content(ref(error))} for status in errors.split()}
    return {"post": {"tags": ["tei"], "operationId": operation, "requestBody": {**content(ref(request)), "required": True}, "responses": responses}}


def get(operation, result, errors=()):
    responses = {"200": {"description": "result", **result}}
    responses |= {status: {"description": "error", **content(ref("ErrorResponse"))} for status in errors}
    return {"get": {"tags": ["tei"], "operationId": operation, "responses": responses}}


def document():
    paths = {path: post(*what) for path, what in POSTS.items()}
    paths["/health"] = get("health", {}, ["503"])
    paths["/info"] = get("get_model_info", content(ref("Info")))
    paths["/metrics"] = get("metrics", content(STRING, "text/plain"))
    return {"openapi": "3.0.3", "info": {"title": "Tei", "version": "1.6.0"}, "paths": paths, "components": {"schemas": SCHEMAS}}
