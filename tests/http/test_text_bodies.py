"""Every wrong body, for each route that takes text: the error that its API documents, and the next request is served."""
import json

import pytest

import serving
import text_models

OPENAI, TEI, COHERE = "openai", "tei", "cohere"
VALUES = {"null": None, "bool": True, "integer": 7, "negative": -1, "float": 1.5, "string": "a", "empty": "", "list": [], "object": {"a": 1}, "nested": [[["a"]]], "mixed": ["a", 7], "nulls": [None]}
IDS = [5, 6]

# Route, API, a right body, and for each field which of VALUES are right too: null stands for "as if it were not there".
ROUTES = [
    ("/v1/embeddings", OPENAI, dict(model="embed", input="a"), dict(input={"string", "integer list"}, model=set(), encoding_format=set(), dimensions={"null"}, user={"string", "empty"})),
    ("/models/embed/embed", TEI, dict(inputs="a"), dict(inputs={"string"}, truncate={"null", "bool"}, truncation_direction={"null"}, prompt_name={"null"}, normalize={"null", "bool"}, dimensions={"null"})),
    ("/models/hidden/embed_all", TEI, dict(inputs="a"), dict(inputs={"string"}, truncate={"null", "bool"}, truncation_direction={"null"}, prompt_name={"null"})),
    ("/models/sparse/embed_sparse", TEI, dict(inputs="a"), dict(inputs={"string"}, truncate={"null", "bool"}, truncation_direction={"null"})),
    ("/models/rank/rerank", TEI, dict(query="a", texts=["b"]), dict(query={"string"}, texts=set(), truncate={"null", "bool"}, raw_scores={"null", "bool"}, return_text={"null", "bool"}, truncation_direction={"null"})),
    ("/models/classify/predict", TEI, dict(inputs="a"), dict(inputs={"string"}, truncate={"null", "bool"}, raw_scores={"null", "bool"}, truncation_direction={"null"})),
    ("/models/embed/similarity", TEI, dict(inputs=dict(source_sentence="a", sentences=["b"])), dict(inputs=set(), parameters={"null", "object"})),
    ("/models/embed/tokenize", TEI, dict(inputs="a"), dict(inputs={"string"}, add_special_tokens={"null", "bool"}, prompt_name={"null"})),
    ("/models/embed/decode", TEI, dict(ids=IDS), dict(ids=set(), skip_special_tokens={"null", "bool"})),
    ("/v1/rerank", COHERE, dict(model="rank", query="a", documents=["b"]), dict(query={"string"}, documents=set(), top_n={"null", "integer"}, return_documents={"null", "bool"})),
]  # fmt: skip
STATUSES = {OPENAI: {400, 404}, TEI: {400, 404, 413, 422}, COHERE: {400, 404, 413}}
TYPES = {400: "Empty", 404: "Validation", 413: "Validation", 422: "Validation"}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bodies")
    with serving.Server(folder / "server.log", text_models.make(folder)) as s:
        yield s


def expect_error(answer, api, what):
    assert answer.status in STATUSES[api], (what, answer)
    body = answer.json()
    if api == OPENAI:
        assert set(body["error"]) == {"message", "type", "param", "code"} and body["error"]["type"] == "invalid_request_error" and body["error"]["message"], (what, body)
    elif api == TEI:
        assert set(body) == {"error", "error_type"} and body["error_type"] == TYPES[answer.status] and body["error"], (what, answer)
    else:
        assert body["message"], (what, body)


def ids(routes):
    return [route[0] for route in routes]


@pytest.mark.parametrize("path, api, right, fields", ROUTES, ids=ids(ROUTES))
def test_each_field_of_each_wrong_type(server, path, api, right, fields):
    for field, also_right in fields.items():
        for name, value in VALUES.items():
            answer = server.post(path, {**right, field: value})
            if name in also_right:
                assert answer.status == 200, (field, name, answer)
            else:
                expect_error(answer, api, (field, name))
    assert server.post(path, right).status == 200


@pytest.mark.parametrize("path, api, right, fields", ROUTES, ids=ids(ROUTES))
def test_missing_and_unknown_fields(server, path, api, right, fields):
    for field in right:
        if (api, field) != (COHERE, "model"):
            expect_error(server.post(path, {k: v for k, v in right.items() if k != field}), api, field)
    answer = server.post(path, dict(right, unknown=1))
    if api == OPENAI:
        assert answer.status == 400 and answer.json()["error"]["code"] == "unknown_parameter", answer
    else:
        assert answer.status == 200, answer


@pytest.mark.parametrize("path, api, right, fields", ROUTES, ids=ids(ROUTES))
def test_bodies_that_are_no_object(server, path, api, right, fields):
    whole = json.dumps(right).encode()
    wrong = [b"", b" ", b"null", b"7", b'"a"', b"[]", b"[" * 1000, whole[:-1], whole + b"}", whole + whole, whole.replace(b'"', b"'"), b"\xff\xfe" + whole, whole.replace(b":", b"=")]
    wrong += [whole.replace(b'"a"', text) for text in (b'"\xff"', b'"\xed\xa0\x80"', b'"\\ud800"', b'"\\x41"', b'"a\nb"', b'"\xc3"') if b'"a"' in whole]
    for body in wrong:
        expect_error(server.post(path, body, {"Content-Type": "application/json"}), api, body[:60])
    assert server.post(path, right).status == 200


MANY = {
    "/v1/embeddings": ("input", 2049, 400), "/v1/rerank": ("documents", 2049, 413), "/models/embed/embed": ("inputs", 33, 413), "/models/hidden/embed_all": ("inputs", 33, 413),
    "/models/sparse/embed_sparse": ("inputs", 33, 413), "/models/rank/rerank": ("texts", 33, 413), "/models/embed/tokenize": ("inputs", 33, 413),
}  # fmt: skip


@pytest.mark.parametrize("path", MANY)
def test_one_item_too_many(server, path):
    field, count, status = MANY[path]
    api, right = next((r[1], r[2]) for r in ROUTES if r[0] == path)
    answer = server.post(path, {**right, field: ["a"] * count})
    assert answer.status == status, answer
    expect_error(answer, api, count)
    assert server.post(path, {**right, field: ["a"] * (count - 1)}).status == 200


@pytest.mark.parametrize("path", ["/v1/embeddings", "/models/embed/embed", "/models/hidden/embed_all", "/models/embed/tokenize"])
def test_an_item_in_a_list_that_is_wrong(server, path):
    api, right = next((r[1], r[2]) for r in ROUTES if r[0] == path)
    field = "input" if api == OPENAI else "inputs"
    for name, value in VALUES.items():
        if name != "string":
            expect_error(server.post(path, {**right, field: ["a", value, "b"]}), api, name)
