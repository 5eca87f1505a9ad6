#!/usr/bin/python3
"""The learner's work done by PyTorch on one CPU thread: the peer that tests/benchmarks/learner.cpp races against.

    torch_cpu_peer.py LAYERS WIDTH HEADS MLP VOCABULARY CONTEXT PROMPT SEQUENCES COPIES

Says `ready ...` or `unfit REASON`, then answers lines on stdin until it ends:
    train N       N updates    ->  WALL_S CPU_S GRADIENT_NORM    (the norm of the last update, before clipping)
    generate N    N times SEQUENCES answers  ->  WALL_S CPU_S MEAN_LOG_PROBABILITY

Eager PyTorch as one would tune it: fused projections, scale and mask within the product, RMSNorm with its derivative
written down so that fewer temporaries are kept, foreach AdamW, gradients set to None; for generation a preallocated
cache, prompts computed once for all their copies, and for the decoding attention whichever of two ways is faster here.
"""
import math
import sys
import time

try:
    import torch
except ImportError:
    print("unfit PyTorch (Debian: python3-torch) is not installed", flush=True)
    sys.exit(0)
import torch.nn.functional as F

sys.dont_write_bytecode = True
sys.path.insert(0, __file__.rsplit("/", 2)[0] + "/model")
import torch_model as model

WEIGHT_SCALE = 0.1
TOKENS_STREAM, ADVANTAGE_STREAM = 2, 3
CLIP = 0.2
LEARNING_RATE = 1e-6  # the clipped objective must not run out of gradient, however many updates are timed


def matrix_library():
    """The file that multiplies matrices, and whether it is worth racing: the reference BLAS is ten times too slow."""
    with open("/proc/self/maps", encoding="utf-8") as maps:
        loaded = {line.split("/")[-1].strip() for line in maps if ".so" in line}
    fast = sorted(name for name in loaded if name.startswith(("libopenblas", "libmkl", "libblis")))
    if fast:
        return fast[0], True
    return ("MKL", True) if torch.backends.mkl.is_available() else ("the reference BLAS", False)


class RmsNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, gain):
        scale = x.square().mean(-1, keepdim=True).add_(model.RMS_NORM_EPSILON).rsqrt_()
        normal = x * scale
        ctx.save_for_backward(normal, scale, gain)
        return normal * gain

    @staticmethod
    def backward(ctx, dy):
        normal, scale, gain = ctx.saved_tensors
        along = dy * normal
        gain_gradient = along.flatten(0, -2).sum(0)
        shrink = (along @ gain).unsqueeze(-1).mul_(1.0 / gain.numel())
        return (dy * gain).addcmul_(normal, shrink, value=-1.0).mul_(scale), gain_gradient


class Training:
    """Updates by the clipped objective on one batch of full-length answers."""

    def __init__(self, shape, prompt, sequences):
        self.shape, rows = shape, shape.context - 1
        self.weights = model.recipe_weights(shape, WEIGHT_SCALE, torch.float32)
        self.mask = model.causal_mask(rows, torch.float32)
        numbers = (model.recipe(TOKENS_STREAM, sequences * shape.context) + 1.0) / 2.0 * shape.vocabulary
        tokens = torch.tensor(numbers.astype(int).reshape(sequences, shape.context))
        self.inputs, self.targets = tokens[:, :-1].contiguous(), tokens[:, 1:].reshape(-1)
        self.old = torch.full((sequences * rows,), -math.log(shape.vocabulary))
        weight = torch.zeros(sequences, rows)
        weight[:, prompt - 1:] = 1.0 / (sequences * (rows - prompt + 1))
        self.weighted_advantage = torch.tensor(model.recipe(ADVANTAGE_STREAM, sequences), dtype=torch.float32)[:, None]
        self.weighted_advantage = (weight * self.weighted_advantage).reshape(-1)
        self.optimizer = torch.optim.AdamW(self.weights.values(), lr=LEARNING_RATE, betas=(0.9, 0.99),
                                           weight_decay=0.0, foreach=True)

    def update(self):
        self.optimizer.zero_grad(set_to_none=True)
        logits = model.logits_of(self.weights, self.shape, self.inputs, self.mask).flatten(0, 1)
        log_probability = -F.cross_entropy(logits, self.targets, reduction="none")
        ratio = (log_probability - self.old).exp()
        gain = torch.minimum(ratio * self.weighted_advantage,
                             ratio.clamp(1 - CLIP, 1 + CLIP) * self.weighted_advantage)
        (-gain.sum()).backward()
        norm = torch.nn.utils.clip_grad_norm_(self.weights.values(), 1.0)
        self.optimizer.step()
        return norm


def attend_by_products(q, keys, values, scale):
    """q [B][H][1][d], caches [B][H][n][d]."""
    return torch.matmul(torch.matmul(q * scale, keys.transpose(2, 3)).softmax(-1), values)


def attend_by_sums(q, keys, values, scale):
    scores = (keys * (q * scale)).sum(-1, keepdim=True)
    return (scores.softmax(2) * values).sum(2, keepdim=True)


class Generation:
    """Sampled answers of full length, with a cache of keys and values."""

    def __init__(self, shape, weights, prompt, sequences, copies):
        self.shape, self.prompt, self.sequences, self.copies = shape, prompt, sequences, copies
        self.weights = {name: w.detach() for name, w in weights.items()}
        self.head_width = shape.width // shape.heads
        numbers = (model.recipe(TOKENS_STREAM, sequences // copies * prompt) + 1.0) / 2.0 * shape.vocabulary
        self.prompts = torch.tensor(numbers.astype(int).reshape(sequences // copies, prompt))
        self.mask = model.causal_mask(prompt, torch.float32)
        cache = (shape.layers, sequences, shape.heads, shape.context, self.head_width)
        self.keys, self.values = torch.zeros(cache), torch.zeros(cache)
        self.tokens = torch.zeros(sequences, shape.context, dtype=torch.long)
        self.attend = min((attend_by_products, attend_by_sums), key=self.seconds_of)

    def seconds_of(self, attend):
        n = (self.prompt + self.shape.context) // 2
        q = torch.ones(self.sequences, self.shape.heads, 1, self.head_width)
        times = []
        for _ in range(20):
            begin = time.process_time()
            attend(q, self.keys[0, :, :, :n], self.values[0, :, :, :n], 0.1)
            times.append(time.process_time() - begin)
        return min(times)

    def layers(self, x, attention):
        for layer in range(self.shape.layers):
            w = {name: self.weights[f"layer{layer}.{name}"] for name in
                 ("attention_gain", "qkv", "attention_out", "mlp_gain", "mlp_up", "mlp_down")}
            y = attention(layer, F.linear(model.rms_norm(x, w["attention_gain"]), w["qkv"]))
            x = x + F.linear(y, w["attention_out"])
            x = x + F.linear(F.relu_(F.linear(model.rms_norm(x, w["mlp_gain"]), w["mlp_up"])), w["mlp_down"])
        return x

    def logits_of(self, x):
        return F.linear(model.rms_norm(x, self.weights["final_gain"]), self.weights["head"])

    def prefill(self):
        """Logits after the prompts, one row per sequence."""
        def attention(layer, qkv):
            _, k, v = qkv.view(*qkv.shape[:2], 3, self.shape.heads, self.head_width).permute(2, 0, 3, 1, 4).unbind(0)
            self.keys[layer, :, :, :self.prompt] = k.repeat_interleave(self.copies, 0)
            self.values[layer, :, :, :self.prompt] = v.repeat_interleave(self.copies, 0)
            return model.attention(qkv, self.shape.heads, self.mask)

        x = F.embedding(self.prompts, self.weights["token_table"]) + self.weights["position_table"][:self.prompt]
        return self.logits_of(self.layers(x, attention)[:, -1]).repeat_interleave(self.copies, 0)

    def decode(self, tokens, position):
        def attention(layer, qkv):
            q, k, v = qkv.view(self.sequences, 3, self.shape.heads, self.head_width).unbind(1)
            self.keys[layer, :, :, position] = k
            self.values[layer, :, :, position] = v
            y = self.attend(q.unsqueeze(2), self.keys[layer, :, :, :position + 1],
                            self.values[layer, :, :, :position + 1], self.head_width**-0.5)
            return y.reshape(self.sequences, self.shape.width)

        x = F.embedding(tokens, self.weights["token_table"]) + self.weights["position_table"][position]
        return self.logits_of(self.layers(x, attention))

    def generate(self):
        """Mean log-probability of the tokens drawn."""
        log_probabilities = []
        logits = self.prefill()
        for position in range(self.prompt, self.shape.context):
            log_p = logits.log_softmax(-1)
            drawn = torch.multinomial(log_p.exp(), 1)
            log_probabilities.append(log_p.gather(1, drawn))
            self.tokens[:, position] = drawn[:, 0]
            if position + 1 < self.shape.context:
                logits = self.decode(drawn[:, 0], position)
        return torch.stack(log_probabilities).mean()


def timed(work, count):
    wall, cpu = time.perf_counter(), time.process_time()
    for _ in range(count):
        result = work()
    print(time.perf_counter() - wall, time.process_time() - cpu, float(result), flush=True)


def main(arguments):
    *dimensions, prompt, sequences, copies = (int(word) for word in arguments)
    shape = model.Shape(*dimensions)
    torch.set_num_threads(1)
    library, worth_racing = matrix_library()
    if not worth_racing:
        print(f"unfit PyTorch multiplies with {library} here: install libopenblas0-pthread", flush=True)
        return 0
    training = Training(shape, prompt, sequences)
    with torch.inference_mode():
        generation = Generation(shape, training.weights, prompt, sequences, copies)
    model.rms_norm, plain_rms_norm = RmsNorm.apply, model.rms_norm
    print(f"ready PyTorch {torch.__version__}, {library}, {generation.attend.__name__}", flush=True)
    for line in sys.stdin:
        command, count = line.split()
        if command == "train":
            model.rms_norm = RmsNorm.apply
            timed(training.update, int(count))
        elif command == "generate":
            model.rms_norm = plain_rms_norm
            with torch.inference_mode():
                timed(generation.generate, int(count))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
