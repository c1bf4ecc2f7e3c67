"""Clef's architecture (model.md sections 2, 4 and 7) in PyTorch, every size from a config.

Float32, batches padded on the right. Parameter names are the release's, so that a state dict is
a checkpoint: `model.*` and `lm_head.weight` of the backbone, `head.*` of the joint schema head.
"""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F

from config import PATCH
from ops import ConvSilu, Delta, GatedNorm, Rms, SwiGlu

MASKED = -1e9


class RmsNorm(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(size))

    def forward(self, x):
        return Rms.apply(x, self.weight)


class Linear(nn.Linear):
    def __init__(self, inputs, outputs, bias=False, gain=1.0):
        super().__init__(inputs, outputs, bias=bias)
        nn.init.normal_(self.weight, std=gain * inputs**-0.5)
        if bias:
            nn.init.zeros_(self.bias)


class Weight(nn.Module):
    """A tensor that the release stores as `<name>.weight`."""

    def __init__(self, value):
        super().__init__()
        self.weight = nn.Parameter(value)


# ---- Text backbone


class Mlp(nn.Module):
    def __init__(self, c, out):
        super().__init__()
        self.gate_proj = Linear(c["hidden"], c["mlp"])
        self.up_proj = Linear(c["hidden"], c["mlp"])
        self.down_proj = Linear(c["mlp"], c["hidden"], gain=out)

    def forward(self, x):
        return self.down_proj(SwiGlu.apply(self.gate_proj(x), self.up_proj(x)))


class LinearAttention(nn.Module):
    def __init__(self, c, out):
        super().__init__()
        h, hk, hv, d = c["hidden"], c["key_heads"], c["value_heads"], c["linear_dim"]
        self.dims = (hk, hv, d)
        channels = (2 * hk + hv) * d
        self.in_proj_qkv, self.in_proj_z = Linear(h, channels), Linear(h, hv * d)
        self.in_proj_a, self.in_proj_b = Linear(h, hv, gain=0.5), Linear(h, hv, gain=0.5)
        kernel = torch.randn(channels, 1, 4) * 0.2
        kernel[:, 0, 3] += 0.7
        self.conv1d = Weight(kernel)
        # Slow decays: the answer may stand a hundred tokens back.
        self.A_log = nn.Parameter(torch.empty(hv).uniform_(1, 4).log())
        dt = torch.exp(torch.empty(hv).uniform_(math.log(5e-4), math.log(5e-2)))
        self.dt_bias = nn.Parameter(dt + torch.log(-torch.expm1(-dt)))
        self.norm = Weight(torch.ones(d))
        self.out_proj = Linear(hv * d, h, gain=out)

    def forward(self, x, rotary):
        b, n, _ = x.shape
        hk, hv, d = self.dims
        c = ConvSilu.apply(self.in_proj_qkv(x), self.conv1d.weight)
        z = self.in_proj_z(x).view(b, n, hv, d)
        beta = torch.sigmoid(self.in_proj_b(x))
        g = -self.A_log.exp() * F.softplus(self.in_proj_a(x) + self.dt_bias)
        o = Delta.apply(c, g, beta, hk, hv, d)
        return self.out_proj(GatedNorm.apply(o, z, self.norm.weight).view(b, n, -1))


def rotate(x, cos_sin, half):
    cos, sin = cos_sin
    a, b, rest = x[..., :half], x[..., half : 2 * half], x[..., 2 * half :]
    return torch.cat([a * cos - b * sin, b * cos + a * sin, rest], -1)


def mrope(positions, c):
    """positions [B, 3, n] -> cos, sin [B, 1, n, rotary / 2], the axes interleaved (2.3)."""
    half, (_, height, width) = c["rotary"] // 2, c["mrope_section"]
    axis = torch.zeros(half, dtype=torch.long)
    for i in range(half):
        if i % 3 == 1 and i < 3 * height:
            axis[i] = 1
        elif i % 3 == 2 and i < 3 * width:
            axis[i] = 2
    frequency = c["theta"] ** (-torch.arange(half).float() * 2 / c["rotary"])
    angle = positions[:, axis].float().transpose(1, 2) * frequency
    return angle.cos().unsqueeze(1), angle.sin().unsqueeze(1)


class FullAttention(nn.Module):
    def __init__(self, c, out):
        super().__init__()
        h, d = c["hidden"], c["head_dim"]
        self.heads, self.kv_heads, self.d, self.half = c["heads"], c["kv_heads"], d, c["rotary"] // 2
        self.q_proj = Linear(h, 2 * self.heads * d)  # Per head: query, then gate.
        self.k_proj, self.v_proj = Linear(h, self.kv_heads * d), Linear(h, self.kv_heads * d)
        self.o_proj = Linear(self.heads * d, h, gain=out)
        self.q_norm, self.k_norm = RmsNorm(d), RmsNorm(d)

    def forward(self, x, rotary):
        b, n, _ = x.shape
        d, kv = self.d, self.kv_heads
        q, gate = self.q_proj(x).view(b, n, self.heads, 2 * d).split(d, -1)
        q = rotate(self.q_norm(q).transpose(1, 2), rotary, self.half)
        k = rotate(self.k_norm(self.k_proj(x).view(b, n, kv, d)).transpose(1, 2), rotary, self.half)
        v = self.v_proj(x).view(b, n, kv, d).transpose(1, 2).reshape(b * kv, n, d)
        q = q.reshape(b * kv, -1, d)  # The queries of one KV head one after the other.
        score = torch.bmm(q, k.reshape(b * kv, n, d).transpose(1, 2)) * d**-0.5
        causal = torch.full((n, n), MASKED).triu(1)
        weight = torch.softmax(score.view(b * kv, -1, n, n) + causal, -1)
        o = torch.bmm(weight.view(b * kv, -1, n), v).view(b, self.heads, n, d)
        o = o.transpose(1, 2).reshape(b, n, -1)
        return self.o_proj(o * torch.sigmoid(gate.reshape(b, n, -1)))


class Layer(nn.Module):
    def __init__(self, c, index):
        super().__init__()
        out = (2 * c["layers"]) ** -0.5
        self.full = (index + 1) % c["interval"] == 0
        if self.full:
            self.self_attn = FullAttention(c, out)
        else:
            self.linear_attn = LinearAttention(c, out)
        self.mlp = Mlp(c, out)
        self.input_layernorm = RmsNorm(c["hidden"])
        self.post_attention_layernorm = RmsNorm(c["hidden"])

    def forward(self, h, rotary):
        mixer = self.self_attn if self.full else self.linear_attn
        h = h + mixer(self.input_layernorm(h), rotary)
        return h + self.mlp(self.post_attention_layernorm(h))


class LanguageModel(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.embed_tokens = nn.Embedding(c["vocab"], c["hidden"])
        nn.init.normal_(self.embed_tokens.weight, std=0.1)
        self.layers = nn.ModuleList(Layer(c, i) for i in range(c["layers"]))
        self.norm = RmsNorm(c["hidden"])


# ---- Vision encoder


class VisionBlock(nn.Module):
    def __init__(self, c):
        super().__init__()
        h, out = c["vision_hidden"], (2 * c["vision_layers"]) ** -0.5
        self.heads = c["vision_heads"]
        self.norm1, self.norm2 = nn.LayerNorm(h, eps=1e-6), nn.LayerNorm(h, eps=1e-6)
        self.attn, self.mlp = nn.Module(), nn.Module()
        self.attn.qkv, self.attn.proj = Linear(h, 3 * h, True), Linear(h, h, True, out)
        self.mlp.linear_fc1 = Linear(h, c["vision_mlp"], True)
        self.mlp.linear_fc2 = Linear(c["vision_mlp"], h, True, out)

    def forward(self, x, rotary, mask):
        s, p, h = x.shape
        d = h // self.heads
        q, k, v = self.attn.qkv(self.norm1(x)).view(s, p, 3, self.heads, d).permute(2, 0, 3, 1, 4)
        q, k = rotate(q, rotary, d // 2), rotate(k, rotary, d // 2)
        weight = torch.softmax(q @ k.transpose(-1, -2) * d**-0.5 + mask, -1)
        x = x + self.attn.proj((weight @ v).transpose(1, 2).reshape(s, p, h))
        return x + self.mlp.linear_fc2(F.gelu(self.mlp.linear_fc1(self.norm2(x)), approximate="tanh"))


class Vision(nn.Module):
    def __init__(self, c):
        super().__init__()
        h = c["vision_hidden"]
        self.grid, self.d = c["vision_grid"], h // c["vision_heads"]
        self.patch_embed, self.merger = nn.Module(), nn.Module()
        self.patch_embed.proj = Linear(3 * 2 * PATCH * PATCH, h, True)
        nn.init.normal_(self.patch_embed.proj.weight, std=0.02)
        self.pos_embed = nn.Embedding(self.grid**2, h)
        nn.init.normal_(self.pos_embed.weight, std=0.5)
        self.blocks = nn.ModuleList(VisionBlock(c) for _ in range(c["vision_layers"]))
        self.merger.norm = nn.LayerNorm(h, eps=1e-6)
        self.merger.linear_fc1 = Linear(4 * h, 4 * h, True)
        self.merger.linear_fc2 = Linear(4 * h, c["hidden"], True, 0.5)

    def forward(self, segments):
        """segments: (patches [gh * gw, 1536], gh, gw), rows in 2x2 block order -> one row a
        token, all segments in order. Segments of about one size run together."""
        buckets, out = {}, [None] * len(segments)
        for i, (x, _, _) in enumerate(segments):
            buckets.setdefault(next(k for k in (16, 24, 36, 64, 1 << 30) if len(x) <= k), []).append(i)
        for chosen in buckets.values():
            for i, y in zip(chosen, self._encode([segments[i] for i in chosen])):
                out[i] = y
        return torch.cat(out)

    def _encode(self, segments):
        s, p = len(segments), max(len(x) for x, _, _ in segments)
        pixels = torch.zeros(s, p, segments[0][0].shape[1])
        index, weight = torch.zeros(s, p, 4, dtype=torch.long), torch.zeros(s, p, 4)
        place, mask = torch.zeros(s, p, 2), torch.full((s, 1, 1, p), MASKED)
        for i, (x, gh, gw) in enumerate(segments):
            n = gh * gw
            pixels[i, :n], mask[i, 0, 0, :n] = x, 0
            index[i, :n], weight[i, :n], place[i, :n] = _grid(gh, gw, self.grid)
        x = self.patch_embed.proj(pixels) + (self.pos_embed(index) * weight[..., None]).sum(2)
        frequency = 10000.0 ** (-torch.arange(self.d // 4).float() * 4 / self.d)
        angle = torch.cat([place[..., :1] * frequency, place[..., 1:] * frequency], -1).unsqueeze(1)
        for block in self.blocks:
            x = block(x, (angle.cos(), angle.sin()), mask)
        x = self.merger.norm(x).reshape(s, p // 4, -1)
        x = self.merger.linear_fc2(F.gelu(self.merger.linear_fc1(x)))
        return [x[i, : gh * gw // 4] for i, (_, gh, gw) in enumerate(segments)]


_grids = {}


def _grid(gh, gw, side):
    """Taps and weights into the position table, and (row, column), of a grid's patches."""
    if (gh, gw) not in _grids:
        shape = (gh // 2, gw // 2, 2, 2)
        r = torch.arange(gh).view(gh // 2, 1, 2, 1).expand(shape).reshape(-1).float()
        c = torch.arange(gw).view(1, gw // 2, 1, 2).expand(shape).reshape(-1).float()
        y, x = r * ((side - 1) / max(gh - 1, 1)), c * ((side - 1) / max(gw - 1, 1))
        y0, x0 = y.floor(), x.floor()
        fy, fx = y - y0, x - x0
        y1, x1 = (y0 + 1).clamp(max=side - 1), (x0 + 1).clamp(max=side - 1)
        taps = [y0 * side + x0, y0 * side + x1, y1 * side + x0, y1 * side + x1]
        weights = [(1 - fy) * (1 - fx), (1 - fy) * fx, fy * (1 - fx), fy * fx]
        _grids[gh, gw] = (torch.stack(taps, -1).long(), torch.stack(weights, -1),
                          torch.stack([r, c], -1))
    return _grids[gh, gw]


# ---- Joint schema head


class Attention(nn.Module):
    """Multi-head attention with biases, in torch's own layout of q, k and v rows."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.in_proj_weight = nn.Parameter(torch.randn(3 * width, width) * width**-0.5)
        self.in_proj_bias = nn.Parameter(torch.zeros(3 * width))
        self.out_proj = Linear(width, width, True, 0.5)

    def forward(self, q, memory, mask):
        (b, m, w), n = q.shape, memory.shape[1]
        weight, bias, shape = self.in_proj_weight, self.in_proj_bias, (b, -1, self.heads, w // self.heads)
        k, v = F.linear(memory, weight[w:], bias[w:]).chunk(2, -1)
        q = F.linear(q, weight[:w], bias[:w])
        q, k, v = (x.reshape(shape).transpose(1, 2) for x in (q, k, v))
        weight = torch.softmax(q @ k.transpose(-1, -2) * shape[3] ** -0.5 + mask, -1)
        return self.out_proj((weight @ v).transpose(1, 2).reshape(b, m, w))


class EvidenceLayer(nn.Module):
    def __init__(self, width, heads, mlp):
        super().__init__()
        self.query_norm, self.memory_norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.feedforward_norm = nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        # Places 1 and 2 are the activation and the dropout of the release's Sequential.
        self.feedforward = nn.ModuleList([Linear(width, mlp, True), nn.Identity(), nn.Identity(),
                                          Linear(mlp, width, True, 0.5)])

    def forward(self, r, memory, mask):
        r = r + self.attention(self.query_norm(r), self.memory_norm(memory), mask)
        return r + self.feedforward[3](F.gelu(self.feedforward[0](self.feedforward_norm(r))))


class DecoderLayer(nn.Module):
    def __init__(self, width, heads, mlp):
        super().__init__()
        self.self_attn, self.multihead_attn = Attention(width, heads), Attention(width, heads)
        self.linear1, self.linear2 = Linear(width, mlp, True), Linear(mlp, width, True, 0.5)
        self.norm1, self.norm2, self.norm3 = (nn.LayerNorm(width) for _ in range(3))

    def forward(self, f, memory, question_mask, memory_mask):
        x = self.norm1(f)
        f = f + self.self_attn(x, x, question_mask)
        f = f + self.multihead_attn(self.norm2(f), memory, memory_mask)
        return f + self.linear2(F.gelu(self.linear1(self.norm3(f))))


def normalized(x, least):
    return x / x.norm(dim=-1, keepdim=True).clamp(min=least)


class Head(nn.Module):
    def __init__(self, c):
        super().__init__()
        h, w = c["hidden"], c["width"]
        self.hidden_norm = nn.LayerNorm(h)
        for name in ("memory", "question", "option_question", "global", "option_context",
                     "option_lexical"):
            setattr(self, name + "_projection", Linear(h, w))
        self.type_embedding = nn.Embedding(3, w)
        nn.init.normal_(self.type_embedding.weight, std=0.1)
        self.evidence_layers = nn.ModuleList(
            EvidenceLayer(w, c["head_heads"], c["head_mlp"]) for _ in range(c["routing"]))
        self.option_summary_norm, self.field_norm, self.option_norm = (
            nn.LayerNorm(w) for _ in range(3))
        self.layers = nn.ModuleList(
            DecoderLayer(w, c["head_heads"], c["head_mlp"]) for _ in range(c["decoder"]))
        self.residual_scorer = nn.ModuleList([Linear(4 * w, w, True), nn.Identity(), nn.Identity(),
                                              Linear(w, 1, True, 0.1)])
        self.prior_logit_scale = nn.Parameter(torch.tensor(0.7))
        self.joint_logit_scale = nn.Parameter(torch.tensor(math.log(6.0)))
        self.residual_gate = nn.Parameter(torch.tensor(1.0))

    def forward(self, hidden, b, lm_head, prior_weight=1.0, joint_weight=1.0):
        """Logits [B, Q, K]. The weights switch the two terms off: `prior_weight` is a number or
        [B] (training drops the prior of most records, evaluation zeroes each term in turn)."""
        x = self.hidden_norm(hidden)
        memory = self.memory_projection(x)
        (batch, n, _), (questions, options) = x.shape, b["option_mask"].shape[1:]
        width = memory.shape[-1]
        last = x[torch.arange(batch), b["lengths"] - 1]
        spans = torch.cat([b["question_span"], b["option_span"].reshape(batch, -1, n)], 1) @ x
        question, context = spans[:, :questions], spans[:, questions:]
        lexical = b["option_span"].reshape(batch, -1, n) @ F.embedding(b["ids"], lm_head)
        r = (self.option_context_projection(context) + self.option_lexical_projection(lexical)
             + self.option_question_projection(question).repeat_interleave(options, 1))
        padded = torch.arange(n)[None] >= b["lengths"][:, None]
        memory_mask = torch.zeros(batch, 1, 1, n).masked_fill(padded[:, None, None], MASKED)
        for layer in self.evidence_layers:
            r = layer(r, memory, memory_mask)
        r = r.view(batch, questions, options, width)
        absent = (~b["option_mask"]).float() * MASKED
        field = self.question_projection(question)
        weight = torch.softmax((r * field[:, :, None]).sum(-1) * width**-0.5 + absent, -1)
        field = (field + self.option_summary_norm((weight[..., None] * r).sum(2))
                 + self.global_projection(last)[:, None] + self.type_embedding(b["types"]))
        question_mask = ((~b["question_mask"]).float() * MASKED)[:, None, None]
        for layer in self.layers:
            field = layer(field, memory, question_mask, memory_mask)
        field, u = self.field_norm(field)[:, :, None], self.option_norm(r)
        asked = normalized(question + last[:, None], 1e-12)[:, :, None]
        named = normalized(lexical, 1e-12).view(batch, questions, options, -1)
        limit = math.log(100)
        prior = self.prior_logit_scale.clamp(max=limit).exp() * (asked * named).sum(-1)
        cosine = (normalized(field, 1e-8) * normalized(u, 1e-8)).sum(-1)
        f = field.expand_as(u)
        residual = self.residual_scorer[0](torch.cat([f, u, f * u, (f - u).abs()], -1))
        residual = self.residual_scorer[3](F.gelu(residual)).squeeze(-1)
        joint = torch.sigmoid(self.residual_gate) * (
            self.joint_logit_scale.clamp(max=limit).exp() * cosine + residual)
        if isinstance(prior_weight, torch.Tensor):
            prior_weight = prior_weight[:, None, None]
        return prior_weight * prior + joint_weight * joint + absent


class Clef(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c = c
        self.model = nn.Module()
        self.model.language_model, self.model.visual = LanguageModel(c), Vision(c)
        self.lm_head = Linear(c["hidden"], c["vocab"])
        self.head = Head(c)

    def hidden(self, b):
        """Final normed hidden states [B, n, hidden], and the vision encoder's rows (or None)."""
        text = self.model.language_model
        h, features = text.embed_tokens(b["ids"]), None
        if b["segments"]:
            features = self.model.visual(b["segments"])
            h = h.reshape(-1, h.shape[-1]).index_copy(0, b["slots"], features).view(h.shape)
        rotary = mrope(b["positions"], self.c)
        for layer in text.layers:
            h = layer(h, rotary)
        return text.norm(h), features

    def forward(self, b, prior_weight=1.0, joint_weight=1.0):
        hidden, _ = self.hidden(b)
        return self.head(hidden, b, self.lm_head.weight, prior_weight, joint_weight)
