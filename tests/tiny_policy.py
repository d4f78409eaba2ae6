"""A tiny random policy in an ordinary model directory, for tests that need real vLLM and no skill."""

import shutil
from pathlib import Path

CHAT_TEMPLATE = (
    "{% for message in messages %}{{ '<|' + message['role'] + '|>' + message['content'] + '<|end|>' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}"
)
SPECIAL_TOKENS = ["<|pad|>", "<|end|>", "<|system|>", "<|user|>", "<|assistant|>"]


def write_policy(directory: Path, seed: int = 0, max_length: int = 512) -> Path:
    """A float32 Qwen3 of 0.1M random weights with a byte-level tokenizer; another seed gives another model.

    The weights are far from zero, so that greedy decoding wanders instead of repeating one token.
    """
    import torch
    from transformers import Qwen3Config, Qwen3ForCausalLM

    tokenizer = _tokenizer(max_length)
    tokenizer.save_pretrained(directory)
    torch.manual_seed(seed)
    config = Qwen3Config(
        vocab_size=len(tokenizer),
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=32,
        max_position_embeddings=max_length,
        tie_word_embeddings=True,
        initializer_range=0.3,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=None,
        dtype="float32",
    )
    model = Qwen3ForCausalLM(config)
    model.generation_config.eos_token_id = tokenizer.eos_token_id
    model.generation_config.pad_token_id = tokenizer.pad_token_id
    model.save_pretrained(directory)
    return directory


def write_adapter(directory: Path, base: Path, seed: int = 0) -> Path:
    """A LoRA adapter of `base` whose random weights change what it says."""
    import torch
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModelForCausalLM

    torch.manual_seed(seed)
    model = AutoModelForCausalLM.from_pretrained(base, dtype="float32")
    adapted = get_peft_model(model, LoraConfig(r=8, lora_alpha=16, target_modules="all-linear", task_type="CAUSAL_LM"))
    for name, weight in adapted.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(weight, std=0.2)
    adapted.save_pretrained(directory)
    return directory


def merge_adapter(adapter: Path, directory: Path) -> Path:
    """The model that an adapter and its base are together."""
    from peft import AutoPeftModelForCausalLM

    model = AutoPeftModelForCausalLM.from_pretrained(adapter, dtype="float32").merge_and_unload()
    model.save_pretrained(directory)
    _tokenizer().save_pretrained(directory)
    return directory


def copy_as_checkpoint(source: Path, run_dir: Path, step: int) -> Path:
    """The directory a trainer leaves behind after `step` steps."""
    checkpoint = run_dir / f"checkpoint-{step}"
    shutil.copytree(source, checkpoint)
    (checkpoint / "trainer_state.json").write_text(f'{{"global_step": {step}}}')
    return checkpoint


def _tokenizer(max_length: int = 512):
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {token: index for index, token in enumerate(SPECIAL_TOKENS + alphabet)}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        eos_token=SPECIAL_TOKENS[1],
        pad_token=SPECIAL_TOKENS[0],
        additional_special_tokens=SPECIAL_TOKENS[2:],
        model_max_length=max_length,
    )
    fast.chat_template = CHAT_TEMPLATE
    return fast
