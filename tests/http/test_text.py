"""Text in: KServe, TensorFlow Serving, OpenAI's embeddings, the routes of text-embeddings-inference, Cohere's rerank."""
import base64
import concurrent.futures
import gzip
import json
import shutil

import numpy
import pytest

import serving
import text_models
from text_models import CLASSES, LABELS, SCORE, SPAN, TABLE, TOKENS_MAX, VOCABULARY, embedding, ids_of, unit

SENTENCES = ["the cat sat on the mat", "a dog", "who lives in paris?", "the cat sat on the mat", "zebra", "John lives in Paris."]


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    folder = tmp_path_factory.mktemp("text")
    with serving.Server(folder / "server.log", text_models.make(folder)) as s:
        yield s


def ok(answer):
    assert answer.status == 200, answer
    return answer.json()


def near(found, wanted, tolerance=1e-5):
    numpy.testing.assert_allclose(numpy.array(found, numpy.float64), numpy.array(wanted, numpy.float64), atol=tolerance, rtol=0)


def embeddings(server, **body):
    return ok(server.post("/v1/embeddings", dict(dict(model="embed"), **body)))


# KServe and TensorFlow Serving


def kserve(server, texts, pairs=None, model="embed", **more):
    inputs = [dict(name="text", datatype="BYTES", shape=[len(texts)], data=texts)]
    if pairs is not None:
        inputs.append(dict(name="text_pair", datatype="BYTES", shape=[len(pairs), 1], data=pairs))
    return server.post(f"/v2/models/{model}/infer", dict(inputs=inputs, **more))


def test_kserve_takes_text_in_place_of_tokens(text):
    output = ok(kserve(text, SENTENCES))["outputs"][0]
    assert output["shape"] == [len(SENTENCES), text_models.WIDTH]
    near(numpy.reshape(output["data"], output["shape"]), [embedding(s) for s in SENTENCES])
    output = ok(kserve(text, ["a b", "c"], ["d", "e d"]))["outputs"][0]
    near(numpy.reshape(output["data"], output["shape"]), [embedding("a b", "d"), embedding("c", "e d")])


def test_kserve_rows_of_different_lengths_end_with_zeros(text):
    output = ok(kserve(text, ["a", "a b c"], model="hidden"))["outputs"][0]
    values = numpy.reshape(output["data"], output["shape"])
    assert values.shape == (2, 5, text_models.WIDTH)
    near(values[1], TABLE[ids_of("a b c")[0]])
    near(values[0, :3], TABLE[ids_of("a")[0]])
    assert not values[0, 3:].any()


def test_kserve_binary_text_and_outputs(text):
    blob = b"".join(len(s.encode()).to_bytes(4, "little") + s.encode() for s in SENTENCES)
    envelope = dict(inputs=[dict(name="text", datatype="BYTES", shape=[len(SENTENCES)], parameters=dict(binary_data_size=len(blob)))], parameters=dict(binary_data_output=True))
    head = json.dumps(envelope).encode()
    answer = text.post("/v2/models/embed/infer", head + blob, {"Inference-Header-Content-Length": str(len(head))})
    assert answer.status == 200, answer
    near(serving.binary_outputs(answer)["sentence_embedding"], [embedding(s) for s in SENTENCES])


def test_kserve_metadata_has_the_texts(text):
    inputs = {i["name"]: i for i in ok(text.get("/v2/models/embed"))["inputs"]}
    assert inputs["text"]["datatype"] == inputs["text_pair"]["datatype"] == "BYTES" and inputs["text"]["shape"] == [-1]
    config = {i["name"]: i for i in ok(text.get("/v2/models/embed/config"))["input"]}
    assert config["text"]["data_type"] == "TYPE_STRING" and all(i.get("optional") for i in config.values())
    assert "text" not in {i["name"] for i in ok(text.get("/v2/models/mute"))["inputs"]}


def test_kserve_refuses_what_is_no_text(text):
    both = dict(inputs=[dict(name="text", datatype="BYTES", shape=[1], data=["a"]), dict(name="input_ids", datatype="INT64", shape=[1, 1], data=[5])])
    wrong = {
        "exclude each other": text.post("/v2/models/embed/infer", both),
        "differ in their rows": kserve(text, ["a", "b"], ["c"]),
        "datatype INT64": text.post("/v2/models/embed/infer", dict(inputs=[dict(name="text", datatype="INT64", shape=[1], data=[5])])),
        "no tokenizer.json": kserve(text, ["a"], model="mute"),
        "without": text.post("/v2/models/embed/infer", dict(inputs=[dict(name="text_pair", datatype="BYTES", shape=[1], data=["a"])])),
    }
    for words, answer in wrong.items():
        assert answer.status == 400 and words in answer.json()["error"], (words, answer)
    not_utf8 = b"\x02\0\0\0a\xff"
    head = json.dumps(dict(inputs=[dict(name="text", datatype="BYTES", shape=[1], parameters=dict(binary_data_size=6))])).encode()
    assert text.post("/v2/models/embed/infer", head + not_utf8, {"Inference-Header-Content-Length": str(len(head))}).status == 400


def test_kserve_truncates_unless_it_is_told_not_to(text):
    long = " ".join(["cat"] * 100)
    ids = ids_of(" ".join(["cat"] * (TOKENS_MAX - 2)))[0]
    near(ok(kserve(text, [long]))["outputs"][0]["data"], TABLE[ids].mean(0))
    answer = kserve(text, [long], parameters=dict(truncate=False))
    assert answer.status == 413 and "102 tokens" in answer.json()["error"]


def test_tensorflow_takes_strings(text):
    url = "/v1/models/embed:predict"
    wanted = [embedding(s) for s in SENTENCES]
    near(ok(text.post(url, dict(instances=SENTENCES)))["predictions"], wanted)
    near(ok(text.post(url, dict(inputs=SENTENCES)))["outputs"], wanted)
    near(ok(text.post(url, dict(instances=[dict(text="a", text_pair="b"), dict(text="c")])))["predictions"], [embedding("a", "b"), embedding("c")])
    near(ok(text.post(url, dict(inputs=dict(text=["a"], text_pair=["b"]))))["outputs"], [embedding("a", "b")])
    for body in (dict(instances=["a", {"input_ids": [5]}]), dict(instances=[{"input_ids": [5]}, "a"]), dict(instances=[{"text": "a", "input_ids": [5]}])):
        assert text.post(url, body).status == 400, body
    assert text.post("/v1/models/mute:predict", dict(instances=["a"])).status == 400


# OpenAI


def test_openai_embeddings_of_texts_and_of_tokens(text):
    found = embeddings(text, input=SENTENCES, user="me")
    assert found["object"] == "list" and found["model"] == "embed"
    assert [d["index"] for d in found["data"]] == list(range(len(SENTENCES))) and found["data"][0]["object"] == "embedding"
    near([d["embedding"] for d in found["data"]], [unit(embedding(s)) for s in SENTENCES])
    tokens = sum(len(ids_of(s)[0]) for s in SENTENCES)
    assert found["usage"] == dict(prompt_tokens=tokens, total_tokens=tokens)
    near(embeddings(text, input="a dog")["data"][0]["embedding"], unit(embedding("a dog")))
    ids = ids_of("a dog")[0]
    near(embeddings(text, input=ids)["data"][0]["embedding"], unit(embedding("a dog")))
    near([d["embedding"] for d in embeddings(text, input=[ids, ids_of("who")[0]])["data"]], [unit(embedding("a dog")), unit(embedding("who"))])


def test_openai_base64_has_the_same_bits(text):
    plain = [d["embedding"] for d in embeddings(text, input=SENTENCES)["data"]]
    coded = [numpy.frombuffer(base64.b64decode(d["embedding"]), "<f4") for d in embeddings(text, input=SENTENCES, encoding_format="base64")["data"]]
    assert numpy.array_equal(numpy.array(plain, numpy.float32), coded)


def test_openai_dimensions_cut_and_normalise(text):
    near(embeddings(text, input="a dog", dimensions=4)["data"][0]["embedding"], unit(embedding("a dog")[:4]))
    near(embeddings(text, input="a dog", dimensions=8)["data"][0]["embedding"], unit(embedding("a dog")))
    for dimensions in (3, 9):
        error = text.post("/v1/embeddings", dict(model="embed", input="a", dimensions=dimensions))
        assert error.status == 400 and error.json()["error"]["param"] == "dimensions", error


def test_model_json_may_allow_dimensions(tmp_path):
    folder = text_models.make(tmp_path / "models")["hidden"]
    (folder / "model.json").write_text(json.dumps({"sequence_max": TOKENS_MAX, "dimensions": [3]}))
    with serving.Server(tmp_path / "log", {"embed": folder}) as s:
        near(embeddings(s, input="a dog", dimensions=3)["data"][0]["embedding"], unit(embedding("a dog")[:3]))
        assert s.post("/v1/embeddings", dict(model="embed", input="a", dimensions=4)).status == 400


def test_openai_pools_the_tokens_of_a_model_that_does_not(text):
    near(embeddings(text, model="hidden", input="a dog")["data"][0]["embedding"], unit(embedding("a dog")))


def test_openai_large_lists_keep_their_order(text):
    words = text_models.WORDS
    many = [" ".join(words[(i + j) % len(words)] for j in range(1 + i % 13)) for i in range(2048)]
    found = embeddings(text, input=many, encoding_format="base64")["data"]
    near([numpy.frombuffer(base64.b64decode(d["embedding"]), "<f4") for d in found], [unit(embedding(s)) for s in many])
    answer = text.post("/v1/embeddings", dict(model="embed", input=many + ["a"]))
    assert answer.status == 400 and answer.json()["error"]["code"] == "array_above_max_length"


@pytest.mark.parametrize("body, status, code, parameter", [
    (dict(input="a"), 400, "missing_required_parameter", "model"),
    (dict(model="embed"), 400, "missing_required_parameter", "input"),
    (dict(model="nobody", input="a"), 404, "model_not_found", "model"),
    (dict(model="embed", input=""), 400, "empty_string", "input"),
    (dict(model="embed", input=[]), 400, "empty_array", "input"),
    (dict(model="embed", input=["a", ""]), 400, "empty_string", "input[1]"),
    (dict(model="embed", input=7), 400, "invalid_type", "input"),
    (dict(model="embed", input="a", encoding_format="hex"), 400, "invalid_value", "encoding_format"),
    (dict(model="embed", input="a", mode="x"), 400, "unknown_parameter", "mode"),
    (dict(model="embed", input=[1, 10**6]), 400, None, "input"),
    (dict(model="embed", input=["a", "cat " * 100]), 400, None, "input"),
    (dict(model="mute", input="a"), 400, None, None),
    (dict(model="rank", input="a"), 400, None, None),
])  # fmt: skip
def test_openai_errors(text, body, status, code, parameter):
    answer = text.post("/v1/embeddings", body)
    assert answer.status == status, answer
    error = answer.json()["error"]
    assert set(error) == {"message", "type", "param", "code"} and error["type"] == "invalid_request_error"
    assert (error["code"], error["param"]) == (code, parameter), error


def test_openai_says_which_of_many_is_wrong_and_which_file_is_missing(text):
    message = lambda **body: text.post("/v1/embeddings", body).json()["error"]["message"]
    assert "text 2" in message(model="embed", input=["a", "b", "cat " * 100]) and "102 tokens" in message(model="embed", input="cat " * 100)
    assert "tokenizer.json" in message(model="mute", input="a")


def test_openai_bodies_that_are_no_json(text):
    for body in (b"", b"{", b'{"model":"embed","input":"\xff"}', b'{"model":"embed","input":"\\ud800"}', b'{"model":"embed","input":"a"}x'):
        answer = text.post("/v1/embeddings", body)
        assert answer.status == 400 and answer.json()["error"]["type"] == "invalid_request_error", (body, answer)
    assert text.get("/v1/embeddings").status == 405


def test_other_routes_of_openai_are_not_found(text):
    answer = text.post("/v1/chat/completions", dict(model="embed", messages=[]))
    assert answer.status == 404 and "message" in answer.json()["error"]
    near(ok(text.post("/embeddings", dict(model="embed", input="a")))["data"][0]["embedding"], unit(embedding("a")))


def test_openai_and_tensorflow_share_the_path_of_a_model(text):
    listed = ok(text.get("/v1/models"))
    assert listed["object"] == "list" and {m["id"] for m in listed["data"]} >= {"embed", "rank", "mute"}
    one = ok(text.get("/v1/models/embed"))
    assert one["id"] == "embed" and one["object"] == "model" and isinstance(one["created"], int) and one["owned_by"] == "penstock"
    assert one["model_version_status"][0]["state"] == "AVAILABLE"
    assert text.get("/v1/models/nobody").status == 404


def test_bodies_may_be_compressed_and_long(text):
    many = [f"the cat sat {'on the mat ' * (i % 5)}" for i in range(1500)]
    body = json.dumps(dict(model="embed", input=many)).encode()
    wanted = [unit(embedding(s)) for s in many]
    answer = text.post("/v1/embeddings", gzip.compress(body), {"Content-Encoding": "gzip"})
    near([d["embedding"] for d in ok(answer)["data"]], wanted)
    assert len(body) < 65536 < len(padded := body.replace(b": ", b": " + b" " * 65536, 1))
    near([d["embedding"] for d in ok(text.post("/v1/embeddings", padded))["data"]], wanted)


# text-embeddings-inference


def test_embed(text):
    near(ok(text.post("/models/embed/embed", dict(inputs=SENTENCES))), [unit(embedding(s)) for s in SENTENCES])
    near(ok(text.post("/embed", dict(inputs="a", model="embed", normalize=False))), [embedding("a")])
    near(ok(text.post("/models/embed/embed", dict(inputs="cat", prompt_name="query"))), [unit(embedding("query : cat"))])
    near(ok(text.post("/models/embed/embed", dict(inputs="cat", dimensions=2))), [unit(embedding("cat")[:2])])
    # Defaults of its OpenAPI document, which generated clients send.
    near(ok(text.post("/models/embed/embed", dict(inputs="cat", prompt_name="null", truncation_direction="right"))), [unit(embedding("cat"))])
    near(ok(text.post("/models/embed/embed", dict(inputs=ids_of("a dog")[0]))), [unit(embedding("a dog"))])


def test_embed_truncates_when_it_is_told_to(text):
    words = [text_models.WORDS[i % 19] for i in range(60)]
    kept = TOKENS_MAX - 2
    for direction, part in (("Right", words[:kept]), ("Left", words[-kept:])):
        body = dict(inputs=" ".join(words), truncate=True, truncation_direction=direction)
        near(ok(text.post("/models/embed/embed", body)), [unit(embedding(" ".join(part)))])
    answer = text.post("/models/embed/embed", dict(inputs=" ".join(words)))
    assert answer.status == 413 and answer.json()["error_type"] == "Validation" and str(TOKENS_MAX) in answer.json()["error"]


def test_embed_all_and_sparse(text):
    found = ok(text.post("/models/hidden/embed_all", dict(inputs=["a", "b c"])))
    near(found[0], TABLE[ids_of("a")[0]])
    near(found[1], TABLE[ids_of("b c")[0]])
    logits = TABLE[ids_of("a b")[0]] @ TABLE.T
    weights = numpy.log1p(numpy.maximum(logits, 0)).max(0)
    sparse = ok(text.post("/models/sparse/embed_sparse", dict(inputs="a b")))[0]
    assert [s["index"] for s in sparse] == [i for i in range(len(VOCABULARY)) if weights[i] > 0]
    near([s["value"] for s in sparse], weights[weights > 0], 1e-4)
    assert text.post("/models/embed/embed_all", dict(inputs="a")).status == 424


def scores(query, texts):
    return numpy.array([float((embedding(query, t) @ SCORE)[0]) for t in texts])


def test_rerank(text):
    texts = ["the cat", "a dog sat", "paris"]
    wanted = 1 / (1 + numpy.exp(-scores("who", texts)))
    order = numpy.argsort(-wanted)
    found = ok(text.post("/models/rank/rerank", dict(query="who", texts=texts)))
    assert [r["index"] for r in found] == order.tolist() and "text" not in found[0]
    near([r["score"] for r in found], wanted[order])
    found = ok(text.post("/models/rank/rerank", dict(query="who", texts=texts, raw_scores=True, return_text=True)))
    near([r["score"] for r in found], scores("who", texts)[order])
    assert [r["text"] for r in found] == [texts[i] for i in order]
    for path in ("/v1/rerank", "/v2/rerank"):
        assert [r["index"] for r in ok(text.post(path, dict(model="rank", query="who", documents=texts)))["results"]] == order.tolist()
    cohere = ok(text.post("/v1/rerank", dict(model="rank", query="who", documents=texts, top_n=2, return_documents=True)))
    assert [r["index"] for r in cohere["results"]] == order[:2].tolist() and cohere["results"][0]["document"]["text"] == texts[order[0]]
    near([r["relevance_score"] for r in cohere["results"]], wanted[order[:2]])


def test_predict_classes(text):
    def wanted(sentence, pair=None):
        logits = embedding(sentence, pair) @ CLASSES
        return dict(zip(LABELS, numpy.exp(logits) / numpy.exp(logits).sum()))

    def check(found, probabilities):
        assert [f["label"] for f in found] == sorted(LABELS, key=lambda n: -probabilities[n])
        near([f["score"] for f in found], [probabilities[f["label"]] for f in found])

    check(ok(text.post("/models/classify/predict", dict(inputs="a cat"))), wanted("a cat"))
    check(ok(text.post("/models/classify/predict", dict(inputs=["a cat", "dog"]))), wanted("a cat", "dog"))
    found = ok(text.post("/models/classify/predict", dict(inputs=[["a cat"], ["b", "dog"]])))
    check(found[0], wanted("a cat"))
    check(found[1], wanted("b", "dog"))
    raw = ok(text.post("/models/classify/predict", dict(inputs="a", raw_scores=True)))
    near(sorted(r["score"] for r in raw), sorted(embedding("a") @ CLASSES))


def test_predict_groups_tokens_by_their_tags(text):
    sentence = "Où John cat lives in  Paris, john?"
    found = ok(text.post("/models/tag/predict", dict(inputs=sentence)))
    assert [(f["entity_group"], f["word"], sentence[f["start"] : f["end"]]) for f in found] == [
        ("PER", "John cat", "John cat"), ("LOC", "Paris", "Paris"), ("PER", "john", "john")]  # fmt: skip
    assert all(0.9 < f["score"] < 1 for f in found)


def test_predict_answers_with_the_best_span(text):
    question, context = "who?", "the cat sat on the mat"
    ids, types = ids_of(question, context)
    start, end = (TABLE[ids] @ SPAN).T
    inside = [i for i in range(len(ids)) if types[i] == 1 and i < len(ids) - 1]
    i, j = max(((i, j) for i in inside for j in inside if i <= j < i + 15), key=lambda s: start[s[0]] + end[s[1]])
    words = context.split()
    for inputs in ([question, context], dict(question=question, context=context)):
        found = ok(text.post("/models/answer/predict", dict(inputs=inputs)))
        assert found["answer"] == " ".join(words[i - inside[0] : j - inside[0] + 1]) == context[found["start"] : found["end"]]
        near(found["score"], numpy.exp(start[i] + end[j]) / numpy.exp(start[inside]).sum() / numpy.exp(end[inside]).sum())
    assert text.post("/models/answer/predict", dict(inputs="who?")).status == 422


def test_similarity(text):
    body = dict(inputs=dict(source_sentence="a cat", sentences=["a cat", "a dog"]))
    near(ok(text.post("/models/embed/similarity", body)), [1, float(unit(embedding("a cat")) @ unit(embedding("a dog")))])


def test_tokenize_and_decode(text):
    tokens = ok(text.post("/models/embed/tokenize", dict(inputs="The cät?")))[0]
    assert [t["id"] for t in tokens] == ids_of("the cat?")[0]
    assert tokens[0] == dict(id=text_models.CLS, text="[CLS]", special=True, start=None, stop=None)
    assert tokens[2] == dict(id=text_models.ID["cat"], text="cat", special=False, start=4, stop=7)
    bare = ok(text.post("/models/embed/tokenize", dict(inputs=["a", "b"], add_special_tokens=False)))
    assert [[t["id"] for t in b] for b in bare] == [[text_models.ID["a"]], [text_models.ID["b"]]]
    ids = ids_of("the cat")[0]
    assert ok(text.post("/models/embed/decode", dict(ids=ids))) == ["the cat"]
    assert ok(text.post("/models/embed/decode", dict(ids=[ids, ids], skip_special_tokens=False))) == ["[CLS] the cat [SEP]"] * 2
    long = " ".join(["cat"] * 3000)  # on a helper thread
    assert len(ok(text.post("/models/embed/tokenize", dict(inputs=long)))[0]) == 3002


def test_info_and_health(text):
    info = ok(text.get("/models/embed/info"))
    assert info["model_id"] == "embed" and info["max_input_length"] == TOKENS_MAX and info["max_client_batch_size"] == 32
    assert "embedding" in info["model_type"]
    assert ok(text.get("/models/classify/info"))["model_type"]["classifier"]["id2label"] == {str(i): n for i, n in enumerate(LABELS)}
    assert "reranker" in ok(text.get("/models/rank/info"))["model_type"]
    assert text.get("/health").status == text.get("/ping").status == 200


@pytest.mark.parametrize("path, body, status, kind", [
    ("/embed", dict(inputs="a"), 404, "Validation"),  # several models
    ("/models/nobody/embed", dict(inputs="a"), 404, "Validation"),
    ("/models/mute/embed", dict(inputs="a"), 424, "Backend"),
    ("/models/embed/embed", dict(inputs=""), 400, "Empty"),
    ("/models/embed/embed", dict(inputs=[]), 400, "Empty"),
    ("/models/embed/embed", {}, 422, "Validation"),
    ("/models/embed/embed", dict(inputs=1), 422, "Validation"),
    ("/models/embed/embed", dict(inputs=["a"] * 33), 413, "Validation"),
    ("/models/embed/embed", dict(inputs="a", prompt_name="none"), 422, "Validation"),
    ("/models/embed/rerank", dict(query="a", texts=["b"]), 424, "Backend"),
    ("/models/classify/rerank", dict(query="a", texts=["b"]), 424, "Backend"),
    ("/models/embed/decode", dict(ids=[10**6]), 422, "Validation"),
])  # fmt: skip
def test_tei_errors(text, path, body, status, kind):
    answer = text.post(path, body)
    assert answer.status == status and answer.json()["error_type"] == kind and isinstance(answer.json()["error"], str), answer


def test_cohere_errors(text):
    answer = text.post("/v1/rerank", dict(model="rank", query="a"))
    assert answer.status == 400 and answer.json()["message"] == answer.json()["detail"]


def test_nothing_is_lost_under_many_wrong_and_right_requests(text):
    bodies = [dict(model="embed", input=s) for s in SENTENCES] + [dict(model="embed", input=""), dict(model="embed", input="cat " * 3000), dict(model="x", input="a")]
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        codes = list(pool.map(lambda i: text.post("/v1/embeddings", bodies[i % len(bodies)]).status, range(180)))
    assert [codes.count(c) for c in (200, 400, 404)] == [120, 40, 20]


def test_a_request_may_have_a_thousand_lengths(tmp_path):
    """Each is a job of its own."""
    folder = text_models.make(tmp_path / "models")["embed"]
    (folder / "model.json").write_text(json.dumps({"sequence_max": 1002}))
    many = ["cat " * i for i in range(1000, 0, -1)]
    with serving.Server(tmp_path / "log", {"embed": folder}) as s:
        for _ in range(3):
            found = embeddings(s, input=many)["data"]
        near([d["embedding"] for d in found], [unit(embedding(t)) for t in many])


def test_tokenize_is_a_stage(text):
    ok(text.post("/models/embed/embed", dict(inputs="a")))
    lines = text.get("/metrics").body.decode().splitlines()
    assert any(line.startswith("penstock_stage_seconds_count") and 'model="embed"' in line and 'stage="tokenize"' in line for line in lines)


def test_a_default_model_serves_routes_without_a_name(tmp_path):
    folder = tmp_path / "models"
    models = {n: f for n, f in text_models.make(folder).items() if n in ("embed", "rank")}
    with serving.Server(tmp_path / "log", models, "--set", "server.default_model=embed", "--set", "limits.text_bytes_max=1024") as s:
        near(ok(s.post("/embed", dict(inputs="a"))), [unit(embedding("a"))])
        assert s.post("/embed", dict(inputs="a " * 600)).status == 413
        assert s.post("/v1/embeddings", dict(model="embed", input="a " * 600)).status == 400
    with serving.Server(tmp_path / "log", {"embed": models["embed"]}) as s:
        near(ok(s.post("/embed", dict(inputs="a"))), [unit(embedding("a"))])
        assert ok(s.get("/info"))["model_id"] == "embed"


def test_pooling_leaves_prompts_out_where_the_model_says_so(tmp_path):
    """As sentence-transformers with include_prompt false: a mask of 2 is attended to, and not pooled."""
    folder = tmp_path / "m"
    shutil.copytree(serving.ROOT / "tests/data/hugging_face/chain_prompt", folder)
    (folder / "tokenizer.json").write_text(json.dumps(text_models.tokenizer_json()))
    (folder / "config_sentence_transformers.json").write_text(json.dumps(dict(prompts=dict(q="query the "))))
    ids, _ = text_models.ids_of("query the cat sat")
    with serving.Server(tmp_path / "server.log", dict(m=folder)) as s:
        body = dict(inputs="cat sat", prompt_name="q", normalize=False)
        found = ok(s.post("/models/m/embed", body))
        tokens = dict(input_ids=ids, attention_mask=[2, 2, 2, 1, 1, 1], token_type_ids=[0] * 6)
        tokens = {name: numpy.array([values]) for name, values in tokens.items()}
        near(found, s.infer_binary("m", tokens)["sentence_embedding"])
        tokens["attention_mask"][:] = 1
        with_prompt = s.infer_binary("m", tokens)["sentence_embedding"]
        assert numpy.abs(numpy.array(found) - with_prompt).max() > 1e-3
