"""The learner's transformer in PyTorch: what our own kernels are compared with, in numbers and in speed.

Written for a reader who wants to see that it is the same model: one function per formula, gradients by autograd.
"""
import collections
import math

import numpy
import torch
import torch.nn.functional as F

RMS_NORM_EPSILON = 1e-5

Shape = collections.namedtuple("Shape", "layers width heads mlp_width vocabulary context")


def parameter_shapes(shape):
    """Every parameter in the order in which the learner lays them out; matrices are [out][in]."""
    d, f = shape.width, shape.mlp_width
    shapes = {"token_table": (shape.vocabulary, d), "position_table": (shape.context, d)}
    for layer in range(shape.layers):
        shapes[f"layer{layer}.attention_gain"] = (d,)
        shapes[f"layer{layer}.qkv"] = (3 * d, d)
        shapes[f"layer{layer}.attention_out"] = (d, d)
        shapes[f"layer{layer}.mlp_gain"] = (d,)
        shapes[f"layer{layer}.mlp_up"] = (f, d)
        shapes[f"layer{layer}.mlp_down"] = (d, f)
    shapes["final_gain"] = (d,)
    shapes["head"] = (shape.vocabulary, d)
    return shapes


def recipe(stream, count):
    """`count` numbers in [-1, 1), multiples of 2^-19 so that a float holds them: made of integers by a hash that
    recipe_number() in torch_recipe.h repeats. No files need to be exchanged."""
    mask = numpy.uint64(0xFFFFFFFF)
    h = (numpy.arange(count, dtype=numpy.uint64) * numpy.uint64(0x9E3779B1) + numpy.uint64(stream * 0x7F4A7C15)) & mask
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        h ^= h >> numpy.uint64(shift)
        h = (h * numpy.uint64(factor)) & mask
    h ^= h >> numpy.uint64(16)
    return ((h >> numpy.uint64(12)).astype(numpy.float64) - 2.0**19) / 2.0**19


WEIGHT_STREAM = 1


def recipe_weights(shape, scale, dtype):
    """Parameters: gains are 1 + recipe / 4, everything else is `scale` * recipe."""
    shapes = parameter_shapes(shape)
    numbers = recipe(WEIGHT_STREAM, sum(math.prod(s) for s in shapes.values()))
    weights, begin = {}, 0
    for name, dimensions in shapes.items():
        count = math.prod(dimensions)
        part = numbers[begin:begin + count]
        part = 1.0 + 0.25 * part if name.endswith("gain") else scale * part
        weights[name] = torch.tensor(part.reshape(dimensions), dtype=dtype, requires_grad=True)
        begin += count
    return weights


def rms_norm(x, gain):
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + RMS_NORM_EPSILON) * gain


def causal_mask(tokens, dtype):
    return torch.full((tokens, tokens), -math.inf, dtype=dtype).triu(1)


def attention(qkv, heads, mask):
    """qkv [B][T][3 D], all of q, then k, then v, heads contiguous inside; the result is [B][T][D]."""
    sequences, tokens, width = qkv.shape[0], qkv.shape[1], qkv.shape[2] // 3
    head_width = width // heads
    q, k, v = qkv.view(sequences, tokens, 3, heads, head_width).permute(2, 0, 3, 1, 4).reshape(
        3, sequences * heads, tokens, head_width)
    scores = torch.baddbmm(mask, q, k.transpose(1, 2), alpha=head_width**-0.5)
    y = torch.bmm(scores.softmax(-1), v)
    return y.view(sequences, heads, tokens, head_width).transpose(1, 2).reshape(sequences, tokens, width)


def logits_of(weights, shape, tokens, mask):
    """tokens [B][T] to logits [B][T][V]."""
    x = F.embedding(tokens, weights["token_table"]) + weights["position_table"][:tokens.shape[1]]
    for layer in range(shape.layers):
        w = {name: weights[f"layer{layer}.{name}"] for name in
             ("attention_gain", "qkv", "attention_out", "mlp_gain", "mlp_up", "mlp_down")}
        y = attention(F.linear(rms_norm(x, w["attention_gain"]), w["qkv"]), shape.heads, mask)
        x = x + F.linear(y, w["attention_out"])
        x = x + F.linear(F.linear(rms_norm(x, w["mlp_gain"]), w["mlp_up"]).relu_(), w["mlp_down"])
    return F.linear(rms_norm(x, weights["final_gain"]), weights["head"])


# ---- objectives, to be maximised: the mean over the answer's tokens, then over sequences ---------------------------


def supervised(log_probability, answer):
    return (log_probability * answer / answer.sum(1, keepdim=True)).sum(1).mean()


def clipped(ratio, advantage, clip_low, clip_high):
    return torch.minimum(ratio * advantage, ratio.clamp(1 - clip_low, 1 + clip_high) * advantage)


def grpo(log_probability, old_log_probability, advantage, answer, clip_low=0.2, clip_high=0.2):
    """Shao et al. 2024, with one ratio per token."""
    ratio = (log_probability - old_log_probability).exp()
    gain = clipped(ratio, advantage[:, None], clip_low, clip_high)
    return (gain * answer / answer.sum(1, keepdim=True)).sum(1).mean()


def grpo_of_sequences(log_probability, old_log_probability, advantage, answer, clip_low=0.2, clip_high=0.2):
    """One ratio per sequence, the product of its tokens'; divided by the answer's length as the others are."""
    ratio = ((log_probability - old_log_probability) * answer).sum(1).exp()
    return (clipped(ratio, advantage, clip_low, clip_high) / answer.sum(1)).mean()


def asymre(log_probability, advantage, answer):
    """Arnal et al. 2025: no ratio; the shift of the baseline is in the advantage."""
    return (advantage[:, None] * log_probability * answer / answer.sum(1, keepdim=True)).sum(1).mean()
