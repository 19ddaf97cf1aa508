"""A client generated from an OpenAPI document of text-embeddings-inference (tei_document.py), as it comes: every operation, with the
defaults that the document gives, and errors as the document types them."""
import importlib
import json
import shutil
import subprocess
import sys

import numpy
import pytest

import serving
import tei_document
import text_models
from text_models import TABLE, embedding, ids_of, unit

pytest.importorskip("openapi_python_client")


def near(found, wanted):
    numpy.testing.assert_allclose(numpy.array(found), numpy.array(wanted), atol=1e-5, rtol=0)


@pytest.fixture(scope="module")
def tei(tmp_path_factory):
    """operation(name, model, fields of the body...) -> the response, parsed by the generated client."""
    folder = tmp_path_factory.mktemp("tei")
    (folder / "document.json").write_text(json.dumps(tei_document.document()))
    (folder / "config.yml").write_text("post_hooks: []\n")
    command = [sys.executable, "-m", "openapi_python_client", "generate", "--path", folder / "document.json", "--config", folder / "config.yml"]
    done = subprocess.run([*command, "--meta", "none", "--output-path", folder / "tei_client"], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0 and "WARNING" not in done.stdout, done.stdout + done.stderr
    sys.path.insert(0, str(folder))
    client, models = importlib.import_module("tei_client.client"), importlib.import_module("tei_client.models")
    kinds = {operation: request for operation, request, *_ in tei_document.POSTS.values()}
    with serving.Server(folder / "server.log", text_models.make(folder / "models")) as server:

        def operation(name, model, **body):
            call = importlib.import_module(f"tei_client.api.tei.{name}").sync_detailed
            if name in kinds:
                body = dict(body=getattr(models, kinds[name])(**body))
            path = f"/models/{model}" if model else ""
            return call(client=client.Client(base_url=f"http://127.0.0.1:{server.port}{path}"), **body)

        operation.models = models
        yield operation
    sys.path.remove(str(folder))
    shutil.rmtree(folder / "tei_client")


def test_embeddings(tei):
    near(tei("embed", "embed", inputs=["a", "b c"]).parsed, [unit(embedding("a")), unit(embedding("b c"))])
    near(tei("embed", "embed", inputs=ids_of("a")[0], normalize=False).parsed, [embedding("a")])
    near(tei("embed_all", "hidden", inputs="a").parsed, [TABLE[ids_of("a")[0]]])
    sparse = tei("embed_sparse", "sparse", inputs="a").parsed[0]
    assert sparse and all(s.value > 0 and isinstance(s.index, int) for s in sparse)
    found = tei("openai_embed", "embed", input_="a").parsed
    near(found.data[0].embedding, unit(embedding("a")))
    assert found.usage.total_tokens == 3 and found.model == "embed"


def test_scores(tei):
    models = tei.models
    assert {p.label for p in tei("predict", "classify", inputs="a").parsed} == set(text_models.LABELS)
    assert [len(p) for p in tei("predict", "classify", inputs=[["a"], ["a", "b"]]).parsed] == [3, 3]
    ranks = tei("rerank", "rank", query="a", texts=["b", "c"], return_text=True).parsed
    assert {r.text for r in ranks} == {"b", "c"} and ranks[0].score >= ranks[1].score
    inputs = models.SimilarityInput(source_sentence="a", sentences=["a", "b"])
    parameters = models.SimilarityParameters(truncation_direction=models.TruncationDirection.LEFT)
    for more in ({}, dict(parameters=parameters)):
        near(tei("similarity", "embed", inputs=inputs, **more).parsed, [1, unit(embedding("a")) @ unit(embedding("b"))])


def test_tokens(tei):
    token = tei("tokenize", "embed", inputs="a cat").parsed[0][2]
    assert (token.id, token.text, token.special, token.start, token.stop) == (text_models.ID["cat"], "cat", False, 2, 5)
    assert tei("decode", "embed", ids=ids_of("a cat")[0]).parsed == ["a cat"]


def test_the_server(tei):
    for model, kind in dict(embed="embedding", rank="reranker", classify="classifier", sparse="embedding").items():
        info = tei("get_model_info", model).parsed
        assert info.model_id == model and hasattr(info.model_type, kind) and info.max_client_batch_size == 32
    assert tei("health", "embed").status_code == 200 and tei("metrics", None).status_code == 200


def test_errors_have_the_type_of_the_document(tei):
    kind = tei.models.ErrorType
    wrong = {
        (413, kind.VALIDATION): tei("embed", "embed", inputs="cat " * 100),
        (422, kind.VALIDATION): tei("embed", "embed", inputs="a", prompt_name="nobody"),
        (424, kind.BACKEND): tei("rerank", "embed", query="a", texts=["b"]),
    }
    for (status, error_type), answer in wrong.items():
        assert (answer.status_code, answer.parsed.error_type) == (status, error_type) and answer.parsed.error

