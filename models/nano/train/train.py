"""Trains the model: train.py --out FOLDER (--steps N | --until HH:MM).

Two processes of one thread each share one flat tensor of weights; each makes its own records, and
each steps its half of the weights. State is saved every few minutes and `--out` of an earlier run
resumes it. With --steps a run is fixed by its seed; with --until the learning rate reaches zero at
that time of day (a file FOLDER/until with another HH:MM moves it while the run goes on).
"""

import argparse
import collections
import datetime
import os
import random
import signal
import sys
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import torch
import torch.multiprocessing as multiprocessing
import torch.nn.functional as F

import checkpoint
import config
import evaluate
import mixture
from losses import Probes, batch_of, encode_sample, helper_losses
from model import Clef
from tokenizer import Encoder
from wording import HELD_OUT, TRAIN

POOL = 12  # Batches that are sorted by length together.
MIX = {"support": 17, "language": 11, "facts": 18, "picture": 32, "clip": 18, "mixed": 4}


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", required=True)
    parser.add_argument("--steps", type=int)
    parser.add_argument("--until", help="HH:MM")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--batch", type=int, default=16, help="records a step, of all ranks")
    parser.add_argument("--rate", type=float, default=1.5e-3)
    parser.add_argument("--warm", type=int, default=200)
    parser.add_argument("--decay", type=float, default=0.02)
    parser.add_argument("--noise", type=float, default=0.1, help="share of words split at random")
    parser.add_argument("--weight-noise", type=float, default=0.025,
                        help="of the text layers' weights in the last fifth, as 6 bits cause")
    parser.add_argument("--smooth", type=float, default=0.02)
    parser.add_argument("--keep-prior", type=float, default=0.3)
    parser.add_argument("--evaluate-minutes", type=float, default=8)
    parser.add_argument("--save-minutes", type=float, default=3)
    parser.add_argument("--log", type=int, default=100)
    return parser.parse_args()


class Shared:
    """Weights, gradients of each rank and Adam's moments, seen by all processes."""

    def __init__(self, net, ranks, decay):
        self.sizes = [(n, p.numel()) for n, p in net.named_parameters()]
        self.size = sum(k for _, k in self.sizes)
        new = lambda *shape: torch.zeros(*shape).share_memory_()
        self.weights, self.gradients = new(self.size), new(ranks, self.size)
        self.mean, self.square, self.noise = new(self.size), new(self.size), new(self.size)
        self.numbers = torch.zeros(ranks, 8, dtype=torch.float64).share_memory_()
        self.decay, self.palettized = decay, []
        offset = 0
        for name, p in net.named_parameters():
            k = p.numel()
            place = slice(offset, offset + k)
            self.weights[place] = p.data.reshape(-1)
            p.data = self.weights[place].view(p.shape)
            if ".layers." in name and p.dim() == 2 and "language_model" in name and p.numel() >= 4096:
                self.palettized.append((offset, offset + k))
            offset += k

    def restore(self, state):
        """Weights and moments of the parameters that the saved run had; probes that were added
        since then start anew."""
        saved, offset = {}, 0
        for name, size in state["sizes"]:
            saved[name] = slice(offset, offset + size)
            offset += size
        offset = 0
        for name, size in self.sizes:
            if name in saved:
                for table in ("weights", "mean", "square"):
                    getattr(self, table)[offset : offset + size] = state[table][saved[name]]
            offset += size

    def bind(self, net, rank):
        offset = 0
        for p in net.parameters():
            k = p.numel()
            p.grad = self.gradients[rank, offset : offset + k].view(p.shape)
            offset += k


class Adam:
    """Steps one rank's share of the weights, gradients summed over the ranks and clipped."""

    def __init__(self, shared, rank, ranks, barrier, clip=1.0, betas=(0.9, 0.98)):
        self.shared, self.rank, self.ranks, self.barrier = shared, rank, ranks, barrier
        self.place = slice(shared.size * rank // ranks, shared.size * (rank + 1) // ranks)
        self.matrices = [slice(max(a, self.place.start), min(b, self.place.stop))
                         for a, b in shared.palettized if a < self.place.stop and b > self.place.start]
        self.clip, self.betas = clip, betas
        self.generator = torch.Generator().manual_seed(1000 + rank)

    def step(self, rate, time_step, noise):
        s, place = self.shared, self.place
        self.barrier.wait()
        g = s.gradients[:, place].sum(0).div_(self.ranks)
        s.numbers[self.rank, 0] = float(g.pow(2).sum(dtype=torch.float64))
        self.barrier.wait()
        s.gradients[self.rank].zero_()
        norm = float(s.numbers[:, 0].sum()) ** 0.5
        if norm > self.clip:
            g.mul_(self.clip / norm)
        w, (a, b) = s.weights[place], self.betas
        if noise or s.numbers[self.rank, 2]:
            w.sub_(s.noise[place])
        torch._fused_adamw_([w], [g], [s.mean[place]], [s.square[place]], [],
                            [torch.tensor(float(time_step))], amsgrad=False, lr=rate, beta1=a,
                            beta2=b, weight_decay=s.decay, eps=1e-8, maximize=False)
        s.numbers[self.rank, 2] = noise
        if noise:
            for matrix in self.matrices:
                part = s.weights[matrix]
                size = noise * float(part.norm()) / len(part) ** 0.5
                s.noise[matrix].normal_(0, size, generator=self.generator)
                part.add_(s.noise[matrix])
        self.barrier.wait()
        return norm


def batches(encoder, args, rank, first_step):
    """Batches of similar lengths; step s is the same however often the run was resumed."""
    size, pool, chunks = args.batch // args.ranks, None, []
    kinds, weights = list(MIX), list(MIX.values())
    step = first_step
    while True:
        if pool != step // POOL:
            pool = step // POOL
            rng, np_rng = random.Random(f"{args.seed} {rank} {pool}"), np.random.default_rng([args.seed, rank, pool])
            made = []
            for _ in range(size * POOL):
                kind = rng.choices(kinds, weights)[0]
                sample = mixture.make(kind, rng, np_rng, TRAIN)
                # A word split at random is no longer equal to itself: not where words are compared.
                noisy = kind != "facts" and rng.random() < 0.6
                made.append(encode_sample(encoder, sample, rng, args.noise if noisy else 0.0))
            made.sort(key=lambda e: len(e["ids"]))
            chunks = [made[i : i + size] for i in range(0, len(made), size)]
            random.Random(f"{args.seed} {pool}").shuffle(chunks)  # The same order on every rank.
        yield chunks[step % POOL]
        step += 1


def seconds_until(text):
    now = datetime.datetime.now()
    hour, minute = map(int, text.split(":"))
    return (now.replace(hour=hour, minute=minute, second=0, microsecond=0) - now).total_seconds()


class Clock:
    """How far the run is, 0 to 1."""

    def __init__(self, args, progress, step):
        self.args, self.progress = args, progress
        self.rate, self.last = None, time.time()
        self.until = args.until

    def tick(self, step):
        now = time.time()
        took, self.last = now - self.last, now
        if self.args.steps:
            self.progress = step / self.args.steps
            return
        if took < 20:  # A longer step was a pause.
            self.rate = took if self.rate is None else 0.995 * self.rate + 0.005 * took
        if step % 50 == 0:
            name = os.path.join(self.args.out, "until")
            if os.path.exists(name):
                with open(name) as file:
                    self.until = file.read().strip() or self.until
        left = seconds_until(self.until) / (self.rate or 1.0)
        self.progress += (1 - self.progress) / left if left > 1 else 1
        self.progress = min(self.progress, 1.0)


def learning_rate(args, step, progress):
    warm = min(1.0, (step + 1) / args.warm)
    return args.rate * warm * (0.5 * (1 + np.cos(np.pi * min(1.0, progress))) + 0.003)


def state_path(args):
    return os.path.join(args.out, "state.pt")


def save(args, shared, net, step, progress):
    clean = shared.weights - shared.noise
    torch.save(dict(sizes=shared.sizes, weights=clean, mean=shared.mean, square=shared.square, step=step,
                    progress=progress, args=vars(args)), state_path(args) + ".partial")
    os.replace(state_path(args) + ".partial", state_path(args))
    offset, state = 0, {}
    for name, p in net["clef"].named_parameters(prefix="clef"):
        k = p.numel()
        state[name.removeprefix("clef.")] = clean[offset : offset + k].view(p.shape).clone()
        offset += k
    checkpoint.save(state, net["clef"].c, os.path.join(args.out, "tokenizer.json"),
                    os.path.join(args.out, "checkpoint"))


def check(args, net, encoder, rank, minutes):
    """Half of the held-out check set each rank; prints what its kinds of records give."""
    kinds = list(MIX)[rank :: args.ranks] if args.ranks > 1 else list(MIX)
    rows = evaluate.run(net["clef"], encoder, evaluate.samples(HELD_OUT, {k: 100 for k in kinds}, 70000))
    figures = evaluate.summary(rows)
    print("HELD OUT, minute %.1f, rank %d\n%s" % (minutes, rank, evaluate.show(figures)), flush=True)


def work(rank, args, net, encoder, shared, barrier, start):
    torch.set_num_threads(1)
    shared.bind(net, rank)
    clef, probes = net["clef"], net["probes"]
    adam = Adam(shared, rank, args.ranks, barrier)
    clock, step = Clock(args, start["progress"], start["step"]), start["step"]
    stream = batches(encoder, args, rank, step)
    rng = random.Random(rank)
    began, paused, saved, checked = time.time(), 0.0, time.time(), time.time()
    hits, losses, spent, tokens = collections.defaultdict(lambda: [0, 0]), [], collections.Counter(), 0
    first = step
    while True:
        if rank == 0:
            clock.tick(step)
            shared.numbers[0, 1] = clock.progress
        barrier.wait()
        progress = float(shared.numbers[0, 1])
        if progress >= 1:
            break
        mixture.set_ease(0.9 * max(0.0, 1 - progress / 0.5))
        t = time.time()
        records = next(stream)
        b = batch_of(records)
        spent["data"] += time.time() - t
        t = time.time()
        hidden, features = clef.hidden(b)
        keep = args.keep_prior if progress < 0.75 else 0.7
        prior = (torch.rand(len(records)) < keep).float()
        logits = clef.head(hidden, b, clef.lm_head.weight, prior_weight=prior)
        asked = b["answers"] >= 0
        loss = F.cross_entropy(logits[asked], b["answers"][asked])
        total = loss
        if args.smooth:
            mask = b["option_mask"][asked].float()
            spread = -(F.log_softmax(logits[asked], -1) * mask).sum(-1) / mask.sum(-1)
            total = total + args.smooth * (spread.mean() - loss)
        helper = max(0.0, 1 - progress / 0.95)
        if helper:
            answer, text, picture = helper_losses(clef, probes, records, b, hidden, features)
            total = total + helper * (0.5 * answer + text + 2 * picture)
            if rank == 0 and (step + 1) % args.log == 0:
                helpers = "answer %.2f text %.2f picture %.2f" % tuple(
                    float(x.detach()) for x in (answer, text, picture))
        else:
            helpers = ""
        spent["forward"] += time.time() - t
        t = time.time()
        total.backward()
        spent["backward"] += time.time() - t
        t = time.time()
        noise = args.weight_noise if progress > 0.8 else 0.0
        rate = learning_rate(args, step, progress)
        norm = adam.step(rate, step + 1, noise)
        spent["step"] += time.time() - t
        step += 1
        losses.append(float(loss.detach()))
        tokens += int(b["lengths"].sum())
        right = logits.argmax(-1) == b["answers"]
        for i, e in enumerate(records):
            for q, name in enumerate(e["sample"].questions):
                entry = hits[mixture.SKILL_OF[e["sample"].skills[name]]]
                entry[0] += int(right[i, q])
                entry[1] += 1
        if rank == 0 and step % args.log == 0:
            wall, k = time.time() - began - paused, step - first
            print("step %d %.1f min progress %.3f rate %.4f loss %.3f %s norm %.2f %.0f tokens/s %.0f ms (%s) | %s" % (
                step, wall / 60, progress, rate, np.mean(losses[-args.log :]), helpers, norm,
                args.ranks * tokens / wall, 1000 * wall / k,
                " ".join("%s %.0f" % (n, 1000 * v / k) for n, v in spent.items()),
                " ".join("%s %.2f" % (n, a / c) for n, (a, c) in sorted(hits.items()))), flush=True)
            hits.clear()
        if rank == 0:
            now = time.time()
            shared.numbers[0, 3] = now - checked > 60 * args.evaluate_minutes
            shared.numbers[0, 4] = now - saved > 60 * args.save_minutes
        barrier.wait()
        if shared.numbers[0, 3]:
            t = time.time()
            check(args, net, encoder, rank, (t - began) / 60)
            barrier.wait()
            checked = time.time()
            paused += checked - t
            clock.last = checked
        if rank == 0 and shared.numbers[0, 4]:
            save(args, shared, net, step, progress)
            saved = time.time()
            print("saved at step %d, scalars %s" % (step, {
                k: round(getattr(clef.head, k).item(), 3)
                for k in ("prior_logit_scale", "joint_logit_scale", "residual_gate")}), flush=True)
    if rank == 0:
        if shared.noise.any():
            shared.weights.sub_(shared.noise)
            shared.noise.zero_()
        save(args, shared, net, step, 1.0)
    barrier.wait()
    check(args, net, encoder, rank, (time.time() - began) / 60)


def main():
    args = arguments()
    torch.set_num_threads(1)
    torch.manual_seed(args.seed)
    os.makedirs(args.out, exist_ok=True)
    tokenizer_path = os.path.join(args.out, "tokenizer.json")
    if not os.path.exists(tokenizer_path):
        import make_tokenizer

        make_tokenizer.main(tokenizer_path)
    encoder = Encoder(tokenizer_path)
    c = dict(config.CONFIG, vocab=encoder.size)
    net = torch.nn.ModuleDict({"clef": Clef(c), "probes": Probes(c)})
    shared = Shared(net, args.ranks, args.decay)
    print("%d parameters, %s" % (shared.size, vars(args)), flush=True)
    start = dict(progress=0.0, step=0)
    if os.path.exists(state_path(args)):
        state = torch.load(state_path(args))
        shared.restore(state)
        start = dict(progress=state["progress"], step=state["step"])
        print("resumed at step %d" % state["step"], flush=True)
    context = multiprocessing.get_context("fork")
    barrier = context.Barrier(args.ranks)
    rest = (args, net, encoder, shared, barrier, start)
    others = [context.Process(target=work, args=(r, *rest)) for r in range(1, args.ranks)]
    for p in others:
        p.daemon = True  # Ends with this process, also when that is terminated.
        p.start()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    work(0, *rest)
    for p in others:
        p.join()


if __name__ == "__main__":
    main()
