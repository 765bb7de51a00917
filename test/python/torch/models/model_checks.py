"""Tensor-parallel models of transformers: compiled with the pass, they give the same results as without.

The models are small, with random weights, parallel by their own plan or by parallelize_module (plans.py). Each rank
returns the report on the graphs (test_models.py, table.py).
"""

from __future__ import annotations

import gc
import importlib
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import commsir.torch
import commsir.torch.compile as fusing
import plans
import torch
import torch.distributed

dist: Any = torch.distributed
_dynamo: Any = torch._dynamo
_inductor: Any = torch._inductor

#: Of a small model. A configuration takes those that its class has.
_SIZES: dict[str, Any] = {
    "vocab_size": 128,
    "vocab_size_per_layer_input": 128,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "tie_word_embeddings": False,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "layer_types": None,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "rotary_dim": 8,
    "sliding_window": 16,
    "query_pre_attn_scalar": 16,
    # Experts
    "num_experts": 4,
    "num_local_experts": 4,
    "n_routed_experts": 4,
    "moe_num_experts": 4,
    "num_experts_per_tok": 2,
    "moe_k": 2,
    "moe_intermediate_size": 32,
    "shared_expert_intermediate_size": 32,
    "shared_intermediate_size": 32,
    "n_shared_experts": 1,
    "moe_num_shared_experts": 1,
    "n_group": 1,
    "topk_group": 1,
    "first_k_dense_replace": 1,
    "moe_layer_start_index": 1,
    "moe_layer_end_index": 1,
    # Latent attention
    "q_lora_rank": 32,
    "kv_lora_rank": 16,
    "qk_rope_head_dim": 8,
    "qk_nope_head_dim": 8,
    "v_head_dim": 16,
}
#: The configuration of each model, and what it has in place of those sizes.
MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "Llama": ("LlamaConfig", {}),
    "Llama 4": ("Llama4TextConfig", {"intermediate_size_mlp": 96, "moe_layers": [1], "attention_chunk_size": 16}),
    "Qwen2": ("Qwen2Config", {}),
    "Qwen2-MoE": ("Qwen2MoeConfig", {}),
    "Qwen3": ("Qwen3Config", {}),
    "Qwen3-MoE": ("Qwen3MoeConfig", {}),
    "Mistral": ("MistralConfig", {}),
    "Ministral": ("MinistralConfig", {}),
    "Mixtral": ("MixtralConfig", {}),
    "Gemma": ("GemmaConfig", {}),
    "Gemma 2": ("Gemma2Config", {}),
    "Gemma 3": ("Gemma3TextConfig", {"final_logit_softcapping": 30.0}),
    "Gemma 3n": (
        "Gemma3nTextConfig",
        {
            **{"intermediate_size": [96, 96], "activation_sparsity_pattern": [0.0, 0.0], "altup_num_inputs": 2},
            **{"layer_types": ["sliding_attention", "full_attention"], "hidden_size_per_layer_input": 16},
            **{"laurel_rank": 8, "num_kv_shared_layers": 0},
        },
    ),
    "GPT-NeoX": ("GPTNeoXConfig", {}),
    "GPT-J": ("GPTJConfig", {"n_embd": 64, "n_layer": 2, "n_head": 4, "n_inner": 96, "n_positions": 64}),
    "gpt-oss": ("GptOssConfig", {}),
    "Phi": ("PhiConfig", {}),
    "Phi-3": ("Phi3Config", {}),
    "Phi-MoE": ("PhimoeConfig", {}),
    "DeepSeek-V2": ("DeepseekV2Config", {"num_key_value_heads": 4}),
    "DeepSeek-V3": ("DeepseekV3Config", {"num_key_value_heads": 4, "head_dim": 8, "n_group": 2}),
    "Granite": ("GraniteConfig", {}),
    "GraniteMoE": ("GraniteMoeConfig", {}),
    "OLMo": ("OlmoConfig", {}),
    "OLMo 2": ("Olmo2Config", {}),
    "OLMo 3": ("Olmo3Config", {}),
    "OLMoE": ("OlmoeConfig", {}),
    "Cohere": ("CohereConfig", {}),
    "Cohere 2": ("Cohere2Config", {}),
    "GLM": ("GlmConfig", {}),
    "GLM-4": ("Glm4Config", {}),
    "GLM-4-MoE": ("Glm4MoeConfig", {}),
    "Nemotron": ("NemotronConfig", {}),
    "Starcoder 2": ("Starcoder2Config", {}),
    "SmolLM3": ("SmolLM3Config", {}),
    "Ernie 4.5": ("Ernie4_5Config", {}),
    "Ernie 4.5 MoE": ("Ernie4_5_MoeConfig", {"moe_layer_interval": 1}),
    "dots1": ("Dots1Config", {}),
    "HunYuan": ("HunYuanDenseV1Config", {}),
    "HunYuan-MoE": ("HunYuanMoEV1Config", {}),
    "Seed-OSS": ("SeedOssConfig", {}),
    "EXAONE 4": ("Exaone4Config", {}),
    "Apertus": ("ApertusConfig", {}),
    "Arcee": ("ArceeConfig", {}),
    "Helium": ("HeliumConfig", {}),
}
DTYPES = {"f32": torch.float32, "bf16": torch.bfloat16}
#: The first of 16 token ids, where it is not 3. GLM-4-MoE routes a token to two experts. For one of the ids from 3 on,
#: the scores of the second and the third best expert differ by 2e-5 in float32. In bfloat16, compiled scores are up to
#: 7e-4 off, so the third may be chosen. For the ids from 87 on, these scores differ by 5e-3 or more. Llama 4 routes a
#: token to one expert. In bfloat16 its two best scores differ by 4e-3 or more for the ids from 20 on. They
#: differ by 3e-3 and 1e-3 at the least for those from 3 and from 40 on, where compiled code decodes other logits.
_FIRST_ID = {"GLM-4-MoE": 87, "Llama 4": 20}


def _transformers() -> Any:
    """Which need not be installed."""
    return importlib.import_module("transformers")


def _config(name: str, size: int) -> Any:
    """The model's configuration; there are heads for all ranks."""
    kind = getattr(_transformers(), MODELS[name][0])
    known = kind()
    made = {key: value for key, value in _SIZES.items() if hasattr(known, key)}
    # No window and no latent queries in a model that has none. Under its own name a size is given once.
    for key in ("sliding_window", "q_lora_rank"):
        if getattr(known, key, None) is None:
            made.pop(key, None)
    made = {key: value for key, value in made.items() if kind.attribute_map.get(key, key) == key}
    made.update(MODELS[name][1])
    for heads in ("num_attention_heads", "num_key_value_heads", "n_head"):
        if heads in made:
            made[heads] = max(made[heads], size)
    return kind(**made)


def _path(name: str, size: int) -> str:
    """Where the weights are, made by rank 0: a plan is applied where weights are loaded."""
    transformers = _transformers()
    folder = [Path(tempfile.mkdtemp()) if dist.get_rank() == 0 else Path()]
    dist.broadcast_object_list(folder)
    if dist.get_rank() == 0:
        torch.manual_seed(0)
        transformers.AutoModelForCausalLM.from_config(_config(name, size)).save_pretrained(folder[0])
    dist.barrier()
    return str(folder[0])


def _model(rank: int, size: int, name: str, dtype: torch.dtype, plan: str) -> Any:
    transformers = _transformers()
    os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(size), HF_HUB_OFFLINE="1")
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    load = transformers.AutoModelForCausalLM.from_pretrained
    if plan in ("own", "experts"):
        parts = {"ep_size": size} if plan == "experts" else {}
        own = importlib.import_module("transformers.distributed").DistributedConfig(
            tp_plan="auto", tp_size=size, **parts
        )
        return load(_path(name, size), distributed_config=own, dtype=dtype)
    return plans.PLANS[plan](load(_path(name, size), dtype=dtype), size)


def _local(tensor: Any) -> torch.Tensor:
    made: torch.Tensor = tensor.to_local() if hasattr(tensor, "to_local") else tensor
    return made


def _compare(name: str, want: torch.Tensor, got: torch.Tensor, loose: float) -> None:
    assert want.dtype == got.dtype and want.shape == got.shape, name
    off = float((want - got).abs().max())
    most = float(want.abs().max())
    # A gradient that is zero in exact arithmetic, as of a router that chooses one expert, is rounding alone.
    assert off <= loose * max(most, 1e-5), f"{name}: {off} off, of at most {most}"


def _forward(model: Any) -> Callable[[Any], dict[str, torch.Tensor]]:
    @torch.no_grad()
    def step(ids: Any) -> Any:
        return {"logits": model(ids, use_cache=False).logits}

    return step


def _train(model: Any) -> Callable[[Any], Any]:
    def step(ids: Any) -> Any:
        return {"loss": model(ids, labels=ids, use_cache=False).loss}

    return step


def _with_gradients(model: Any, step: Callable[[Any], Any], ids: Any) -> dict[str, torch.Tensor]:
    made = step(ids)
    loss = made["loss"]
    loss.backward()
    grads = {name: _local(one.grad).clone() for name, one in model.named_parameters() if one.grad is not None}
    model.zero_grad(set_to_none=True)
    return {"loss": loss.detach(), **grads}


def _options() -> dict[str, Any]:
    """For a compilation anew."""
    _inductor.config.force_disable_caches = True
    _dynamo.reset()
    fusing.clear_fusions()
    # What is left to Inductor runs as it is: a C++ compiler would take longer than all else.
    return {"fallback_by_default": True, "reorder_for_peak_memory": False, **fusing.compile_options()}


def _compiled(step: Callable[..., Any]) -> Callable[..., Any]:
    return torch.compile(step, options=_options())


def _decode(model: Any, forward: Callable[..., Any], ids: Any, count: int) -> dict[str, torch.Tensor]:
    """Greedy decoding with a cache, by `forward` from the second token on: the logits of each token."""
    cache = _transformers().StaticCache(config=model.config, max_cache_len=16)
    made: dict[str, torch.Tensor] = {}
    token, place = ids, 0
    for number in range(count):
        positions = torch.arange(place, place + token.shape[1])
        step = forward if number else _decoding(model)
        logits = step(token, positions[None], cache)[:, -1:].float()
        made[f"token {number}"] = logits
        place += token.shape[1]
        token = logits.argmax(-1)
    return made


def _decoding(model: Any) -> Callable[..., Any]:
    @torch.no_grad()
    def forward(token: Any, positions: Any, cache: Any) -> Any:
        return model(token, position_ids=positions, past_key_values=cache, use_cache=True).logits

    return forward


#: Of a graph: the step it belongs to, collectives of the program, kernels, and why others are left.
Row = tuple[str, int, int, list[str]]


#: What no kernel can take along: nothing follows it.
NOTHING = "nothing follows"


def _reason(one: Any) -> str:
    """Why a collective is left, and the line of the model that makes it. Many models return logits."""
    why = ", ".join(one.because)
    place = "" if NOTHING in why or not one.source else f" at {':'.join(one.source.split(':')[:2])}"
    return f"{one.collective}{place}: {why}"


def _rows(step: str) -> list[Row]:
    graphs: dict[str, list[Any]] = {}
    for one in commsir.torch.report():
        graphs.setdefault(one.graph.split(", ")[1], []).append(one)
    rows = list[Row]()
    for kind, found in graphs.items():
        left = [_reason(one) for one in found if not one.is_changed]
        rows.append(
            (
                step if step != "training" else f"training, {kind}",
                sum(one.joined for one in found),
                len(found) - len(left),
                left,
            )
        )
    return rows


def check(rank: int, size: int, name: str, dtype: str, steps: list[str], plan: str = "own") -> list[Row]:
    """The model's steps, compiled and not; what became of the collectives of each."""
    gc.disable()  # A compiler makes millions of objects, which live as long as it does: collections cost 10 % of it.
    try:
        return _checked(_model(rank, size, name, DTYPES[dtype], plan), name, dtype, steps)
    finally:
        gc.enable()


def _checked(model: Any, name: str, dtype: str, steps: list[str]) -> list[Row]:
    rows = list[Row]()
    loose = {"f32": 1e-4, "bf16": 6e-2}[dtype]
    ids = torch.arange(16).view(2, 8) + _FIRST_ID.get(name, 3)
    for step in steps:
        if step == "forward":
            eager, compiled = _forward(model)(ids), _compiled(_forward(model))
            made = [compiled(ids) for _ in range(4)][-1]
        elif step == "training":
            eager = _with_gradients(model, _train(model), ids)
            compiled = _compiled(_train(model))
            made = [_with_gradients(model, compiled, ids) for _ in range(4)][-1]
        else:
            eager, compiled = _decode(model, _decoding(model), ids, 5), _compiled(_decoding(model))
            made = _decode(model, compiled, ids, 5)
        assert eager.keys() == made.keys()
        for key in eager:
            _compare(f"{name}, {step}, {key}", eager[key], made[key], loose)
        rows += _rows(step)
    return rows


def generates(rank: int, size: int, name: str, **how: Any) -> int:
    """`generate()` of a padded batch, eager and with `forward` compiled; how many collectives are fused. `how`: further
    arguments."""
    model = _model(rank, size, name, torch.float32, "own")
    ids = torch.arange(24).view(3, 8) + 3
    kept = torch.arange(8) >= torch.tensor([[3], [0], [5]])
    given = {"input_ids": ids.where(kept, 0), "attention_mask": kept.long(), "pad_token_id": 0, **how}

    def tokens() -> torch.Tensor:
        torch.manual_seed(5)
        made: torch.Tensor = model.generate(**given, min_new_tokens=6, max_new_tokens=6)
        return made

    want = tokens()
    model.forward = torch.compile(model.forward, options=_options())
    for _ in range(2):
        assert torch.equal(want, tokens()), (want, tokens())
    return sum(one.is_changed for one in commsir.torch.report())


# ---------------------------------------------------------------------------------------------------------------------
# Training loops
# ---------------------------------------------------------------------------------------------------------------------


def _compile_layers(model: Any, step: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The layers are compiled one by one, and run once more in the backward pass."""
    model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    options = _options()
    for layer in model.model.layers:
        layer.compile(options=options)
    return step


def _autocast(step: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def call(ids: Any) -> Any:
        with torch.autocast("cpu", torch.bfloat16):
            return step(ids)

    return call


#: By name: the model's plan, how the step runs, what compiles it, and how far gradients may be off.
LOOPS: dict[str, tuple[str, Callable[..., Any], Callable[..., Any], float]] = {
    "layers": ("module", lambda step: step, _compile_layers, 1e-4),
    "autocast": ("sequence", _autocast, lambda _, step: _compiled(step), 8e-2),
}


def _clipped(model: Any, step: Callable[[Any], Any], batches: list[torch.Tensor]) -> dict[str, torch.Tensor]:
    """Losses of several batches, and the sum of their gradients, each clipped by its norm."""
    made: dict[str, torch.Tensor] = {}
    for number, ids in enumerate(batches):
        loss = step(ids)["loss"]
        loss.backward()
        made[f"loss {number}"] = loss.detach()
    for name, one in model.named_parameters():
        if one.grad is not None:
            torch.nn.utils.clip_grad_norm_([one], 0.5)
            made[name] = _local(one.grad).clone()
    model.zero_grad(set_to_none=True)
    return made


def trains(rank: int, size: int, name: str, how: str) -> list[list[str]]:
    """A model trains as it does without the pass; what is fused before and after each collective."""
    plan, run, compile_it, loose = LOOPS[how]
    model = _model(rank, size, name, torch.float32, plan)
    model.train()
    step = run(_train(model))
    batches = [torch.arange(first, first + 16).view(2, 8) for first in (3, 30)]
    want = _clipped(model, step, batches)
    compiled = compile_it(model, step)
    for _ in range(2):
        made = _clipped(model, compiled, batches)
    assert want.keys() == made.keys()
    for key in want:
        _compare(f"{name}, {how}, {key}", want[key], made[key], loose)
    return [[*one.produced, *one.fused] for one in commsir.torch.report() if one.is_changed]
