"""What fits on a GPU, estimated from the shape of a model before a queue is waited for. Pure but for `shape_of`.

Estimated, not measured: weights, gradients and optimiser are arithmetic; activations are a rule of thumb, and whatever
CUDA, NCCL and fragmentation take is OVERHEAD_GIB. `python -m train.plan --measure RUN_DIR` holds it against a run.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from train.layout import ClusterConfig

GIB = 2**30
OVERHEAD_GIB = 3.0
SERVER_SHARE = 0.9  # of a GPU's memory, vLLM's own default
ENGINE_GIB = 2.0  # of activations and graphs that an engine keeps beside weights and cache
# What makes room: each is tried alone, then one after the other on top.
REMEDIES: tuple[tuple[str, Any], ...] = (
    ("vllm_enable_sleep_mode", True),
    ("gradient_checkpointing", True),
    ("per_device_train_batch_size", 1),
    ("launch", "zero2"),
    ("launch", "zero3"),
    ("vllm_gpu_memory_utilization", 0.3),
    ("use_peft", True),
)
_SIZES = {"float32": 4, "bfloat16": 2, "float16": 2, "auto": 2, None: 4}  # TRL loads float32 unless told


@dataclass(frozen=True, slots=True)
class Shape:
    """The measures of a decoder-only transformer that its memory follows from."""

    hidden_size: int
    intermediate_size: int
    num_hidden_layers: int
    num_attention_heads: int
    num_key_value_heads: int
    head_dim: int
    vocab_size: int
    tie_word_embeddings: bool

    @property
    def params(self) -> int:
        """Weights, norms and biases left out.

        >>> round(KNOWN["Qwen/Qwen2.5-7B-Instruct"].params / 1e9, 2)
        7.62
        """
        embedding = self.vocab_size * self.hidden_size * (1 if self.tie_word_embeddings else 2)
        return embedding + self.num_hidden_layers * sum(i * o for i, o in self.linears.values())

    @property
    def linears(self) -> dict[str, tuple[int, int]]:
        """Inputs and outputs of a layer's matrices, by the names that LoRA targets."""
        heads, kv_heads = self.num_attention_heads * self.head_dim, self.num_key_value_heads * self.head_dim
        hidden, inner = self.hidden_size, self.intermediate_size
        return {
            "q_proj": (hidden, heads), "k_proj": (hidden, kv_heads), "v_proj": (hidden, kv_heads),
            "o_proj": (heads, hidden), "gate_proj": (hidden, inner), "up_proj": (hidden, inner),
            "down_proj": (inner, hidden),
        }  # fmt: skip

    @property
    def kv_bytes(self) -> int:
        """Bytes of KV cache a token takes in half precision, with no layer's window taken into account."""
        return 2 * 2 * self.num_hidden_layers * self.num_key_value_heads * self.head_dim


KNOWN = {
    "Qwen/Qwen2.5-0.5B-Instruct": Shape(896, 4864, 24, 14, 2, 64, 151936, True),
    "Qwen/Qwen2.5-7B-Instruct": Shape(3584, 18944, 28, 28, 4, 128, 152064, False),
    "Qwen/Qwen2.5-32B-Instruct": Shape(5120, 27648, 64, 40, 8, 128, 152064, False),
    "google/gemma-3-4b-it": Shape(2560, 10240, 34, 8, 4, 256, 262208, True),  # the language part
    "google/gemma-3-27b-it": Shape(5376, 21504, 62, 32, 16, 128, 262208, True),
}


def shape_of(name: str) -> Shape | None:
    """The shape of a model: one of KNOWN, or as config.json in its folder or in the hub's cache says; else None."""
    if name in KNOWN:
        return KNOWN[name]
    path: Any = Path(name) / "config.json"
    if not path.is_file():
        from huggingface_hub import try_to_load_from_cache

        path = try_to_load_from_cache(name, "config.json") if name.count("/") == 1 else None
    return read_shape(json.loads(Path(path).read_text(encoding="utf-8"))) if isinstance(path, str | Path) else None


def read_shape(config: Mapping[str, Any]) -> Shape | None:
    """The shape that a config.json tells; None where it tells no more than its class knows, or of experts."""
    text: Mapping[str, Any] = config.get("text_config", config)
    try:
        if text.get("num_experts") or text.get("num_local_experts"):
            return None
        heads = text["num_attention_heads"]
        return Shape(
            hidden_size=text["hidden_size"],
            intermediate_size=text["intermediate_size"],
            num_hidden_layers=text["num_hidden_layers"],
            num_attention_heads=heads,
            num_key_value_heads=text.get("num_key_value_heads", heads),
            head_dim=text.get("head_dim") or text["hidden_size"] // heads,
            vocab_size=text["vocab_size"],
            tie_word_embeddings=text.get("tie_word_embeddings", config.get("tie_word_embeddings", False)),
        )
    except KeyError:
        return None


def trainable_params(shape: Shape, values: Mapping[str, Any]) -> int:
    """All weights, or those of the adapters: r x (inputs + outputs) of each matrix that LoRA targets."""
    if not values["use_peft"]:
        return shape.params
    targets = values["lora_target_modules"] or ["q_proj", "v_proj"]  # peft's default for most decoders
    sizes = [i + o for name, (i, o) in shape.linears.items() if {name, "all-linear"} & set(targets)]
    return shape.num_hidden_layers * int(values["lora_r"]) * sum(sizes)


def trainer_gib(shape: Shape, values: Mapping[str, Any], launch: str, num_trainers: int) -> dict[str, float]:
    """GiB of one trainer's GPU by what holds them, without vLLM.

    Bytes a weight, P of all and T of the trained, n trainers: weights, gradients, Adam's two moments (and DeepSpeed's
    float32 copy) are b P + b T + 2 b T for single and ddp, b being 4 or 2 by dtype; 2 P + 2 T/n + 12 T/n for zero2;
    2 P/n + 2 T/n + 12 T/n for zero3; 4 P/n + 4 T/n + 8 T/n for fsdp2. Full training with beta above 0 keeps a second
    model as reference; an adapter switched off is its own.
    """
    loaded, share = _SIZES[values["dtype"]], 1 / num_trainers
    per_weight, per_gradient, per_moments = {
        "single": (loaded, loaded, 2 * loaded),
        "ddp": (loaded, loaded, 2 * loaded),
        "zero2": (2, 2 * share, 12 * share),
        "zero3": (2 * share, 2 * share, 12 * share),
        "fsdp2": (4 * share, 4 * share, 8 * share),
    }[launch]
    trained = trainable_params(shape, values)
    has_reference = values["beta"] and not values["use_peft"]
    return {
        "weights": per_weight * shape.params / GIB,
        "gradients": per_gradient * trained / GIB,
        "optimiser": per_moments * trained / GIB,
        "reference": per_weight * shape.params / GIB if has_reference else 0.0,
        "activations": activation_bytes(shape, values) / GIB,
        "overhead": OVERHEAD_GIB,
    }


def activation_bytes(shape: Shape, values: Mapping[str, Any]) -> float:
    """Of one pass forward and back over the longest batch, in half precision.

    34 bytes a token, layer and hidden unit without attention matrices (Korthikanti et al., arXiv 2205.05198, eq. 1);
    with gradient checkpointing a layer's input, and one layer at a time in full. Logits: bf16, float32, and the
    gradient of it, 10 bytes each.
    """
    sequences, completion = values["per_device_train_batch_size"], values["max_completion_length"]
    tokens = sequences * (values["vllm_max_model_length"] or 2 * completion)
    layers, per_layer = shape.num_hidden_layers, 34 * shape.hidden_size
    kept = 2 * shape.hidden_size * layers + per_layer if values["gradient_checkpointing"] else per_layer * layers
    return float(tokens * kept + sequences * completion * shape.vocab_size * 10)


def phases(parts: Mapping[str, float], values: Mapping[str, Any], gpu_gib: float) -> dict[str, float]:
    """GiB of a trainer's GPU at its fullest while the policy writes and while it learns."""
    engine = 0.0
    if values["use_vllm"] and values["vllm_mode"] == "colocate":
        engine = values["vllm_gpu_memory_utilization"] * gpu_gib
    stays = 0.0 if values["vllm_enable_sleep_mode"] else engine
    resident = parts["weights"] + parts["optimiser"] + parts["reference"] + parts["overhead"]
    return {"generate": resident + engine, "learn": resident + parts["gradients"] + parts["activations"] + stays}


def kv_tokens(shape: Shape, share_gib: float, tensor_parallel_size: int) -> float:
    """Tokens for which an engine with so many GiB of each of its GPUs has room, its weights in half precision."""
    room = share_gib * GIB - 2 * shape.params / tensor_parallel_size
    return room / (shape.kv_bytes / tensor_parallel_size)


def fit(values: Mapping[str, Any], cluster: ClusterConfig, num_trainers: int) -> tuple[dict[str, float], list[str]]:
    """Estimated GiB and room for tokens by role, and what does not fit; nothing of a model whose shape is unknown."""
    figures: dict[str, float] = {}
    problems: list[str] = []
    gib, policy = cluster.gpu_memory_gib, shape_of(values["model_name_or_path"])
    if policy is not None:
        parts = trainer_gib(policy, values, cluster.launch, num_trainers)
        peaks = phases(parts, values, gib)
        figures |= {f"trainer/{name}_gib": value for name, value in (parts | peaks).items()}
        worst = max(peaks, key=lambda phase: peaks[phase])
        if peaks[worst] > gib:
            told = ", ".join(f"{name} {value:.1f}" for name, value in parts.items() if value)
            problems.append(
                f"a trainer needs {peaks[worst]:.0f} GiB of its GPU while it {worst}s, and it has {gib:.0f} ({told}); "
                + _remedy(policy, values, cluster, num_trainers)
            )
        size, length = values["vllm_tensor_parallel_size"], values["vllm_max_model_length"] or 0
        is_server = values["vllm_mode"] == "server"
        share = SERVER_SHARE if is_server else values["vllm_gpu_memory_utilization"]
        if values["use_vllm"] and (cluster.policy_gpus or not is_server):
            figures["policy/kv_tokens"] = room = kv_tokens(policy, share * gib - ENGINE_GIB, size)
            if room < length:
                name = "vllm_tensor_parallel_size" if is_server else "vllm_gpu_memory_utilization"
                problems.append(f"the policy's engine has room for {max(0, room):,.0f} tokens of KV cache and "
                                f"vllm_max_model_length is {length:,}: raise {name}")  # fmt: skip
    judge = shape_of(values["judge_model"]) if cluster.judge_gpus else None
    if judge is not None:
        rooms = {n: kv_tokens(judge, SERVER_SHARE * gib - ENGINE_GIB, n) for n in (1, 2, 4, 8)}
        size = cluster.judge_tensor_parallel_size
        figures["judge/kv_tokens"] = room = kv_tokens(judge, SERVER_SHARE * gib - ENGINE_GIB, size)
        if room < cluster.judge_max_model_len:
            fitting = [str(n) for n, tokens in rooms.items() if tokens >= cluster.judge_max_model_len]
            problems.append(
                f"{values['judge_model']} ({2 * judge.params / GIB:.0f} GiB) does not fit on {size} GPUs of {gib:.0f} "
                f"GiB with one call of {cluster.judge_max_model_len:,} tokens: judge_tensor_parallel_size: "
                f"{fitting[0] if fitting else 'none'} would do"
            )
    return figures, problems


def _remedy(policy: Shape, values: Mapping[str, Any], cluster: ClusterConfig, num_trainers: int) -> str:
    """The first change that makes a trainer fit, or else the fewest of them together."""
    before = dict(values) | {"launch": cluster.launch}
    shards = num_trainers > 1 and before["launch"] != "zero3"
    useful = [(name, value) for name, value in REMEDIES if before[name] != value and (shards or name != "launch")]
    for changes in [*([one] for one in useful), *(useful[:n] for n in range(2, len(useful) + 1))]:
        after = before | dict(changes)
        parts = trainer_gib(policy, after, after["launch"], num_trainers)
        if max(phases(parts, after, cluster.gpu_memory_gib).values()) <= cluster.gpu_memory_gib:
            told = [f"{name}: {json.dumps(after[name])}" for name in dict(changes)]
            return f"it would fit with {', '.join(told)}"
    return "take GPUs with more memory, more of them with launch: zero3, or a smaller policy"
