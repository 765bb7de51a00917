"""Arithmetic behind a collective as it stands in today's models: what a rank does for test_epilogues.py.

A function gets what an all_reduce gives, [BATCH, LENGTH, WIDTH], and the tensors of `_given`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import commsir.torch.compile as fusing
import torch
import torch.distributed
import torch.distributed._functional_collectives as funcol
from compile_checks import DEVICE, _compare, _compiled, _tensor
from regions_checks import BATCH, HEADS, LENGTH, SIZE, WIDTH

dist: Any = torch.distributed
_f: Any = torch.nn.functional
EPILOGUES: dict[str, Callable[[Any, Any], Any]] = {}


def _epilogue(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    EPILOGUES[function.__name__] = function
    return function


def _norm(x: Any, w: Any, eps: float = 1e-6) -> Any:
    d = x.dtype
    x = x.float()
    x = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps)
    return w * x.to(d)


def _turned(x: Any) -> Any:
    a, b = x.chunk(2, -1)
    return torch.cat((-b, a), -1)


@_epilogue
def llama4_residual_norm(h: Any, t: Any) -> Any:
    x = h + t["res"]
    return x, _norm(x, t["w"])


@_epilogue
def llama4_l2norm(h: Any, t: Any) -> Any:
    x = h.view(BATCH, LENGTH, HEADS, SIZE)
    return x * torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + 1e-6).type_as(x)


@_epilogue
def llama4_temperature(h: Any, t: Any) -> Any:
    s = torch.log1p(torch.floor((t["pos"].float() + 1.0) / 8192.0)) * 0.1 + 1.0
    return h * s.view(1, LENGTH, 1).to(h.dtype)


@_epilogue
def llama4_router_scores(h: Any, t: Any) -> Any:
    return torch.sigmoid(h.float()).to(h.dtype) * t["res"]


@_epilogue
def llama4_rope_complex_real(h: Any, t: Any) -> Any:
    x = h.float().reshape(BATCH, LENGTH, HEADS, SIZE // 2, 2)
    c, s = t["cos2"], t["sin2"]
    return torch.stack((x[..., 0] * c - x[..., 1] * s, x[..., 0] * s + x[..., 1] * c), -1).flatten(3).type_as(h)


@_epilogue
def gemma_rms_plus_one(h: Any, t: Any) -> Any:
    x = h.float()
    x = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)
    return (x * (1.0 + t["w"].float())).type_as(h)


@_epilogue
def gemma_sandwich(h: Any, t: Any) -> Any:
    x = _norm(h, t["w"]) + t["res"]
    return x, _norm(x, t["w2"])


@_epilogue
def gemma_embed_scale(h: Any, t: Any) -> Any:
    return h * torch.tensor(WIDTH**0.5).to(h.dtype)


@_epilogue
def gemma2_softcap(h: Any, t: Any) -> Any:
    return torch.tanh(h / 50.0) * 50.0


@_epilogue
def gemma3n_laurel(h: Any, t: Any) -> Any:
    return (h + t["res"]) / math.sqrt(2)


@_epilogue
def gemma3n_altup_correct(h: Any, t: Any) -> Any:
    inn = h - t["res"]
    return inn * t["coef"] + t["res2"]


@_epilogue
def gemma3n_magnitude(h: Any, t: Any) -> Any:
    target = torch.mean(t["res"] ** 2, dim=-1, keepdim=True) ** 0.5
    new = torch.mean(h**2, dim=-1, keepdim=True)
    new = torch.sqrt(torch.maximum(new, torch.tensor(1e-5)))
    return h * target / new


@_epilogue
def gemma3n_gaussian_topk(h: Any, t: Any) -> Any:
    m = h.mean(-1, keepdim=True)
    s = h.std(-1, keepdim=True, unbiased=False)
    return _f.relu(h - (m + s * 1.6449))


@_epilogue
def gemma3n_act_gate(h: Any, t: Any) -> Any:
    return _f.gelu(h, approximate="tanh") * t["res"]


@_epilogue
def qwen3next_zero_centered(h: Any, t: Any) -> Any:
    return _norm(h, torch.ones(WIDTH)) * (1 + t["w"])


@_epilogue
def qwen3next_gated_norm(h: Any, t: Any) -> Any:
    x = h.float()
    x = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)
    x = t["w"] * x.to(h.dtype)
    return (x * _f.silu(t["res"].float())).to(h.dtype)


@_epilogue
def qwen3next_attn_gate(h: Any, t: Any) -> Any:
    return h * torch.sigmoid(t["res"])


@_epilogue
def qwen3next_shared_gate(h: Any, t: Any) -> Any:
    return h * torch.sigmoid(t["gate1"]) + t["res"]


@_epilogue
def qwen3next_l2(h: Any, t: Any) -> Any:
    x = h.view(BATCH, LENGTH, HEADS, SIZE)
    return x * torch.rsqrt((x * x).sum(-1, keepdim=True) + 1e-6)


@_epilogue
def qwen3next_beta_g(h: Any, t: Any) -> Any:
    return h.sigmoid(), -t["w"].float().exp() * _f.softplus(h.float() + t["w2"])


@_epilogue
def qwen3_qk_norm_rope(h: Any, t: Any) -> Any:
    x = _norm(h.view(BATCH, LENGTH, HEADS, SIZE), t["wd"])
    return x * t["cosd"][:, :, None] + _turned(x) * t["sind"][:, :, None]


@_epilogue
def glm_partial_rope(h: Any, t: Any) -> Any:
    x = h.view(BATCH, LENGTH, HEADS, SIZE)
    r, p = x[..., : SIZE // 2], x[..., SIZE // 2 :]
    r = r * t["cosh"][:, :, None] + _turned(r) * t["sinh"][:, :, None]
    return torch.cat((r, p), -1)


@_epilogue
def glm_interleaved_rope(h: Any, t: Any) -> Any:
    x = h.view(BATCH, LENGTH, HEADS, SIZE)
    x1 = x[..., 0::2]
    x2 = x[..., 1::2]
    r = torch.stack((-x2, x1), -1).flatten(-2)
    return x * t["cosd"][:, :, None] + r * t["sind"][:, :, None]


@_epilogue
def glm45_gate(h: Any, t: Any) -> Any:
    s = h.float().sigmoid()
    return s, s + t["w"].float()


@_epilogue
def olmo2_post_norm(h: Any, t: Any) -> Any:
    return t["res"] + _norm(h, t["w"])


@_epilogue
def olmo2_qk_norm(h: Any, t: Any) -> Any:
    return _norm(h, t["w"]).view(BATCH, LENGTH, HEADS, SIZE).transpose(1, 2)


@_epilogue
def phi4_swiglu(h: Any, t: Any) -> Any:
    up = h
    g, u = up.chunk(2, -1)
    return u * _f.silu(g)


@_epilogue
def mistral_small_norm(h: Any, t: Any) -> Any:
    x = t["res"].float() + h.float()
    return _f.rms_norm(x, (WIDTH,), t["w"].float(), 1e-5).to(h.dtype)


@_epilogue
def granite_multiplier(h: Any, t: Any) -> Any:
    x = t["res"] + h * 0.22
    return x, _norm(x, t["w"])


@_epilogue
def granite_logits(h: Any, t: Any) -> Any:
    return (h / 8.0).float()


@_epilogue
def gptoss_bias_residual(h: Any, t: Any) -> Any:
    x = h + t["w"] + t["res"]
    return x, _norm(x, t["w2"])


@_epilogue
def gptoss_clamped_swiglu(h: Any, t: Any) -> Any:
    g, u = h[..., ::2], h[..., 1::2]
    g = g.clamp(min=None, max=7.0)
    u = u.clamp(min=-7.0, max=7.0)
    return (u + 1) * (g * torch.sigmoid(g * 1.702))


@_epilogue
def gptoss_clamped_swiglu_halves(h: Any, t: Any) -> Any:
    g, u = h.chunk(2, -1)
    g = g.clamp(max=7.0)
    u = u.clamp(min=-7.0, max=7.0)
    return (u + 1) * (g * torch.sigmoid(g * 1.702))


@_epilogue
def gptoss_sinks(h: Any, t: Any) -> Any:
    s = h.view(BATCH, LENGTH, HEADS, SIZE)
    c = torch.cat((s, t["sink"].view(1, 1, HEADS, 1).expand(BATCH, LENGTH, HEADS, 1)), -1)
    c = c - c.max(-1, keepdim=True).values
    return _f.softmax(c, -1)[..., :-1]


@_epilogue
def gptoss_router_topk_softmax(h: Any, t: Any) -> Any:
    v, i = torch.topk(h + t["w"], 2, -1)  # No two are equal, which may go either way.
    v = _f.softmax(v, 1)
    return torch.zeros_like(h).scatter(-1, i, v)


@_epilogue
def deepseek_gate_scores(h: Any, t: Any) -> Any:
    s = h.float().sigmoid()
    return s, s.view(BATCH * LENGTH, -1) + t["w"].float().unsqueeze(0)


@_epilogue
def deepseek_group_topk(h: Any, t: Any) -> Any:
    s = h.float().sigmoid().view(BATCH * LENGTH, WIDTH)
    sc = s + t["w"].float()
    g = sc.view(BATCH * LENGTH, HEADS, SIZE).topk(2, -1)[0].sum(-1)
    gi = torch.topk(g, 2, -1, sorted=False)[1]
    m = torch.zeros_like(g)
    m.scatter_(1, gi, 1)
    m = m.unsqueeze(-1).expand(-1, HEADS, SIZE).reshape(BATCH * LENGTH, WIDTH)
    sc = sc.masked_fill(~m.bool(), 0.0)
    i = torch.topk(sc, 2, -1, sorted=False)[1]
    w = s.gather(1, i)
    w = w / (w.sum(-1, keepdim=True) + 1e-20)
    return w * 2.5


@_epilogue
def deepseek_kv_a_norm(h: Any, t: Any) -> Any:
    c, k = h.split([WIDTH - SIZE, SIZE], -1)
    return _norm(c, t["wkv"]), k * t["cosd"] + _turned(k) * t["sind"]


@_epilogue
def deepseek_interleave(h: Any, t: Any) -> Any:
    x = h.view(BATCH, LENGTH, HEADS, SIZE // 2, 2).transpose(4, 3).reshape(BATCH, LENGTH, HEADS, SIZE)
    return x * t["cosd"][:, :, None] + _turned(x) * t["sind"][:, :, None]


@_epilogue
def deepseek_shared_plus_routed(h: Any, t: Any) -> Any:
    return h + t["res"] + t["res2"]


@_epilogue
def deepseek_fp8_groups(h: Any, t: Any) -> Any:
    x = h.float().view(BATCH * LENGTH, HEADS, SIZE)
    s = x.abs().amax(-1).clamp(1e-4) / 448.0
    return (x / s.unsqueeze(-1)).to(torch.float8_e4m3fn).view(BATCH * LENGTH, WIDTH), s


@_epilogue
def deepseek_fp8_ue8m0(h: Any, t: Any) -> Any:
    x = h.float().view(BATCH * LENGTH, HEADS, SIZE)
    s = x.abs().amax(-1, keepdim=True).clamp(1e-4) / 448.0
    s = torch.pow(2.0, torch.ceil(torch.log2(s.abs())))
    return (x * (1.0 / s)).to(torch.float8_e4m3fn).view(BATCH * LENGTH, WIDTH), s.squeeze(-1)


@_epilogue
def cohere2_layernorm(h: Any, t: Any) -> Any:
    d = h.dtype
    x = h.float()
    m = x.mean(-1, keepdim=True)
    v = (x - m).pow(2).mean(-1, keepdim=True)
    x = (x - m) * torch.rsqrt(v + 1e-5)
    return (t["w"].float() * x).to(d)


@_epilogue
def cohere2_parallel(h: Any, t: Any) -> Any:
    return t["res"] + h + t["res2"]


@_epilogue
def cohere_logit_scale(h: Any, t: Any) -> Any:
    return h * 0.0625


@_epilogue
def cohere_rope(h: Any, t: Any) -> Any:
    x = h.float().view(BATCH, LENGTH, HEADS, SIZE)
    x1 = x[..., ::2]
    x2 = x[..., 1::2]
    r = torch.stack([-x2, x1], dim=-1).flatten(-2)
    return (x * t["cosd"][:, :, None] + r * t["sind"][:, :, None]).to(h.dtype)


@_epilogue
def nemotron_relu2(h: Any, t: Any) -> Any:
    return _f.relu(h).pow(2), torch.square(_f.relu(h))


@_epilogue
def nemotron_ln1p(h: Any, t: Any) -> Any:
    return _f.layer_norm(h, (WIDTH,), t["w"] + 1, t["w2"], 1e-5)


@_epilogue
def dbrx_clip(h: Any, t: Any) -> Any:
    return h.clamp(min=-8.0, max=8.0)


@_epilogue
def mpt_layernorm_nobias(h: Any, t: Any) -> Any:
    return _f.layer_norm(h + t["res"], (WIDTH,), t["w"], None, 1e-5)


@_epilogue
def bloom_gelu(h: Any, t: Any) -> Any:
    x = h + t["w"]
    return x * 0.5 * (1.0 + torch.tanh(0.79788456 * x * (1 + 0.044715 * x * x)))


@_epilogue
def falcon_h1(h: Any, t: Any) -> Any:
    return h * t["w"] * 0.7 + t["res"]


@_epilogue
def minicpm(h: Any, t: Any) -> Any:
    return t["res"] + h * (1.4 / math.sqrt(40))


@_epilogue
def gpt2_gelu_new(h: Any, t: Any) -> Any:
    return 0.5 * h * (1.0 + torch.tanh(math.sqrt(2.0 / math.pi) * (h + 0.044715 * torch.pow(h, 3.0))))


@_epilogue
def bert_post_ln(h: Any, t: Any) -> Any:
    return _f.layer_norm(h + t["w"] + t["res"], (WIDTH,), t["w"], t["w2"])


@_epilogue
def t5_ff_norm(h: Any, t: Any) -> Any:
    x = t["res"] + h
    v = x.to(torch.float32).pow(2).mean(-1, keepdim=True)
    return t["w"] * (x * torch.rsqrt(v + 1e-6))


@_epilogue
def t5_clamp_where_infinite(h: Any, t: Any) -> Any:
    x = t["res"] + h
    c = torch.where(torch.isinf(x).any(), torch.finfo(x.dtype).max - 1000, torch.finfo(x.dtype).max)
    return torch.clamp(x, min=-c, max=c)


@_epilogue
def vit_layerscale(h: Any, t: Any) -> Any:
    return h * t["w"] + t["res"]


@_epilogue
def dit_modulate(h: Any, t: Any) -> Any:
    return _f.layer_norm(h, (WIDTH,)) * (1 + t["vecb"].unsqueeze(1)) + t["vecb"].unsqueeze(1)


@_epilogue
def flux_gate(h: Any, t: Any) -> Any:
    return t["res"] + t["vecb"].unsqueeze(1) * h


@_epilogue
def int8_per_tensor_static(h: Any, t: Any) -> Any:
    return torch.round(h / t["scale"]).clamp(-128, 127).to(torch.int8)


@_epilogue
def int8_asym(h: Any, t: Any) -> Any:
    mn = h.amin(-1, keepdim=True)
    mx = h.amax(-1, keepdim=True)
    s = (mx - mn).clamp(min=1e-5) / 255.0
    z = (-128 - torch.round(mn / s)).clamp(-128, 127)
    return (torch.round(h / s) + z).clamp(-128, 127).to(torch.int8), s, z.to(torch.int8)


@_epilogue
def fp8_dynamic_per_token(h: Any, t: Any) -> Any:
    s = h.abs().amax(-1, keepdim=True).float() / 448.0
    return (h.float() / s).clamp(-448, 448).to(torch.float8_e4m3fn), s


@_epilogue
def fp8_per_tensor_dynamic(h: Any, t: Any) -> Any:
    s = h.abs().max().float() / 448.0
    return (h.float() / s).clamp(-448, 448).to(torch.float8_e4m3fn), s


@_epilogue
def fp8_norm_static(h: Any, t: Any) -> Any:
    x = h + t["res"]
    return (_norm(x, t["w"]).float() * t["scale"]).clamp(-448, 448).to(torch.float8_e4m3fn), x


@_epilogue
def mx_scale(h: Any, t: Any) -> Any:
    x = h.view(BATCH * LENGTH * HEADS, SIZE)
    m = x.abs().amax(-1, keepdim=True)
    ex = torch.floor(torch.log2(m)) - 8
    return (x / torch.exp2(ex)).clamp(-448, 448).to(torch.float8_e4m3fn), (ex + 127).to(torch.int32)


@_epilogue
def glu(h: Any, t: Any) -> Any:
    return _f.glu(h, -1)


@_epilogue
def geglu(h: Any, t: Any) -> Any:
    a, b = h.chunk(2, -1)
    return _f.gelu(a) * b


@_epilogue
def clamp_tensor(h: Any, t: Any) -> Any:
    return torch.clamp(h, min=-t["w"].abs(), max=t["w"].abs())


@_epilogue
def attention_mask_add(h: Any, t: Any) -> Any:
    return _f.softmax(h.float() + t["amask"], -1).to(h.dtype)


@_epilogue
def alibi(h: Any, t: Any) -> Any:
    return h.view(BATCH, LENGTH, HEADS, SIZE) + t["slopes"].view(1, 1, HEADS, 1) * t["arange"].view(1, 1, 1, SIZE)


@_epilogue
def loss_logsumexp(h: Any, t: Any) -> Any:
    return torch.logsumexp(h.float(), -1), h.float().gather(-1, t["label"].unsqueeze(-1)).squeeze(-1)


@_epilogue
def z_loss(h: Any, t: Any) -> Any:
    return (torch.logsumexp(h.float(), -1) ** 2).mean() * 1e-4


@_epilogue
def aux_mean(h: Any, t: Any) -> Any:
    return _f.softmax(h.float(), -1).mean((0, 1))


@_epilogue
def entropy(h: Any, t: Any) -> Any:
    p = _f.softmax(h, -1)
    return -(p * torch.log(p + 1e-9)).sum(-1)


@_epilogue
def isfinite_guard(h: Any, t: Any) -> Any:
    return torch.where(torch.isfinite(h), h, 0.0)


@_epilogue
def pooled(h: Any, t: Any) -> Any:
    m = t["rowmask"]
    return (h * m).sum(1) / m.sum(1)


@_epilogue
def last_token(h: Any, t: Any) -> Any:
    return _norm(h[:, -1], t["w"])


@_epilogue
def cls(h: Any, t: Any) -> Any:
    return torch.tanh(h[:, 0])


@_epilogue
def mamba_gate(h: Any, t: Any) -> Any:
    return h * _f.silu(t["res"]) * t["w"]


@_epilogue
def group_rms(h: Any, t: Any) -> Any:
    x = h.view(BATCH, LENGTH, 2, WIDTH // 2).float()
    x = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5)
    return (t["w"] * x.view(BATCH, LENGTH, WIDTH)).to(h.dtype)


@_epilogue
def mtp_concat(h: Any, t: Any) -> Any:
    return torch.cat((_norm(h, t["w"]), _norm(t["res"], t["w2"])), -1)


@_epilogue
def mean_default(h: Any, t: Any) -> Any:
    return ((h - t["res"]) ** 2).mean()


@_epilogue
def per_head_scale(h: Any, t: Any) -> Any:
    return (h.view(BATCH, LENGTH, HEADS, SIZE) * t["sink"].view(HEADS, 1)).reshape(BATCH, LENGTH, WIDTH)


@_epilogue
def logsigmoid(h: Any, t: Any) -> Any:
    return _f.logsigmoid(h)


@_epilogue
def swish_beta(h: Any, t: Any) -> Any:
    return h * torch.sigmoid(1.702 * h)


@_epilogue
def xielu(h: Any, t: Any) -> Any:
    p, n = 0.8, 0.8
    return torch.where(h > 0, p * h * h + 0.5 * h, (torch.expm1(torch.min(h, torch.tensor(-1e-6))) - h) * n + 0.5 * h)


@_epilogue
def erf_poly(h: Any, t: Any) -> Any:
    return torch.special.erf(h) * torch.special.expit(h)


@_epilogue
def any_and_all(h: Any, t: Any) -> Any:
    return ((h > 1).any(-1, keepdim=True) | (h.abs() < 2).all(-1, keepdim=True)).to(h.dtype) * h


@_epilogue
def largest_without_places(h: Any, t: Any) -> Any:
    return h - h.max(-1, keepdim=True).values, h.min(-1).values


@_epilogue
def chosen_scores(h: Any, t: Any) -> Any:
    """Of experts that were chosen elsewhere."""
    scores = torch.sigmoid(h).gather(-1, t["chosen"])
    return scores / scores.sum(-1, keepdim=True) * 2.5


@_epilogue
def masks_by_arithmetic(h: Any, t: Any) -> Any:
    positive, small = h > 0, h.abs() < 1
    return (positive * small).to(h.dtype) * h, positive + small


def _given(dtype: torch.dtype) -> dict[str, Any]:
    """Tensors of the model, the same on all ranks."""
    whole, head = (BATCH, LENGTH, WIDTH), (BATCH, LENGTH, SIZE)
    shapes: dict[str, tuple[int, ...]] = {
        **{name: whole for name in ("res", "res2")},
        **{name: (WIDTH,) for name in ("w", "w2")},
        **{name: (BATCH, LENGTH, 1, SIZE // 2) for name in ("cos2", "sin2")},
        **{name: head for name in ("cosd", "sind")},
        **{name: (BATCH, LENGTH, SIZE // 2) for name in ("cosh", "sinh")},
        **{name: (BATCH, LENGTH, 1) for name in ("coef", "gate1")},
        **{name: (HEADS,) for name in ("sink", "slopes")},
        **{"wd": (SIZE,), "vecb": (BATCH, WIDTH), "wkv": (WIDTH - SIZE,)},
    }
    given: dict[str, Any] = {
        name: _tensor(0, *shape, dtype=dtype, seed=place + 1) for place, (name, shape) in enumerate(shapes.items())
    }
    rows, columns = torch.arange(BATCH * LENGTH, device=DEVICE), torch.arange(WIDTH, device=DEVICE)
    given["pos"] = torch.arange(LENGTH, device=DEVICE) * 9000
    given["scale"] = torch.tensor(0.75, device=DEVICE)
    given["arange"] = torch.arange(SIZE, device=DEVICE).to(dtype)
    given["label"] = rows.view(BATCH, LENGTH) * 5 % WIDTH
    given["chosen"] = torch.stack((rows % WIDTH, rows * 7 % WIDTH, rows * 3 % WIDTH), -1).view(BATCH, LENGTH, 3)
    given["rowmask"] = (rows.view(BATCH, LENGTH, 1) % 3 > 0).to(dtype)
    given["amask"] = torch.where(columns % 3 > 0, -math.inf, 0.0).to(dtype).expand(BATCH, 1, WIDTH).contiguous()
    return given


def _tensors(made: Any) -> tuple[Any, ...]:
    return made if isinstance(made, tuple) else (made,)


def fuses(rank: int, size: int, names: list[str], dtype: torch.dtype) -> dict[str, tuple[tuple[str, ...], str]]:
    """Compiled in one graph, each behind its own all_reduce, they give what they give otherwise; what went into each
    kernel, and why not more."""
    given = _given(dtype)

    def after(xs: Any, t: Any) -> Any:
        return tuple(
            _tensors(EPILOGUES[name](funcol.all_reduce(x, "sum", dist.group.WORLD), t))
            for name, x in zip(names, xs, strict=True)
        )

    compiled = _compiled(after, leaves=True)
    for turn in range(4):
        # Sums of halves are exact: a cast is not to round another sum.
        xs = [
            (_tensor(rank, BATCH, LENGTH, WIDTH, dtype=torch.float32, seed=10 * turn + place) * 8).round().div(8)
            for place, _ in enumerate(names)
        ]
        xs = [x.to(dtype) for x in xs]
        for name, got, want in zip(names, compiled(xs, given), after(xs, given), strict=True):
            _check(name, got, want, {torch.float32: 3e-5}.get(dtype, 4e-2))
    return {name: (one.fused, "; ".join(one.because)) for name, one in zip(names, fusing.fusions(), strict=True)}


def _check(name: str, got: Any, want: Any, near: float) -> None:
    for a, b in zip(want, got, strict=True):
        if a.dtype in (torch.int8, torch.int32):  # A number next to half of the way may round either way.
            assert a.dtype is b.dtype and (a.int() - b.int()).abs().max() <= 1, name
        else:
            try:
                _compare(a, b, near)
            except AssertionError as error:
                raise AssertionError(f"{name}: {error}") from None
