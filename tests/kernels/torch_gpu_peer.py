"""The learner's update in PyTorch on the GPU: eager, and compiled with CUDA graphs. Writes speeds for gpu_evidence.py.

The same model, batch and objective as gpu_speed.cpp measures (2 layers, width 32, 64 sequences of 17 tokens, GRPO with
clipping, gradient norm clipped to 1, AdamW), bf16 autocast over fp32 weights, which is what the CUDA backend does.
Replicas are one batch of independent models by torch.func.vmap. Inputs are on the device already, and nothing is read
back within a measurement but the last loss.
"""
import argparse
import json
import pathlib
import statistics
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "model"))
SKIPPED = 77

try:
    import torch
except ImportError:
    print("Not run: this Python has no torch.")
    sys.exit(SKIPPED)
if not torch.cuda.is_available():
    print("Not run: this torch finds no GPU.")
    sys.exit(SKIPPED)

import torch_model  # noqa: E402  (needs torch)

SHAPE = torch_model.Shape(layers=2, width=32, heads=2, mlp_width=128, vocabulary=20, context=18)
BATCH, PROMPT, TOKENS = 64, 9, 17


class Update:
    """One optimizer step on a fixed batch of `replicas` models."""

    def __init__(self, replicas, device="cuda"):
        one = torch_model.recipe_weights(SHAPE, 0.2, torch.float32)
        self.weights = {name: weight.detach().to(device).expand(replicas, *weight.shape).clone().requires_grad_()
                        for name, weight in one.items()}
        generator = torch.Generator(device).manual_seed(1)
        self.tokens = torch.randint(0, 10, (replicas, BATCH, TOKENS + 1), generator=generator, device=device)
        self.advantage = torch.where(torch.arange(BATCH, device=device) % 2 == 0, 1.0, -1.0).expand(replicas, BATCH)
        self.answer = (torch.arange(TOKENS, device=device) >= PROMPT - 1).float().expand(BATCH, TOKENS)
        self.old = torch.full((replicas, BATCH, TOKENS), -2.0, device=device)
        self.mask = torch_model.causal_mask(TOKENS, torch.float32).to(device)
        # Capturable: the step's numbers are on the device, so that the whole update can be one graph.
        self.optimizer = torch.optim.AdamW(self.weights.values(), lr=1e-6, betas=(0.9, 0.99), weight_decay=0.0,
                                           fused=True, capturable=True)

    def objective(self, weights, tokens, advantage, old):
        with torch.autocast("cuda", torch.bfloat16):
            logits = torch_model.logits_of(weights, SHAPE, tokens[:, :-1], self.mask)
        log_probability = logits.float().log_softmax(-1).gather(2, tokens[:, 1:, None])[..., 0]
        return torch_model.grpo(log_probability, old, advantage, self.answer)

    def loss(self):
        if self.tokens.shape[0] == 1:
            only = {name: weight[0] for name, weight in self.weights.items()}
            return -self.objective(only, self.tokens[0], self.advantage[0], self.old[0])
        return -torch.func.vmap(self.objective)(self.weights, self.tokens, self.advantage, self.old).sum()

    def clip(self):
        gradients = [weight.grad for weight in self.weights.values()]
        squares = sum(gradient.flatten(1).square().sum(1) for gradient in gradients)
        factor = squares.rsqrt().clamp(max=1.0)
        for gradient in gradients:
            gradient.mul_(factor.view(-1, *[1] * (gradient.dim() - 1)))

    def step(self, loss):
        for weight in self.weights.values():
            weight.grad = None
        value = loss()
        value.backward()
        self.clip()
        self.optimizer.step()
        return value


def seconds_of(work):
    def timed(runs):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(runs):
            work()
        torch.cuda.synchronize()
        return (time.perf_counter() - start) / runs

    timed(10)
    runs = max(1, min(1000, int(0.2 / timed(3))))
    return statistics.median(timed(runs) for _ in range(5))


def eager(replicas):
    update = Update(replicas)
    return lambda: update.step(update.loss)


def compiled(replicas):
    """torch.compile of forward and backward, the whole update captured into one CUDA graph: the fairest fast peer, since
    it replays everything as the CUDA backend does."""
    update = Update(replicas)
    loss = torch.compile(update.loss, mode="max-autotune-no-cudagraphs")
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            update.step(loss)
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        update.step(loss)
    return graph.replay


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--evidence", required=True)
    arguments = parser.parse_args()
    speeds = []
    for replicas in (1, 64):
        for name, make in (("eager", eager), ("compiled, in a CUDA graph", compiled)):
            try:
                seconds = seconds_of(make(replicas))
            except Exception as error:  # a peer that fails is reported, and the others go on
                print(f"torch {name}, S {replicas}: failed: {error}", file=sys.stderr)
                continue
            tokens = replicas * BATCH * TOKENS
            speeds.append({"what": "update", "by": f"torch {torch.__version__} {name}", "replicas": replicas,
                           "sequences": BATCH, "seconds": seconds, "tokens_per_second": tokens / seconds})
            print(f"torch {name}, S {replicas}: {1e6 * seconds:.1f} us, {1e-6 * tokens / seconds:.3f} Mtok/s")
    pathlib.Path(arguments.evidence).write_text(json.dumps({"speeds": speeds}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
