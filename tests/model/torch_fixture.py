#!/usr/bin/python3
"""What PyTorch computes for a small model, as a file that the tests of our own kernels read.

    torch_fixture.py           writes fixtures/torch_reference.json
    torch_fixture.py --check   computes it again and compares: exit code 0 equal, 1 not, 77 no PyTorch here

Weights and tokens follow integer recipes (torch_model.recipe), so that the file holds results only. All numbers are
float64. Long arrays are written as the 16 hexadecimal digits of each double's bits; of some gradients, to keep the file
small, only two numbers per parameter: the Euclidean norm and the inner product with the recipe's stream `probe_stream`.
"""
import json
import math
import pathlib
import struct
import sys

FIXTURE = pathlib.Path(__file__).resolve().parent / "fixtures" / "torch_reference.json"
NO_TORCH = 77
LARGEST_DIFFERENCE = 1e-12  # relative to the largest number of an array: other machines add in another order

try:
    import torch
except ImportError:
    print("PyTorch (Debian: python3-torch) is not installed: nothing to compare with")
    sys.exit(NO_TORCH)

sys.dont_write_bytecode = True
import torch_model as model

# T 7 < context 8 leaves a position without gradient; widths of MLP and vocabulary are no multiple of a vector.
SHAPE = model.Shape(layers=2, width=16, heads=2, mlp_width=28, vocabulary=11, context=8)
WEIGHT_SCALE = 0.5
TOKENS_STREAM, PROBE_STREAM = 2, 3
OLD_STREAM = 36  # chosen to pass require_telling_ratios
SEQUENCES, ROWS = 4, 7
FIRST_ANSWER_ROW = 2
ANSWER_TOKENS = [5, 2, 4, 1]
ADVANTAGE = [0.75, -1.25, -0.5, 1.5]
ADAMW = {"learning_rate": 0.01, "beta1": 0.9, "beta2": 0.99, "epsilon": 1e-8, "weight_decay": 0.1, "max_norm": 1.4}
STEPS = 5
IN_FULL = ("supervised", "grpo")


class Inputs:
    """Tokens, answers and what generation is supposed to have left behind, in one precision."""

    def __init__(self, dtype, old_log_probability=None):
        numbers = (model.recipe(TOKENS_STREAM, SEQUENCES * (ROWS + 1)) + 1.0) / 2.0 * SHAPE.vocabulary
        self.tokens = torch.tensor(numbers.astype(int).reshape(SEQUENCES, ROWS + 1))
        self.mask = model.causal_mask(ROWS, dtype)
        row = torch.arange(ROWS)[None, :] - FIRST_ANSWER_ROW
        self.answer = ((row >= 0) & (row < torch.tensor(ANSWER_TOKENS)[:, None])).to(dtype)
        self.advantage = torch.tensor(ADVANTAGE, dtype=dtype)
        self.old = old_log_probability
        if self.old is not None:
            self.old = self.old.to(dtype)

    def log_probabilities(self, weights):
        """Of the targets, the entropy of every row, and the logits."""
        logits = model.logits_of(weights, SHAPE, self.tokens[:, :-1], self.mask)
        log_p = logits.log_softmax(-1)
        entropy = -(log_p.exp() * log_p).sum(-1)
        return log_p.gather(-1, self.tokens[:, 1:, None])[..., 0], entropy, logits

    def objective(self, name, log_p):
        if name == "supervised":
            return model.supervised(log_p, self.answer)
        if name == "asymre":
            return model.asymre(log_p, self.advantage, self.answer)
        if name == "grpo_of_sequences":
            return model.grpo_of_sequences(log_p, self.old, self.advantage, self.answer)
        clip = {"grpo": (0.2, 0.2), "grpo_clip_higher": (0.1, 0.28), "reinforce": (math.inf, math.inf)}[name]
        return model.grpo(log_p, self.old, self.advantage, self.answer, *clip)

    def require_telling_ratios(self, log_p):
        """Rounding must not decide what is clipped, and clips must remove something, above and below."""
        log_ratio = (log_p - self.old).detach() * self.answer
        for ratio, advantage in ((log_ratio.exp(), self.advantage[:, None] * self.answer),
                                 (log_ratio.sum(1).exp(), self.advantage)):
            near_an_edge = any(((ratio - edge).abs() < 1e-4).any() for edge in (0.8, 0.9, 1.2, 1.28))
            above, below = (ratio > 1.2) & (advantage > 0), (ratio < 0.8) & (advantage < 0)
            if near_an_edge or not above.any() or not below.any():
                raise AssertionError("choose another stream for the old log-probabilities")


OBJECTIVES = ("supervised", "grpo", "grpo_clip_higher", "grpo_of_sequences", "reinforce", "asymre")


def ratio_statistics(inputs, log_p, entropy):
    """Sums over the answer's tokens, in the order of SequenceStatistic (kernels/ops.h), for `grpo`."""
    ratio = (log_p - inputs.old).exp()
    advantage = inputs.advantage[:, None]
    removed = ((ratio < 0.8) & (advantage < 0)) | ((ratio > 1.2) & (advantage > 0))
    of_tokens = (torch.ones_like(ratio), (ratio - 1).abs(), ratio, ratio.square(), removed.to(ratio.dtype), ratio.log(),
                 entropy, log_p)
    return torch.stack([(what * inputs.answer).sum(1) for what in of_tokens], 1)


def gradients(inputs, weights, name):
    """The objective, its derivative by every log-probability, and by every parameter."""
    log_p, _, _ = inputs.log_probabilities(weights)
    log_p.retain_grad()
    value = inputs.objective(name, log_p)
    for w in weights.values():
        w.grad = None
    value.backward()
    return value.detach(), log_p.grad, {key: w.grad.clone() for key, w in weights.items()}


def norm_of(gradient):
    return math.sqrt(sum(g.double().square().sum().item() for g in gradient.values()))


def train(inputs, dtype):
    """Steps of AdamW up the likelihood: the norm of each gradient before clipping, and the weights after."""
    weights = model.recipe_weights(SHAPE, WEIGHT_SCALE, dtype)
    optimizer = torch.optim.AdamW(weights.values(), lr=ADAMW["learning_rate"], betas=(ADAMW["beta1"], ADAMW["beta2"]),
                                  eps=ADAMW["epsilon"], weight_decay=ADAMW["weight_decay"])
    norms = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        log_p, _, _ = inputs.log_probabilities(weights)
        (-inputs.objective("supervised", log_p)).backward()
        norm = norm_of({key: w.grad for key, w in weights.items()})
        # torch.nn.utils.clip_grad_norm_ divides by norm + 1e-6; the definition (Pascanu et al. 2013) does not.
        expected = {key: w.grad * min(1.0, ADAMW["max_norm"] / norm) for key, w in weights.items()}
        torch.nn.utils.clip_grad_norm_(weights.values(), ADAMW["max_norm"])
        for key, w in weights.items():
            rounding = 1e-5 if dtype == torch.float32 else 0.0
            torch.testing.assert_close(w.grad, expected[key], rtol=2e-6 / norm + rounding, atol=0)
            w.grad = expected[key]
        optimizer.step()
        norms.append(norm)
    return norms, {key: w.detach() for key, w in weights.items()}


def normalised_error(ours, reference):
    ours, reference = ours.detach().double(), reference.detach().double()
    return ((ours - reference).square().sum() / reference.square().sum()).item()


def as_hexadecimal(tensor):
    return "".join(f"{bits:016x}" for value in tensor.flatten().tolist()
                   for bits in struct.unpack("<Q", struct.pack("<d", value)))


def in_full(named):
    return {key: as_hexadecimal(value) for key, value in named.items()}


def probed(gradient):
    probes, begin = {}, 0
    numbers = torch.tensor(model.recipe(PROBE_STREAM, sum(g.numel() for g in gradient.values())))
    for key, g in gradient.items():
        probes[key] = [g.norm().item(), torch.dot(g.flatten(), numbers[begin:begin + g.numel()]).item()]
        begin += g.numel()
    return probes


def compute():
    torch.set_num_threads(1)
    exact = Inputs(torch.float64)
    weights = model.recipe_weights(SHAPE, WEIGHT_SCALE, torch.float64)
    log_p, entropy, logits = exact.log_probabilities(weights)
    # Near the log-probabilities, so that some ratios are clipped and some are not; a float holds them exactly.
    noise = torch.tensor(model.recipe(OLD_STREAM, SEQUENCES * ROWS).reshape(SEQUENCES, ROWS))
    exact.old = ((log_p.detach() + 0.35 * noise) * 2**16).round() / 2**16
    exact.require_telling_ratios(log_p)

    single = Inputs(torch.float32, exact.old)
    single_weights = model.recipe_weights(SHAPE, WEIGHT_SCALE, torch.float32)
    single_log_p, single_entropy, single_logits = single.log_probabilities(single_weights)
    errors = {"logits": normalised_error(single_logits, logits),
              "log_probability": normalised_error(single_log_p, log_p),
              "entropy": normalised_error(single_entropy, entropy)}

    objectives = {}
    for name in OBJECTIVES:
        value, weight, gradient = gradients(exact, weights, name)
        objectives[name] = {"value": value.item(), "weight": (weight + 0.0).tolist(), "norm": norm_of(gradient)}
        if name in IN_FULL:
            objectives[name]["gradient"] = in_full(gradient)
            _, _, single_gradient = gradients(single, single_weights, name)
            errors[name] = {key: normalised_error(single_gradient[key], g) if g.abs().max() > 0 else 0.0
                            for key, g in gradient.items()}
        else:
            objectives[name]["probe"] = probed(gradient)

    norms, trained = train(exact, torch.float64)
    _, single_trained = train(single, torch.float32)
    start = model.recipe_weights(SHAPE, WEIGHT_SCALE, torch.float64)
    errors["moved"] = {key: normalised_error(single_trained[key].double() - start[key], w - start[key])
                       for key, w in trained.items()}

    return {
        "about": "Written by tests/model/torch_fixture.py; see there.",
        "torch": torch.__version__,
        "shape": SHAPE._asdict(),
        "weight_scale": WEIGHT_SCALE,
        "weight_stream": model.WEIGHT_STREAM,
        "probe_stream": PROBE_STREAM,
        "tokens": exact.tokens.tolist(),
        "first_answer_row": FIRST_ANSWER_ROW,
        "answer_tokens": ANSWER_TOKENS,
        "advantage": ADVANTAGE,
        "old_log_probability": exact.old.tolist(),
        "logits": logits.tolist(),
        "log_probability": log_p.tolist(),
        "entropy": entropy.tolist(),
        "grpo_statistics": ratio_statistics(exact, log_p, entropy).tolist(),
        "objectives": objectives,
        "adamw": {**ADAMW, "norms": norms, "weights": in_full(trained)},
        "normalised_error_of_float32": errors,
    }


def as_text(node, indent=""):
    """JSON with one line for every array and hexadecimal string."""
    if not isinstance(node, dict):
        return json.dumps(node)
    inner = indent + " "
    lines = [f"{inner}{json.dumps(key)}: {as_text(value, inner)}" for key, value in node.items()]
    return "{\n" + ",\n".join(lines) + f"\n{indent}}}"


def numbers_of(node):
    """All numbers below a node of the fixture, in order; hexadecimal strings are arrays of doubles."""
    if isinstance(node, dict):
        return [x for key in sorted(node) for x in numbers_of(node[key])]
    if isinstance(node, list):
        return [x for item in node for x in numbers_of(item)]
    if isinstance(node, str):
        try:
            return list(struct.unpack(f">{len(node) // 16}d", bytes.fromhex(node)))
        except (ValueError, struct.error):
            return []
    return [float(node)]


def differences(committed, computed):
    """Names of the arrays that differ, each with by how much; rounding errors of float32 are not compared."""
    found = []
    for path, a, b in pairs("", committed, computed):
        a, b = numbers_of(a), numbers_of(b)
        scale = max((abs(x) for x in a), default=0.0)
        if len(a) != len(b):
            found.append(f"{path}: {len(a)} numbers against {len(b)}")
        elif any(not abs(x - y) <= LARGEST_DIFFERENCE * scale for x, y in zip(a, b)):
            found.append(f"{path}: differs by {max(abs(x - y) for x, y in zip(a, b)):.3g}, largest number {scale:.3g}")
    return found


def pairs(path, a, b):
    """Leaves of the two documents side by side; a list is one leaf."""
    if not isinstance(a, dict) or not isinstance(b, dict):
        yield path, a, b
        return
    for key in sorted(a.keys() | b.keys()):
        if (path, key) not in (("", "normalised_error_of_float32"), ("", "torch"), ("", "about")):
            yield from pairs(f"{path}/{key}" if path else key, a.get(key, []), b.get(key, []))


def main(arguments):
    if arguments not in ([], ["--check"]):
        print(__doc__, file=sys.stderr)
        return 2
    computed = compute()
    if not arguments:
        FIXTURE.parent.mkdir(exist_ok=True)
        FIXTURE.write_text(as_text(computed) + "\n")
        print(f"{FIXTURE}: {FIXTURE.stat().st_size} bytes, PyTorch {torch.__version__}")
        return 0
    committed = json.loads(FIXTURE.read_text())
    found = differences(committed, computed)
    for line in found:
        print(line, file=sys.stderr)
    print(f"fixture of PyTorch {committed['torch']}, checked with {torch.__version__}: {len(found)} differences")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
