"""The architectures of the zoo: small, with random weights, each with inputs for any batch and length."""
import dataclasses
import functools

import numpy
import torch
from torch import nn
import torch.nn.functional as F

VOCABULARY = 120
SIZES = ((1, 7), (3, 12), (5, 5), (2, 31))  # (batch, length) of the cases


@dataclasses.dataclass
class Architecture:
    name: str
    build: object  # () -> nn.Module
    inputs: object  # (batch, length, random) -> {name: array}
    batched: object = None  # names of the inputs with a batch axis; None: all
    lengths: dict = dataclasses.field(default_factory=dict)  # {input: axis of the length}
    outputs: tuple = ("output",)
    output_axes: dict = dataclasses.field(default_factory=dict)  # {output: {axis: name}} beyond the batch
    exporters: tuple = ("legacy-17", "dynamo")
    sizes: tuple = SIZES
    fixed: bool = False  # exported without dynamic axes, at the first size
    note: str = ""


REGISTRY = {}
ALL_OPSETS = ("legacy-11", "legacy-13", "legacy-14", "legacy-17", "legacy-18", "legacy-20", "dynamo")


def floats(*dims, name="x"):
    return lambda b, s, r: {name: r.standard_normal((b,) + dims).astype(numpy.float32)}


def add(name, build, inputs, **more):
    REGISTRY[name] = Architecture(name, build, inputs, **more)


# Multilayer perceptrons and small parts.

class Wrapped(nn.Module):
    """A function as a module."""

    def __init__(self, call, **parts):
        super().__init__()
        self.parts = nn.ModuleDict(parts)
        self.call = call

    def forward(self, *x):
        return self.call(self.parts, *x)


def mlp():
    return nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.BatchNorm1d(32), nn.Dropout(0.1), nn.Linear(32, 16), nn.GELU(), nn.LayerNorm(16),
                         nn.Linear(16, 3), nn.Softmax(-1))


def activations():
    kinds = [nn.SiLU, nn.Mish, nn.ELU, nn.SELU, nn.CELU, nn.Hardswish, nn.Hardsigmoid, nn.Softplus, nn.Softsign, nn.LeakyReLU, nn.PReLU,
             nn.Tanh, nn.ReLU6, lambda: nn.GELU(approximate="tanh"), nn.LogSigmoid, nn.Hardtanh]
    layers = []
    for kind in kinds:
        layers += [nn.Linear(10, 10), kind()]
    return nn.Sequential(*layers)


add("mlp", mlp, floats(12), exporters=ALL_OPSETS)
add("mlp-activations", activations, floats(10), exporters=("legacy-14", "legacy-20", "dynamo"))
add("mlp-fixed-batch-1", mlp, floats(12), fixed=True, sizes=((1, 1),))
add("two-inputs", lambda: Wrapped(lambda p, a, b: torch.cat([p["a"](a), p["b"](b)], -1).softmax(-1), a=nn.Linear(4, 5), b=nn.Linear(6, 5)),
    lambda b, s, r: {"a": r.standard_normal((b, 4)).astype("f4"), "b": r.standard_normal((b, 6)).astype("f4")})
add("many-outputs", lambda: Wrapped(lambda p, x: (p["a"](x), p["a"](x).argmax(-1), p["a"](x).topk(2)[0], p["a"](x).sum(-1), p["a"](x) > 0),
                                    a=nn.Linear(6, 5)),
    floats(6), outputs=("logits", "label", "best", "total", "positive"))
add("scalar-output", lambda: Wrapped(lambda p, x: (p["a"](x), p["a"](x).mean()), a=nn.Linear(6, 5)), floats(6), outputs=("logits", "mean"))
add("uint8-image", lambda: Wrapped(lambda p, x: p["a"]((x.permute(0, 3, 1, 2).float() / 255 - 0.5) / 0.25).mean((2, 3)), a=nn.Conv2d(3, 4, 3)),
    lambda b, s, r: {"image": r.integers(0, 256, (b, 12, 12, 3)).astype(numpy.uint8)})
add("bool-input", lambda: Wrapped(lambda p, x, m: p["a"](x.masked_fill(~m, -1.0)), a=nn.Linear(6, 5)),
    lambda b, s, r: {"x": r.standard_normal((b, 6)).astype("f4"), "keep": r.random((b, 6)) > 0.3})
add("int32-input", lambda: Wrapped(lambda p, x: p["a"](x).mean(1), a=nn.Embedding(20, 6)),
    lambda b, s, r: {"ids": r.integers(0, 20, (b, 9)).astype(numpy.int32)})
add("float16", lambda: mlp().half(), lambda b, s, r: {"x": r.standard_normal((b, 12)).astype(numpy.float16)})
add("float64", lambda: nn.Sequential(nn.Linear(12, 8), nn.Tanh(), nn.Linear(8, 3)).double(), lambda b, s, r: {"x": r.standard_normal((b, 12))})
add("wide-and-deep", lambda: Wrapped(lambda p, d, c: p["h"](torch.cat([d, p["e"](c).flatten(1)], 1)), e=nn.Embedding(30, 4), h=mlp()),
    lambda b, s, r: {"dense": r.standard_normal((b, 4)).astype("f4"), "categories": r.integers(0, 30, (b, 2))})


class FactorizationMachine(nn.Module):
    def __init__(self):
        super().__init__()
        self.e, self.w = nn.Embedding(40, 6), nn.Embedding(40, 1)

    def forward(self, ids):
        v = self.e(ids) * 0.3
        return torch.sigmoid(self.w(ids).sum(1).squeeze(-1) + 0.5 * (v.sum(1) ** 2 - (v ** 2).sum(1)).sum(-1))


add("factorization-machine", FactorizationMachine, lambda b, s, r: {"ids": r.integers(0, 40, (b, 7))})

add("squeeze-of-a-length", lambda: Wrapped(lambda p, x: p["a"](x.squeeze(1).flatten(1).mean(1, keepdim=True)), a=nn.Linear(1, 3)),
    lambda b, s, r: {"x": r.standard_normal((b, s, 4)).astype("f4")}, lengths={"x": 1}, exporters=("legacy-13", "legacy-17"),
    sizes=SIZES + ((3, 1), (1, 1)))

# Convolutional networks.


def lenet():
    return nn.Sequential(nn.Conv2d(1, 6, 5, padding=2), nn.Tanh(), nn.AvgPool2d(2), nn.Conv2d(6, 16, 5), nn.Tanh(), nn.AvgPool2d(2), nn.Flatten(),
                         nn.Linear(16 * 5 * 5, 32), nn.Tanh(), nn.Linear(32, 10), nn.LogSoftmax(1))


def vision(kind, **more):
    import torchvision
    return lambda: getattr(torchvision.models, kind)(weights=None, num_classes=10, **more)


def resnet():
    from torchvision.models.resnet import ResNet, BasicBlock
    # A quarter of the channels of ResNet-18.
    net = ResNet.__new__(ResNet)
    nn.Module.__init__(net)
    net._norm_layer, net.inplanes, net.dilation, net.groups, net.base_width = nn.BatchNorm2d, 16, 1, 1, 64
    net.conv1, net.bn1 = nn.Conv2d(3, 16, 7, 2, 3, bias=False), nn.BatchNorm2d(16)
    net.relu, net.maxpool = nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)
    net.layer1 = net._make_layer(BasicBlock, 16, 2)
    net.layer2 = net._make_layer(BasicBlock, 24, 2, stride=2)
    net.layer3 = net._make_layer(BasicBlock, 32, 2, stride=2)
    net.layer4 = net._make_layer(BasicBlock, 48, 2, stride=2)
    net.avgpool, net.fc = nn.AdaptiveAvgPool2d(1), nn.Linear(48, 10)
    return net


def mobilenet_v3():
    from torchvision.models.mobilenetv3 import MobileNetV3, InvertedResidualConfig as C
    return MobileNetV3([C(16, 3, 16, 16, True, "RE", 2, 1, 0.5), C(16, 3, 36, 24, False, "RE", 2, 1, 0.5), C(24, 5, 48, 24, True, "HS", 2, 1, 0.5)],
                       64, num_classes=10)


def efficientnet():
    from torchvision.models.efficientnet import EfficientNet, MBConvConfig as C
    return EfficientNet([C(1, 3, 1, 8, 8, 1, 1, 1), C(4, 3, 2, 8, 12, 2, 1, 1), C(4, 5, 2, 12, 16, 1, 1, 1)], 0.1, num_classes=10, last_channel=64)


def densenet():
    from torchvision.models.densenet import DenseNet
    return DenseNet(growth_rate=8, block_config=(2, 3, 2), num_init_features=16, bn_size=2, num_classes=10)


def shufflenet():
    from torchvision.models.shufflenetv2 import ShuffleNetV2
    return ShuffleNetV2([2, 2, 2], [8, 16, 24, 32, 64], num_classes=10)


def convnext():
    from torchvision.models.convnext import ConvNeXt, CNBlockConfig as C
    return ConvNeXt([C(16, 24, 1), C(24, 32, 2), C(32, None, 1)], num_classes=10)


def regnet():
    from torchvision.models.regnet import RegNet, BlockParams
    return RegNet(BlockParams([1, 2], [16, 24], [8, 8], [1.0, 1.0], [2, 2], 0.25), num_classes=10)


def vgg():
    from torchvision.models.vgg import make_layers
    return nn.Sequential(make_layers([8, "M", 16, "M", 24, 24, "M", 32, "M"], batch_norm=True), nn.AdaptiveAvgPool2d(3), nn.Flatten(),
                         nn.Linear(288, 32), nn.ReLU(True), nn.Dropout(), nn.Linear(32, 10))


def vit_torchvision():
    from torchvision.models import VisionTransformer
    net = VisionTransformer(32, 8, 2, 2, 32, 64, num_classes=10)
    nn.init.normal_(net.heads.head.weight)
    return net


def swin():
    from torchvision.models import SwinTransformer
    return SwinTransformer([4, 4], 16, [1, 1], [2, 2], [4, 4], num_classes=10)


class UNet(nn.Module):
    def __init__(self, upsample):
        super().__init__()
        block = lambda i, o: nn.Sequential(nn.Conv2d(i, o, 3, padding=1), nn.BatchNorm2d(o), nn.ReLU())
        self.down1, self.down2, self.middle = block(3, 8), block(8, 16), block(16, 16)
        self.up1 = nn.ConvTranspose2d(16, 16, 2, 2) if upsample == "transpose" else nn.Upsample(scale_factor=2, mode=upsample)
        self.up2 = nn.ConvTranspose2d(8, 8, 3, 2, 1, 1) if upsample == "transpose" else nn.Upsample(scale_factor=2, mode=upsample)
        self.join1, self.join2, self.head = block(32, 8), block(16, 8), nn.Conv2d(8, 2, 1)

    def forward(self, x):
        a = self.down1(x)
        b = self.down2(F.max_pool2d(a, 2))
        c = self.join1(torch.cat([self.up1(self.middle(F.max_pool2d(b, 2))), b], 1))
        return self.head(self.join2(torch.cat([self.up2(c), a], 1)))


class SizeMatchingSegmenter(nn.Module):
    """DeepLab's way: interpolate to the size of the input."""

    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Conv2d(3, 8, 3, 2, 1, dilation=1), nn.Conv2d(8, 4, 3, padding=2, dilation=2)

    def forward(self, x):
        y = F.adaptive_avg_pool2d(F.relu(self.body(x)), 4)
        return F.interpolate(self.head(y), size=x.shape[-2:], mode="bilinear", align_corners=False)


class Conv1D(nn.Module):
    def __init__(self):
        super().__init__()
        self.e = nn.Embedding(VOCABULARY, 16)
        self.convs = nn.ModuleList([nn.Conv1d(16, 8, k, padding=k // 2) for k in (2, 3, 5)])
        self.head = nn.Linear(24, 4)

    def forward(self, ids):
        x = self.e(ids).transpose(1, 2)
        return self.head(torch.cat([F.relu(c(x)).amax(-1) for c in self.convs], 1))


def temporal():
    return nn.Sequential(nn.Conv1d(4, 16, 5, 2, 2), nn.BatchNorm1d(16), nn.ReLU(), nn.Conv1d(16, 16, 3, padding=2, dilation=2, groups=4), nn.GELU(),
                         nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(16, 3))


class GroupNormNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Conv2d(3, 8, 3, padding="same", padding_mode="reflect"), nn.Conv2d(8, 8, 3, groups=8, padding=1)
        self.n, self.i, self.s = nn.GroupNorm(4, 8), nn.InstanceNorm2d(8, affine=True), nn.PixelShuffle(2)
        self.u = nn.PixelUnshuffle(2)

    def forward(self, x):
        y = self.i(self.b(F.silu(self.n(self.a(x)))))
        return self.u(self.s(y)).std(dim=(2, 3))


add("lenet", lenet, floats(1, 28, 28), exporters=ALL_OPSETS)
add("resnet18-narrow", resnet, floats(3, 64, 64), exporters=ALL_OPSETS)
add("resnet-fixed-batch-1", resnet, floats(3, 64, 64), fixed=True, sizes=((1, 1),))
add("mobilenet-v2", vision("mobilenet_v2", width_mult=0.1), floats(3, 64, 64), exporters=("legacy-11", "legacy-18", "dynamo"))
add("mobilenet-v3", mobilenet_v3, floats(3, 64, 64), exporters=("legacy-13", "legacy-14", "legacy-20", "dynamo"))
add("efficientnet-small", efficientnet, floats(3, 64, 64), exporters=("legacy-13", "dynamo"))
add("vgg-narrow", vgg, floats(3, 48, 48))
add("densenet-small", densenet, floats(3, 64, 64), exporters=("legacy-11", "dynamo"))
add("squeezenet", vision("squeezenet1_1"), floats(3, 64, 64), exporters=("legacy-14",))
add("shufflenet-v2", shufflenet, floats(3, 64, 64), exporters=("legacy-11", "legacy-17", "dynamo"))
add("convnext-small", convnext, floats(3, 64, 64), exporters=("legacy-14", "legacy-17", "dynamo"))
add("regnet-small", regnet, floats(3, 64, 64), exporters=("legacy-18", "dynamo"))
add("vit", vit_torchvision, floats(3, 32, 32), exporters=("legacy-14", "legacy-17", "dynamo"))
add("swin", swin, floats(3, 32, 32), exporters=("legacy-17", "dynamo"))
add("unet-transpose", lambda: UNet("transpose"), floats(3, 32, 32), exporters=("legacy-11", "legacy-18", "dynamo"))
add("unet-nearest", lambda: UNet("nearest"), floats(3, 32, 32), exporters=("legacy-11", "legacy-13", "legacy-18", "dynamo"))
add("unet-bilinear", lambda: UNet("bilinear"), floats(3, 32, 32), exporters=("legacy-11", "legacy-13", "legacy-18", "dynamo"))
add("unet-bicubic", lambda: UNet("bicubic"), floats(3, 32, 32), exporters=("legacy-13", "dynamo"))
add("segmenter", SizeMatchingSegmenter, floats(3, 40, 40), exporters=("legacy-13", "legacy-17", "dynamo"))
add("text-cnn", Conv1D, lambda b, s, r: {"ids": r.integers(0, VOCABULARY, (b, s))}, lengths={"ids": 1})
add("temporal-cnn", temporal, floats(4, 50))
add("group-norm", GroupNormNet, floats(3, 16, 16), exporters=("legacy-17", "legacy-20", "dynamo"))
add("conv3d", lambda: nn.Sequential(nn.Conv3d(1, 4, 3), nn.ReLU(), nn.MaxPool3d(2), nn.Flatten(), nn.Linear(4 * 27, 3)), floats(1, 8, 8, 8))
add("autoencoder", lambda: nn.Sequential(nn.Conv2d(1, 8, 3, 2, 1), nn.ReLU(), nn.Conv2d(8, 4, 3, 2, 1), nn.ReLU(), nn.ConvTranspose2d(4, 8, 4, 2, 1),
                                         nn.ReLU(), nn.ConvTranspose2d(8, 1, 4, 2, 1), nn.Sigmoid()), floats(1, 28, 28))

# Recurrent networks.


class Recurrent(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.e, self.r = nn.Embedding(VOCABULARY, 12), kind(12, 16, batch_first=True, bidirectional=True)
        self.head = nn.Linear(32, 3)

    def forward(self, ids):
        return self.head(self.r(self.e(ids))[0].mean(1))


for kind in (nn.LSTM, nn.GRU, nn.RNN):
    add(kind.__name__.lower(), functools.partial(Recurrent, kind), lambda b, s, r: {"ids": r.integers(0, VOCABULARY, (b, s))}, lengths={"ids": 1})

# Transformers of our own: PyTorch's encoder layer, pooling inside.


class TorchEncoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.e = nn.Embedding(VOCABULARY, 32)
        self.p = nn.Parameter(torch.randn(1, 64, 32))
        layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True, activation="gelu", norm_first=True)
        self.layers = nn.ModuleList([nn.TransformerEncoderLayer(32, 4, 64, batch_first=True, activation="gelu", norm_first=i == 0) for i in range(2)])

    def forward(self, input_ids, attention_mask):
        x = self.e(input_ids) + self.p[:, :input_ids.shape[1]]
        padding = attention_mask == 0
        for layer in self.layers:
            x = layer(x, src_key_padding_mask=padding)
        m = attention_mask.unsqueeze(-1).float()
        return F.normalize((x * m).sum(1) / m.sum(1).clamp(min=1e-9), dim=-1)


def tokens(types=False, first=3):
    def make(b, s, r):
        mask = numpy.ones((b, s), numpy.int64)
        for i in range(b):
            mask[i, max(1, s - 2 * i):] = 0
        result = {"input_ids": r.integers(first, VOCABULARY, (b, s)) * mask + (1 - mask) * (1 if first == 3 else 0), "attention_mask": mask}
        if types:
            result["token_type_ids"] = (numpy.arange(s)[None, :] > s // 2).astype(numpy.int64) * mask
        return result
    return make


LENGTHS = {"input_ids": 1, "attention_mask": 1, "token_type_ids": 1}
add("torch-encoder", TorchEncoder, tokens(), lengths=LENGTHS, exporters=("legacy-14", "legacy-17", "dynamo"))


class Causal(nn.Module):
    def __init__(self):
        super().__init__()
        self.e, self.q, self.o = nn.Embedding(VOCABULARY, 32), nn.Linear(32, 96), nn.Linear(32, VOCABULARY)

    def forward(self, input_ids):
        x = self.e(input_ids)
        b, s, _ = x.shape
        q, k, v = self.q(x).view(b, s, 3, 4, 8).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.o(x + y.transpose(1, 2).reshape(b, s, 32))


add("causal-attention", Causal, lambda b, s, r: {"input_ids": r.integers(0, VOCABULARY, (b, s))}, lengths={"input_ids": 1}, outputs=("logits",),
    output_axes={"logits": {1: "sequence"}}, exporters=("legacy-14", "legacy-17", "dynamo"))

# Hugging Face models.

SMALL = dict(vocab_size=VOCABULARY, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64, max_position_embeddings=64,
             attn_implementation="eager")


class Take(nn.Module):
    """A Hugging Face model with positional inputs and the outputs that are asked for."""

    def __init__(self, net, names, pick):
        super().__init__()
        self.net, self.names, self.pick = net, names, pick

    def forward(self, *values):
        named = dict(zip(self.names, values))
        return self.pick(self.net(**named), named)


class Take2(Take):
    def forward(self, input_ids, attention_mask):
        named = {"input_ids": input_ids, "attention_mask": attention_mask}
        return self.pick(self.net(**named), named)


class Take3(Take):
    def forward(self, input_ids, attention_mask, token_type_ids):
        named = {"input_ids": input_ids, "attention_mask": attention_mask, "token_type_ids": token_type_ids}
        return self.pick(self.net(**named), named)


class TakeImage(Take):
    def forward(self, pixel_values):
        return self.pick(self.net(pixel_values=pixel_values), {})


def mean_pool(result, named):
    m = named["attention_mask"].unsqueeze(-1).float()
    return F.normalize((result.last_hidden_state * m).sum(1) / m.sum(1).clamp(min=1e-9), p=2, dim=1)


def hugging(model, config, pick, types=False, **more):
    def build():
        import transformers
        torch.manual_seed(7)
        c = getattr(transformers, config)(**{k: v for k, v in {**SMALL, **more}.items() if v is not None})
        net = getattr(transformers, model)(c).eval()
        with torch.no_grad():  # the default of 0.02 would leave every answer near zero
            for p in net.parameters():
                if p.dim() > 1:
                    p.mul_(6)
        return (Take3 if types else Take2)(net, None, pick)
    return build


hidden = lambda r, n: r.last_hidden_state
pooled = lambda r, n: (r.last_hidden_state, r.pooler_output)
logits = lambda r, n: r.logits
SEQ = {1: "sequence"}


def text(name, model, config, pick, types=False, outputs=("last_hidden_state",), axes=None, exporters=("legacy-17", "dynamo"), **more):
    axes = {o: SEQ for o in outputs if o in ("last_hidden_state",)} if axes is None else axes
    add(name, hugging(model, config, pick, types, **more), tokens(types), lengths=LENGTHS, outputs=outputs, output_axes=axes, exporters=exporters)


text("bert", "BertModel", "BertConfig", pooled, True, ("last_hidden_state", "pooler_output"), exporters=ALL_OPSETS)
text("bert-sdpa", "BertModel", "BertConfig", pooled, True, ("last_hidden_state", "pooler_output"), attn_implementation="sdpa",
     exporters=("legacy-14", "legacy-17", "dynamo"))
text("bert-mean-pooling", "BertModel", "BertConfig", mean_pool, True, ("sentence_embedding",), exporters=("legacy-14", "legacy-18", "dynamo"))
text("bert-sequence-classification", "BertForSequenceClassification", "BertConfig", logits, True, ("logits",), num_labels=3)
text("bert-token-classification", "BertForTokenClassification", "BertConfig", logits, True, ("logits",), {"logits": SEQ}, num_labels=5)
text("bert-question-answering", "BertForQuestionAnswering", "BertConfig", lambda r, n: (r.start_logits, r.end_logits), True,
     ("start_logits", "end_logits"), {"start_logits": SEQ, "end_logits": SEQ})
text("bert-masked-lm", "BertForMaskedLM", "BertConfig", logits, True, ("logits",), {"logits": SEQ})
text("roberta", "RobertaModel", "RobertaConfig", hidden, exporters=("legacy-14", "legacy-17", "dynamo"))
text("roberta-sequence-classification", "RobertaForSequenceClassification", "RobertaConfig", logits, outputs=("logits",))
text("xlm-roberta", "XLMRobertaModel", "XLMRobertaConfig", hidden)
text("distilbert", "DistilBertModel", "DistilBertConfig", hidden, dim=32, n_layers=2, n_heads=4, hidden_dim=64, exporters=("legacy-14", "legacy-17", "dynamo"))
text("distilbert-token-classification", "DistilBertForTokenClassification", "DistilBertConfig", logits, outputs=("logits",), axes={"logits": SEQ}, dim=32,
     n_layers=2, n_heads=4, hidden_dim=64)
text("albert", "AlbertModel", "AlbertConfig", hidden, True, embedding_size=16)
text("electra", "ElectraModel", "ElectraConfig", hidden, True, embedding_size=16)
text("mpnet", "MPNetModel", "MPNetConfig", hidden)
text("mpnet-mean-pooling", "MPNetModel", "MPNetConfig", mean_pool, outputs=("sentence_embedding",))
text("deberta-v2", "DebertaV2Model", "DebertaV2Config", hidden, True, relative_attention=True, position_buckets=16, norm_rel_ebd="layer_norm",
     share_att_key=True, pos_att_type=["p2c", "c2p"], position_biased_input=False)
text("deberta", "DebertaModel", "DebertaConfig", hidden, True, relative_attention=True, pos_att_type=["c2p", "p2c"])
text("mobilebert", "MobileBertModel", "MobileBertConfig", hidden, True, embedding_size=16, intra_bottleneck_size=16, true_hidden_size=16, num_attention_heads=4)
text("funnel", "FunnelBaseModel", "FunnelConfig", hidden, True, axes={}, num_hidden_layers=None, num_attention_heads=None, hidden_size=None, block_sizes=[1, 1], d_model=32, n_head=4, d_head=8, d_inner=64, num_decoder_layers=1)
text("t5-encoder", "T5EncoderModel", "T5Config", hidden, d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4)
text("modernbert", "ModernBertModel", "ModernBertConfig", hidden, local_attention=8, global_attn_every_n_layers=2, pad_token_id=0, cls_token_id=1,
     sep_token_id=2, bos_token_id=1, eos_token_id=2)
text("nomic-like-rope", "RoFormerModel", "RoFormerConfig", hidden, True, embedding_size=32)
text("gpt2", "GPT2LMHeadModel", "GPT2Config", logits, outputs=("logits",), axes={"logits": SEQ}, n_embd=32, n_layer=2, n_head=4, n_positions=64, use_cache=False)
text("layerdrop-xlm", "XLMModel", "XLMConfig", hidden, emb_dim=32, n_layers=2, n_heads=4)
text("camembert", "CamembertModel", "CamembertConfig", hidden)
text("squeezebert", "SqueezeBertModel", "SqueezeBertConfig", hidden, True, embedding_size=32)
text("ernie", "ErnieModel", "ErnieConfig", hidden, True)
text("nystromformer", "NystromformerModel", "NystromformerConfig", hidden, True, num_landmarks=4, segment_means_seq_len=4, conv_kernel_size=3)
text("fnet", "FNetModel", "FNetConfig", lambda r, n: r.last_hidden_state, exporters=("dynamo",))
text("clip-text", "CLIPTextModel", "CLIPTextConfig", pooled, outputs=("last_hidden_state", "pooler_output"), eos_token_id=2)
text("clip-text-projection", "CLIPTextModelWithProjection", "CLIPTextConfig", lambda r, n: r.text_embeds, outputs=("text_embeds",), eos_token_id=2,
     projection_dim=16)
del REGISTRY["fnet"]  # its forward takes no mask


def image_model(model, config, pick=hidden, **more):
    def build():
        import transformers
        torch.manual_seed(7)
        return TakeImage(getattr(transformers, model)(getattr(transformers, config)(**more)).eval(), None, pick)
    return build


VIT = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64, image_size=32, patch_size=8, attn_implementation="eager")
add("vit-hf", image_model("ViTForImageClassification", "ViTConfig", logits, **VIT), floats(3, 32, 32, name="pixel_values"), outputs=("logits",))
add("deit-hf", image_model("DeiTForImageClassification", "DeiTConfig", logits, **VIT), floats(3, 32, 32, name="pixel_values"), outputs=("logits",))
add("clip-vision", image_model("CLIPVisionModelWithProjection", "CLIPVisionConfig", lambda r, n: r.image_embeds, projection_dim=16, **VIT),
    floats(3, 32, 32, name="pixel_values"), outputs=("image_embeds",))
add("dinov2", image_model("Dinov2Model", "Dinov2Config", pooled, **VIT), floats(3, 32, 32, name="pixel_values"), outputs=("last_hidden_state", "pooler_output"))
