"""Fused float32 operations with hand-written gradients (ops.cpp), as torch functions.

Run as a script, it compares each with plain torch in float64.
"""

import ctypes
import os
import subprocess
import tempfile

import torch

_SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "ops.cpp")


def _library():
    """Builds ops.cpp once, outside the source tree, and loads it."""
    folder = os.environ.get("NANO_BUILD", os.path.join(tempfile.gettempdir(), "clef-nano-build"))
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, "libnanoops.so")
    if not os.path.exists(path) or os.path.getmtime(path) < os.path.getmtime(_SOURCE):
        partial = "%s.%d" % (path, os.getpid())
        subprocess.check_call(["g++", "-O3", "-march=native", "-mprefer-vector-width=512",
                               "-ffast-math", "-fopenmp", "-shared", "-fPIC", _SOURCE,
                               "-o", partial])
        os.replace(partial, path)
    return ctypes.CDLL(path)


_LIB = _library()
threads = 1  # Of the operations here; torch has its own setting.


def _pointer(tensor):
    return ctypes.c_void_p(tensor.data_ptr())


def _sizes(*values):
    return [ctypes.c_int64(int(v)) for v in values]


def _call(name, tensors, sizes=(), floats=()):
    getattr(_LIB, name)(*map(_pointer, tensors), *_sizes(*sizes),
                        *[ctypes.c_float(f) for f in floats], ctypes.c_int(threads))


class Rms(torch.autograd.Function):
    """x / rms(x) * (1 + weight), eps 1e-6."""

    @staticmethod
    def forward(ctx, x, weight):
        x = x.contiguous()
        d = x.shape[-1]
        y, r = torch.empty_like(x), torch.empty(x.numel() // d)
        _call("rms_fwd", (x, weight, y, r), (x.numel() // d, d), (1.0, 1e-6))
        ctx.save_for_backward(x, weight, r)
        return y

    @staticmethod
    def backward(ctx, gy):
        x, weight, r = ctx.saved_tensors
        gy = gy.contiguous()
        d = x.shape[-1]
        gx, gw = torch.empty_like(x), torch.empty_like(weight)
        _call("rms_bwd", (x, weight, r, gy, gx, gw), (x.numel() // d, d), (1.0,))
        return gx, gw


class GatedNorm(torch.autograd.Function):
    """x / rms(x) * weight * silu(z), eps 1e-6, over the last axis."""

    @staticmethod
    def forward(ctx, x, z, weight):
        x, z = x.contiguous(), z.contiguous()
        d = weight.shape[0]
        y, r = torch.empty_like(x), torch.empty(x.numel() // d)
        _call("gnorm_fwd", (x, z, weight, y, r), (x.numel() // d, d), (1e-6,))
        ctx.save_for_backward(x, z, weight, r)
        return y

    @staticmethod
    def backward(ctx, gy):
        x, z, weight, r = ctx.saved_tensors
        gy = gy.contiguous()
        d = weight.shape[0]
        gx, gz, gw = torch.empty_like(x), torch.empty_like(z), torch.empty_like(weight)
        _call("gnorm_bwd", (x, z, weight, r, gy, gx, gz, gw), (x.numel() // d, d))
        return gx, gz, gw


class SwiGlu(torch.autograd.Function):
    """silu(gate) * up."""

    @staticmethod
    def forward(ctx, gate, up):
        gate, up = gate.contiguous(), up.contiguous()
        y = torch.empty_like(gate)
        _call("swiglu_fwd", (gate, up, y), (gate.numel(),))
        ctx.save_for_backward(gate, up)
        return y

    @staticmethod
    def backward(ctx, gy):
        gate, up = ctx.saved_tensors
        gy = gy.contiguous()
        ggate, gup = torch.empty_like(gate), torch.empty_like(up)
        _call("swiglu_bwd", (gate, up, gy, ggate, gup), (gate.numel(),))
        return ggate, gup


class ConvSilu(torch.autograd.Function):
    """Causal depthwise convolution of kernel 4, then SiLU; x [B, n, C], weight [C, 1, 4]."""

    @staticmethod
    def forward(ctx, x, weight):
        x, wt = x.contiguous(), weight[:, 0].t().contiguous()
        before, y = torch.empty_like(x), torch.empty_like(x)
        _call("conv_fwd", (x, wt, before, y), x.shape)
        ctx.save_for_backward(x, wt, before)
        return y

    @staticmethod
    def backward(ctx, gy):
        x, wt, before = ctx.saved_tensors
        gy = gy.contiguous()
        gx, gw = torch.empty_like(x), torch.empty_like(wt)
        _call("conv_bwd", (x, wt, before, gy, gx, gw), x.shape)
        return gx, gw.t().unsqueeze(1).contiguous()


class Delta(torch.autograd.Function):
    """Gated delta rule. c [B, n, (2 HK + HV) D] = q | k | v, g and beta [B, n, HV]
    -> [B, n, HV, D]. The states at every 32nd token are kept for the gradient."""

    @staticmethod
    def forward(ctx, c, g, beta, hk, hv, d):
        c, g, beta = c.contiguous(), g.contiguous(), beta.contiguous()
        b, n, _ = c.shape
        o = torch.empty(b, n, hv, d)
        states = torch.empty(b, hv, (n + 31) // 32, d, d)
        _call("delta_fwd", (c, g, beta, o, states), (b, n, hk, hv, d))
        ctx.save_for_backward(c, g, beta, states)
        ctx.dims = (hk, hv, d)
        return o

    @staticmethod
    def backward(ctx, go):
        c, g, beta, states = ctx.saved_tensors
        go = go.contiguous()
        gc, gg, gb = torch.empty_like(c), torch.empty_like(g), torch.empty_like(beta)
        _call("delta_bwd", (c, g, beta, states, go, gc, gg, gb), (*c.shape[:2], *ctx.dims))
        return gc, gg, gb, None, None, None


def delta_chunked(c, g, beta, hk, hv, d, chunk=64):
    """The chunked form of model.md 2.2 in plain torch: the check on Delta."""
    b, n, _ = c.shape
    q, k, v = c.split([hk * d, hk * d, hv * d], -1)
    unit = lambda x: x * torch.rsqrt((x * x).sum(-1, keepdim=True) + 1e-6)
    q = (unit(q.view(b, n, hk, d)) / d**0.5).repeat_interleave(hv // hk, 2)
    k = unit(k.view(b, n, hk, d)).repeat_interleave(hv // hk, 2)
    v = v.view(b, n, hv, d)
    pad = torch.nn.functional.pad
    extra = -n % chunk
    q, k, v = (pad(x, (0, 0, 0, 0, 0, extra)).transpose(1, 2).reshape(b, hv, -1, chunk, d)
               for x in (q, k, v))
    g, beta = (pad(x, (0, 0, 0, extra)).transpose(1, 2).reshape(b, hv, -1, chunk)
               for x in (g, beta))
    total = g.cumsum(-1)
    lower = torch.ones(chunk, chunk, dtype=torch.bool).tril()
    decay = (total[..., :, None] - total[..., None, :]).masked_fill(~lower, float("-inf")).exp()
    system = (beta[..., None] * (k @ k.transpose(-1, -2)) * decay).tril(-1)
    system = system + torch.eye(chunk, dtype=c.dtype)
    solve = torch.linalg.solve_triangular
    u = solve(system, beta[..., None] * v, upper=False)
    w = solve(system, (beta * total.exp())[..., None] * k, upper=False)
    state, out = torch.zeros(b, hv, d, d, dtype=c.dtype), []
    for i in range(q.shape[2]):
        gi, qi, ki = total[:, :, i], q[:, :, i], k[:, :, i]
        values = u[:, :, i] - w[:, :, i] @ state
        inside = ((qi @ ki.transpose(-1, -2)) * decay[:, :, i]) @ values
        out.append((gi.exp()[..., None] * qi) @ state + inside)
        last = gi[..., -1:]
        scaled = (last - gi).exp()[..., None] * ki
        state = last.exp()[..., None] * state + scaled.transpose(-1, -2) @ values
    return torch.stack(out, 2).reshape(b, hv, -1, d)[:, :, :n].transpose(1, 2)


def check():
    """Values and gradients against float64; raises when one is off by more than 1e-4."""
    F = torch.nn.functional
    torch.manual_seed(0)

    def compare(name, fused, plain, args):
        a = [x.clone().requires_grad_() for x in args]
        b = [x.clone().double().requires_grad_() for x in args]
        y, z = fused(*a), plain(*b)
        gy = torch.randn(y.shape)
        y.backward(gy)
        z.backward(gy.double())
        relative = lambda p, q: float(((p - q).abs().max() / q.abs().max().clamp(min=1e-12)).detach())
        errors = [relative(y, z)] + [relative(p.grad, q.grad) for p, q in zip(a, b)]
        print(name, " ".join("%.1e" % e for e in errors))
        assert max(errors) < 1e-4, name

    rms = lambda x, w: x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-6) * w
    compare("rms", Rms.apply, lambda x, w: rms(x, 1 + w),
            [torch.randn(50, 128), torch.randn(128) * 0.1])
    compare("gated norm", GatedNorm.apply, lambda x, z, w: rms(x, w) * F.silu(z),
            [torch.randn(50, 32), torch.randn(50, 32), torch.randn(32)])
    compare("swiglu", SwiGlu.apply, lambda g, u: F.silu(g) * u,
            [torch.randn(50, 32), torch.randn(50, 32)])
    conv = lambda x, w: F.silu(F.conv1d(F.pad(x.transpose(1, 2), (3, 0)), w, groups=24))
    compare("conv", ConvSilu.apply, lambda x, w: conv(x, w).transpose(1, 2),
            [torch.randn(3, 9, 24), torch.randn(24, 1, 4)])
    for n in (1, 31, 64, 65, 130):
        g = -torch.rand(2, n, 4) * 2
        g[0] *= 0.01
        compare("delta, %d tokens" % n, lambda c, g, b: Delta.apply(c, g, b, 2, 4, 32),
                lambda c, g, b: delta_chunked(c, g, b, 2, 4, 32),
                [torch.randn(2, n, 256), g, torch.rand(2, n, 4)])


if __name__ == "__main__":
    check()
