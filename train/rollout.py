"""Completions told of one by one, as vLLM finishes them, so that their judging need not wait for the last.

TRL offers `rollout_func` for generation of one's own. It is given neither doc_id nor token ids, and whoever uses it
writes chat template, weight wake-up, tensor parallel gathering and evaluation anew. The seam taken here is one call
deeper: TRL still makes the prompts and the sampling parameters, and still reads token ids and logprobs off vLLM's own
outputs; only the call that used to return when all was written tells of each completion on the way.
"""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from data.cases import Case
from rewards.early import EarlyJudge
from rewards.gates import GateConfig
from rewards.reward import read_completion

if TYPE_CHECKING:
    from train.trainer import Trainer

Listener = Callable[[int, Sequence[int]], None]  # the prompt's index and the completion's tokens
LOOK_S = 0.5  # between looks at whether the run is to end


@dataclass(frozen=True, kw_only=True)
class RolloutConfig:
    """When judging begins."""

    overlap_judge: bool = field(
        default=True,
        metadata={
            "help": "Judge each completion as soon as vLLM has written it; false waits for the last one first. "
            "Verdicts and rewards are the same. Without vLLM, and with judge: mini, there is nothing to overlap."
        },
    )


class EarlyStart:
    """Has a trainer's completions judged as they are written, by the same gates that the reward applies."""

    def __init__(
        self,
        trainer: "Trainer",
        judge: EarlyJudge,
        *,
        cases: Mapping[str, Case],
        gates: GateConfig,
        end_token_ids: frozenset[int],
    ) -> None:
        self._loop = trainer.async_loop  # where TRL awaits the reward
        self._decode = partial(trainer.processing_class.decode, skip_special_tokens=True)  # as TRL does
        self._judge = judge
        self._cases = cases
        self._gates = gates
        self._end_token_ids = end_token_ids
        self._doc_ids: list[str] = []
        self._offset = _first_own_prompt(trainer.vllm_generation)

    def begin_batch(self, doc_ids: list[str]) -> None:
        """The next completions are to the prompts of these cases."""
        self._doc_ids = doc_ids
        self._loop.call_soon_threadsafe(self._judge.discard)

    def finished(self, index: int, ids: Sequence[int]) -> None:
        """The completion to the prompt of that place is written: where it is of this rank, its judging begins."""
        own = index - self._offset * len(self._doc_ids)
        if 0 <= own < len(self._doc_ids):
            self._loop.call_soon_threadsafe(self._begin, self._cases[self._doc_ids[own]], ids)

    def _begin(self, case: Case, ids: Sequence[int]) -> None:
        answer, reason = read_completion(case, self._decode(ids), ids, self._gates, self._end_token_ids)
        if reason is None:
            self._judge.begin(case, answer)


def ignore(_index: int, _ids: Sequence[int]) -> None:
    """A listener to whom a finished completion is nothing."""


@dataclass(frozen=True)
class Watch:
    """What TRL's VLLMGeneration does besides writing: tell of each completion, look whether to go on, draw by seeds.

    Args:
        look: called time and again while it writes; raises what is to end it.
        seed_of: of a completion that a server writes, from its place among those of all ranks and its prompt's tokens.
            A server draws for whoever asks, so that only seeds make a resumed run write what it would have written
            without the interruption, and so many ranks what one rank would have.
    """

    finished: Listener
    look: Callable[[], None]
    seed_of: Callable[[int, Sequence[int]], int]

    def over(self, generation: Any) -> None:
        """Watch this VLLMGeneration from now on; what it returns stays the same."""
        if generation.mode == "colocate":
            generation.llm.generate = partial(_step_by_step, generation.llm, self)
            return
        if not generation.accelerator.is_main_process:
            generation.vllm_client = _client(generation)
        generation.generate = partial(_one_by_one, generation, self)


def _step_by_step(llm: Any, watch: Watch, prompts: Any, sampling_params: Any, use_tqdm: bool) -> list[Any]:
    """What `LLM.generate` does, with the engine's steps in our hands."""
    request_ids = llm.enqueue(prompts, sampling_params, use_tqdm=use_tqdm)
    # vLLM knows a request as "7-1c0ffee5" and gives its output back under "7".
    index_of = {request_id.partition("-")[0]: index for index, request_id in enumerate(request_ids)}
    outputs: list[Any] = [None] * len(request_ids)
    while llm.llm_engine.has_unfinished_requests():
        watch.look()
        for output in llm.llm_engine.step():
            if output.finished:
                index = index_of[output.request_id]
                outputs[index] = output
                watch.finished(index, output.outputs[0].token_ids)
    return outputs


def _one_by_one(
    generation: Any,
    watch: Watch,
    prompts: list[list[int]],  # repeated already, once for each completion
    profiler: Any = None,
    **_: Any,
) -> tuple[list[Any], ...]:
    """What `VLLMGeneration.generate` does against a server, with one request for each completion.

    Each process asks for its own completions, where TRL has the main process ask for all and hand them out: only so
    can each judge its own early. The server's prefix cache makes the repeated prompt free.
    """
    generation.accelerator.wait_for_everyone()  # the main process may still be handing over the weights
    ask = partial(
        generation.vllm_client.generate,
        repetition_penalty=generation.repetition_penalty,
        temperature=generation.temperature,
        top_p=generation.top_p,
        top_k=generation.top_k,
        min_p=generation.min_p or 0.0,
        max_tokens=generation.max_completion_length,
        logprobs=generation.logprobs,
        structured_outputs_regex=generation.structured_outputs_regex,
    )
    outputs: list[dict[str, Any]] = [{}] * len(prompts)
    first = generation.accelerator.process_index * len(prompts)  # of all ranks' prompts, which are as many on each
    pool = ThreadPoolExecutor(len(prompts))
    try:
        with profiler or nullcontext():
            asked = {}
            for index, ids in enumerate(prompts):
                seeded = {"seed": watch.seed_of(first + index, ids), **generation.generation_kwargs}
                asked[pool.submit(ask, [ids], generation_kwargs=seeded)] = index
            while asked:
                watch.look()
                for request in wait(asked, LOOK_S, FIRST_COMPLETED).done:
                    index = asked.pop(request)
                    outputs[index] = request.result()
                    watch.finished(index, outputs[index]["completion_ids"][0])
    finally:
        pool.shutdown(wait=False, cancel_futures=True)  # of a run that ends nobody waits for the rest
    names = ("prompt_ids", "completion_ids", "logprobs", "logprob_token_ids")
    prompt_ids, completion_ids, logprobs, logprob_token_ids = (
        [output[name][0] for output in outputs] for name in names
    )
    return prompt_ids, completion_ids, logprobs, logprob_token_ids


def _client(generation: Any) -> Any:
    """A connection to the server for a process that TRL gives none; it never hands over weights."""
    from trl.generation.vllm_generation import VLLMClient

    url = generation.server_base_url or f"http://{generation.server_host}:{generation.server_port}"
    return VLLMClient(base_url=url, connection_timeout=generation.server_timeout)


def _first_own_prompt(generation: Any) -> int:
    """With tensor parallelism each engine writes the completions of all its ranks: how many ranks come before ours."""
    if generation.mode == "server" or generation.tensor_parallel_size == 1:
        return 0
    import torch.distributed

    rank: int = torch.distributed.get_rank(group=generation.tp_group)
    return rank
