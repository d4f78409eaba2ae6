"""vLLM plugin: on a CPU, weights that keep their precision and stay loadable, so that training can renew them.

vLLM calls `register` in each of its processes, because pyproject.toml names it as an entry point of the group
`vllm.general_plugins`.
"""

from typing import Any


def register() -> None:
    """Make vLLM's CPU backend fit to be trained against; on any other platform do nothing.

    - Linear weights stay plain tensors. For speed the backend packs each into an opaque layout once it has loaded a
      model and drops the original, so that the first weight sync finds nothing to write to. (vLLM's own
      `reload_weights` is no way out: it runs, and leaves wrong weights behind.) Unpacked, a large model decodes more
      slowly; a small one shows no difference.
    - A float32 model runs in float32. Left to itself vLLM rounds it to bfloat16, and TRL cannot tell it otherwise.
    - A server takes weights by file (`train.file_weight_transfer`); vLLM's own ways all need a GPU.
    """
    from vllm.platforms import current_platform

    if not current_platform.is_cpu():
        return
    import torch
    from vllm.distributed.weight_transfer import WeightTransferEngineFactory
    from vllm.model_executor.layers import utils as layers

    # vLLM casts a float32 model to the first of these and leaves the others as they are.
    type(current_platform).supported_dtypes = [torch.float32, torch.bfloat16, torch.float16]

    pack = layers.dispatch_cpu_unquantized_gemm

    def dispatch_unpacked(layer: Any, remove_weight: bool) -> None:
        if layer.weight.ndim == 2:
            layer.cpu_linear = torch.nn.functional.linear
        else:  # a convolution, whose CPU kernel reads the packed layout only
            pack(layer, remove_weight)

    layers.dispatch_cpu_unquantized_gemm = dispatch_unpacked
    if "file" not in WeightTransferEngineFactory._registry:
        WeightTransferEngineFactory.register_engine("file", "train.file_weight_transfer", "FileWeightTransferEngine")
