"""The encoders that compare.py compiles, by both sides."""
SHAPES = dict(  # hidden, heads, intermediate, layers
    minilm=(384, 12, 1536, 6),
    bert_base=(768, 12, 3072, 12),
    bert_large=(1024, 16, 4096, 24),
)
VOCABULARY, POSITIONS = 30522, 512
EPSILON = 1e-12
