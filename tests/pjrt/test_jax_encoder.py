"""An encoder written in JAX, with Flax or without, exported by tools/export_jax.py and served from end to end: beside JAX's own results."""
import os
import sys

import devices
import numpy
import pytest
import serving
from conftest import PLUGIN

os.environ.setdefault("JAX_PLATFORMS", "cpu")
jax = pytest.importorskip("jax", reason="jax (tests/pjrt/requirements.txt) is not installed")
sys.path.insert(0, str(serving.ROOT / "tools"))
import export_jax  # noqa: E402

VOCABULARY, POSITIONS, HIDDEN, HEADS, INNER, LAYERS = 90, 32, 32, 4, 64, 2
INPUTS = [export_jax.read_input(f"input_ids:INT32[batch,sequence]<{VOCABULARY}"), export_jax.read_input("attention_mask:INT32[batch,sequence]")]
BUCKETS = [(1, 8), (4, 8), (4, 16)]


def parameters():
    """As Flax names them."""
    random = numpy.random.default_rng(0)

    def values(*shape):
        return (random.standard_normal(shape) / numpy.sqrt(shape[0])).astype(numpy.float32)

    def dense(*shape, width=1):
        return dict(kernel=values(*shape), bias=values(*shape[width:]))

    def norm():
        return dict(scale=1 + values(HIDDEN), bias=values(HIDDEN))

    part = (HIDDEN, HEADS, HIDDEN // HEADS)
    attention = lambda: dict(query=dense(*part), key=dense(*part), value=dense(*part), out=dense(HEADS, HIDDEN // HEADS, HIDDEN, width=2))
    layer = lambda: dict(attention=attention(), attention_norm=norm(), up=dense(HIDDEN, INNER), down=dense(INNER, HIDDEN), norm=norm())
    tables = dict(words=dict(embedding=values(VOCABULARY, HIDDEN)), positions=dict(embedding=values(POSITIONS, HIDDEN)))
    return dict(params=tables | dict(norm=norm()) | {f"layer_{i}": layer() for i in range(LAYERS)})


def normalise(p, x):
    mean = x.mean(-1, keepdims=True)
    return (x - mean) / jax.numpy.sqrt(((x - mean) ** 2).mean(-1, keepdims=True) + 1e-6) * p["scale"] + p["bias"]


def attend(p, x, mask):
    query, key, value = (jax.numpy.einsum("bsh,hnd->bsnd", x, p[name]["kernel"]) + p[name]["bias"] for name in ("query", "key", "value"))
    scores = jax.numpy.einsum("bqnd,bknd->bnqk", query, key) / numpy.sqrt(HIDDEN // HEADS)
    weights = jax.nn.softmax(jax.numpy.where(mask[:, None, None, :] > 0, scores, -1e9), -1)
    return jax.numpy.einsum("bnqk,bknd,ndh->bqh", weights, value, p["out"]["kernel"]) + p["out"]["bias"]


def plain(params, input_ids, attention_mask):
    """Sentence embeddings of length one, without Flax."""
    p = params["params"]
    x = jax.numpy.take(p["words"]["embedding"], input_ids, axis=0) + p["positions"]["embedding"][: input_ids.shape[1]]
    x = normalise(p["norm"], x)
    for i in range(LAYERS):
        l = p[f"layer_{i}"]
        x = normalise(l["attention_norm"], x + attend(l["attention"], x, attention_mask))
        up = jax.nn.gelu(x @ l["up"]["kernel"] + l["up"]["bias"])
        x = normalise(l["norm"], x + up @ l["down"]["kernel"] + l["down"]["bias"])
    real = attention_mask[..., None].astype(x.dtype)
    mean = (x * real).sum(1) / real.sum(1)
    return mean / jax.numpy.linalg.norm(mean, axis=1, keepdims=True)


def in_flax():
    """The same as a module of Flax, whose parameters have the same names."""
    linen = pytest.importorskip("flax.linen", reason="flax is not installed: it is too large for every run of the tests")

    class Layer(linen.Module):
        @linen.compact
        def __call__(self, x, mask):
            attention = linen.MultiHeadDotProductAttention(HEADS, name="attention")
            x = linen.LayerNorm(name="attention_norm")(x + attention(x, mask=mask[:, None, None, :] > 0))
            up = linen.gelu(linen.Dense(INNER, name="up")(x))
            return linen.LayerNorm(name="norm")(x + linen.Dense(HIDDEN, name="down")(up))

    class Encoder(linen.Module):
        @linen.compact
        def __call__(self, input_ids, attention_mask):
            positions = jax.numpy.arange(input_ids.shape[1])
            x = linen.Embed(VOCABULARY, HIDDEN, name="words")(input_ids) + linen.Embed(POSITIONS, HIDDEN, name="positions")(positions)
            x = linen.LayerNorm(name="norm")(x)
            for i in range(LAYERS):
                x = Layer(name=f"layer_{i}")(x, attention_mask)
            real = attention_mask[..., None].astype(x.dtype)
            mean = (x * real).sum(1) / real.sum(1)
            return mean / jax.numpy.linalg.norm(mean, axis=1, keepdims=True)

    return Encoder().apply


@pytest.mark.parametrize("written", ["plain", "flax"])
def test_an_encoder_is_served_as_jax_computes_it(tmp_path, written):
    encode, params = plain if written == "plain" else in_flax(), parameters()
    model = tmp_path / "models"
    export_jax.export(encode, model / "1", INPUTS, BUCKETS, params, ["embedding"], ["attention_mask"], platform="cpu")
    cache = ["--device", f"pjrt:{PLUGIN}", "--cache", str(tmp_path / "cache")]
    random = numpy.random.default_rng(1)
    requests = []
    for rows, length in ((1, 1), (1, 8), (3, 5), (4, 16), (2, 11)):
        ids = random.integers(0, VOCABULARY, (rows, length), dtype=numpy.int32)
        requests.append(dict(input_ids=ids, attention_mask=numpy.ones_like(ids)))
    for start in ("first", "second"):
        with serving.Server(tmp_path / f"{start}.log", dict(encoder=model), *cache) as server:
            for request in requests:
                wanted = numpy.asarray(encode(params, request["input_ids"], request["attention_mask"]))
                numpy.testing.assert_allclose(server.infer("encoder", request)["embedding"], wanted, atol=2e-5)
            found = devices.metrics(server)
        assert devices.total(found, "device_compiles_total", device="pjrt:0") == (len(BUCKETS) if start == "first" else 0)
        assert devices.total(found, "fallbacks_total") == 0
