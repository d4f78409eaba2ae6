"""vLLM plugin: weights that stay loadable on a CPU, so that training can put new ones into a live engine.

vLLM loads it by itself in each of its processes, because pyproject.toml names `register` as an entry point of the
group `vllm.general_plugins`.
"""

from typing import Any


def register() -> None:
    """Make vLLM's CPU backend keep every linear weight as a plain tensor; on any other platform do nothing.

    For speed that backend packs each linear weight into an opaque layout when it has loaded a model and then drops
    the original: the first weight sync finds nothing to write to. vLLM's `reload_weights` is no way out, for it runs
    and leaves wrong weights behind. Unpacked, a large model decodes slower; a small one shows no difference.
    """
    from vllm.platforms import current_platform

    if not current_platform.is_cpu():
        return
    from torch.nn.functional import linear
    from vllm.model_executor.layers import utils as layers

    pack = layers.dispatch_cpu_unquantized_gemm
    if pack.__name__ == "dispatch_unpacked":  # vLLM calls plugins once per process, a test may call again
        return

    def dispatch_unpacked(layer: Any, remove_weight: bool) -> None:
        if layer.weight.ndim == 2:
            layer.cpu_linear = linear
        else:  # a convolution, whose CPU kernel only reads the packed layout
            pack(layer, remove_weight)

    layers.dispatch_cpu_unquantized_gemm = dispatch_unpacked
