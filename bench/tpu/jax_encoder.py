"""BERT's encoder as a JAX user writes it for a TPU: what compare.py compiles beside Penstock's programs.

`plain`: matrix multiplications in bf16 with f32 sums; GELU by erf, layer normalisation and softmax in f32.
`tuned`: GELU by tanh in bf16, softmax divided by its sum after the product with the values, layer normalisation in one pass.
"""
import jax
import jax.numpy as jnp
import numpy
from jax import lax

from shapes import EPSILON, POSITIONS, SHAPES, VOCABULARY

STYLES = ("plain", "tuned")


def parameters(model, layers, seed=0):
    """Random ones: what a compiler estimates does not depend on them."""
    hidden, _, inner, _ = SHAPES[model]
    random = numpy.random.default_rng(seed)

    def values(*shape):
        return (0.02 * random.standard_normal(shape, numpy.float32)).astype(numpy.float32)

    def dense(rows, columns):
        return dict(kernel=values(rows, columns).astype(jnp.bfloat16), bias=values(columns))

    def norm():
        return dict(scale=1 + values(hidden), bias=values(hidden))

    names = dict(query=(hidden, hidden), key=(hidden, hidden), value=(hidden, hidden), output=(hidden, hidden), up=(hidden, inner), down=(inner, hidden))
    return dict(
        word=values(VOCABULARY, hidden), position=values(POSITIONS, hidden), type=values(2, hidden), norm=norm(),
        layers=[{name: dense(*shape) for name, shape in names.items()} | dict(norm1=norm(), norm2=norm()) for _ in range(layers)],
    )  # fmt: skip


def dense(p, x):
    return lax.dot_general(x.astype(jnp.bfloat16), p["kernel"], (((x.ndim - 1,), (0,)), ((), ())), preferred_element_type=jnp.float32) + p["bias"]


def gelu(x, style):
    if style == "plain":
        return jax.nn.gelu(x, approximate=False)
    return jax.nn.gelu(x.astype(jnp.bfloat16), approximate=True)


def normalise(p, x, style):
    mean = jnp.mean(x, -1, keepdims=True)
    if style == "plain":
        variance = jnp.mean(jnp.square(x - mean), -1, keepdims=True)
    else:
        variance = jnp.maximum(jnp.mean(jnp.square(x), -1, keepdims=True) - jnp.square(mean), 0)
    return (x - mean) * lax.rsqrt(variance + EPSILON) * p["scale"] + p["bias"]


def attention(p, x, bias, heads, style):
    def split(name):
        y = dense(p[name], x).astype(jnp.bfloat16)
        return y.reshape(*y.shape[:2], heads, -1)

    query, key, value = split("query"), split("key"), split("value")
    scores = jnp.einsum("bqhd,bkhd->bhqk", query, key, preferred_element_type=jnp.float32) * query.shape[-1] ** -0.5 + bias
    if style == "plain":
        parts = jax.nn.softmax(scores, -1).astype(jnp.bfloat16)
        y = jnp.einsum("bhqk,bkhd->bqhd", parts, value, preferred_element_type=jnp.float32)
    else:
        raised = jnp.exp(scores - jnp.max(scores, -1, keepdims=True))
        sums = jnp.swapaxes(jnp.sum(raised, -1), 1, 2)[..., None]
        y = jnp.einsum("bhqk,bkhd->bqhd", raised.astype(jnp.bfloat16), value, preferred_element_type=jnp.float32) / sums
    return dense(p["output"], y.reshape(x.shape))


def encoder(heads, style):
    """params, ids, mask, types (i32 [batch, sequence]) -> [batch, hidden]: the mean over real tokens, of length one."""

    def encode(params, ids, mask, types):
        x = params["word"][ids] + params["type"][types] + params["position"][: ids.shape[1]]
        x = normalise(params["norm"], x, style)
        bias = jnp.where(mask[:, None, None, :] != 0, 0.0, -1e30).astype(jnp.float32)
        for p in params["layers"]:
            x = normalise(p["norm1"], x + attention(p, x, bias, heads, style), style)
            x = normalise(p["norm2"], x + dense(p["down"], gelu(dense(p["up"], x), style)), style)
        real = mask[..., None].astype(jnp.float32)
        mean = jnp.sum(x * real, 1) / jnp.maximum(jnp.sum(real, 1), 1)
        return mean / jnp.maximum(jnp.linalg.norm(mean, axis=-1, keepdims=True), 1e-12)

    return encode
