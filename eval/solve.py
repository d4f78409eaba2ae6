"""Answers of a model to cases: from an OpenAI-compatible endpoint, or from vLLM in this process."""

import argparse
import asyncio
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from data.cases import Case
from data.command import (
    NoAnswerError,
    add_case_options,
    add_endpoint_options,
    endpoint_of,
    json_object,
    number,
    output_file,
    positive,
    request_of,
    run_command,
)
from data.contexts import Contexts, RetrievalConfig, contexts_for, retrieval_settings
from data.endpoint import Endpoint, EndpointError, Reply
from data.jsonl import Appender
from data.loading import load_cases
from data.progress import progress_bar
from data.prompts import PROMPT_STYLES, PromptStyle, build_prompt
from eval.engine import Engine, Policy, Prompts, find_policy, lora_rank, weights_id
from eval.flags import add_config_options, config_from
from eval.pins import SettingsError, holds, pin_settings
from eval.results import Response, prompt_id, read_responses
from eval.workers import work_through

MAX_LOST_IN_A_ROW = 16  # after as many lost responses without one that arrived, the endpoint is down

Keep = Callable[[Response], None]


class DeadEndpointError(NoAnswerError):
    """The endpoint gave no response for a long row of questions; says what it gave instead."""


@dataclass(frozen=True, slots=True)
class Question:
    """One response to ask for: a sample on a case."""

    case_id: str
    sample: int
    messages: list[dict[str, str]]
    prompt_id: str

    def response(self, model: str, text: str, finish_reason: str | None, reasoning: str | None = None) -> Response:
        """What the model wrote to this question."""
        return Response(self.case_id, text, model, finish_reason, self.sample, reasoning, self.prompt_id)


def ask_about(
    cases: Sequence[Case], num_samples: int, style: PromptStyle, laws: Contexts = MappingProxyType({})
) -> list[Question]:
    """All questions on the cases: the first sample of each case, then the second of each, and so on."""
    prompts = [(case.id, build_prompt(case, style, laws.get(case.id, ()))) for case in cases]
    return [
        Question(case_id, sample, messages, prompt_id(messages))
        for sample in range(num_samples)
        for case_id, messages in prompts
    ]


def unanswered(questions: Sequence[Question], path: Path) -> list[Question]:
    """The questions that a file has no response to.

    Raises:
        SettingsError: it has a response to another prompt: the case or the prompts have changed since.
    """
    answered = {response.key: response for response in read_responses(path).responses} if path.exists() else {}
    for question in questions:
        response = answered.get((question.case_id, question.sample))
        if response is not None and response.prompt_id != question.prompt_id:
            raise SettingsError(
                f"{path}: the response to case {question.case_id!r} answers another prompt than the present one; "
                "give another output, or the cases of the first run"
            )
    return [question for question in questions if (question.case_id, question.sample) not in answered]


def ask_policy(
    engine: Engine, prompts: Prompts, questions: Sequence[Question], model: str, keep: Keep, **sampling: Any
) -> int:
    """Have the engine's present policy answer, and keep each response as it is finished; returns the tokens written."""
    num_tokens = 0
    ids = [prompts.encode(question.messages) for question in questions]
    for completion in engine.generate(ids, **sampling):
        keep(questions[completion.index].response(model, completion.text, completion.finish_reason))
        num_tokens += completion.num_tokens
    return num_tokens


async def ask_endpoint(
    endpoint: Endpoint, questions: Sequence[Question], keep: Keep, num_workers: int, request: Mapping[str, Any]
) -> Counter[str]:
    """Have an endpoint answer, and keep each response as it arrives; returns how many were lost, by kind of failure.

    A chain of thought that arrives apart is kept apart, and an empty response is a response.

    Raises:
        DeadEndpointError: too many were lost in a row.
    """
    lost: Counter[str] = Counter()
    lost_in_a_row = 0

    async def ask(question: Question) -> None:
        nonlocal lost_in_a_row
        try:
            reply = await endpoint.ask(question.messages, _as_it_is, **request)
        except EndpointError as error:
            lost[error.kind] += 1
            lost_in_a_row += 1
            if lost_in_a_row >= min(MAX_LOST_IN_A_ROW, len(questions)):
                raise DeadEndpointError(f"{lost_in_a_row} questions in a row got no response: {error}") from error
            return
        lost_in_a_row = 0
        keep(question.response(endpoint.model, reply.content, reply.finish_reason, reply.reasoning or None))

    async with endpoint:
        await work_through(questions, ask, num_workers)
    return lost


def solve(args: argparse.Namespace) -> int:
    """Ask for every response that the output lacks; returns how many it lacks in the end."""
    cases = load_cases(args.cases, args.split, args.on_invalid)[: args.limit]
    retrieval = config_from(RetrievalConfig, {}, args)
    laws = contexts_for(cases, retrieval, held_out=True)
    questions = ask_about(cases, args.samples, args.prompt_style, laws)
    policy = None if args.base_url else find_policy(args.model)
    settings = {
        "model": args.model,
        "weights": policy and weights_id(policy),
        "prompt_style": args.prompt_style,
        "temperature": args.temperature,
        "max_tokens": args.max_tokens,
        "request": args.request,
        "retrieval": retrieval_settings(retrieval),
    }
    pin_settings(args.out.with_suffix(".meta.json"), settings, is_begun=holds(args.out))
    missing = unanswered(questions, args.out)
    print(f"{len(questions) - len(missing)} of {len(questions)} responses are in {args.out}", file=sys.stderr)
    if not missing:
        return 0
    with Appender(args.out) as file, progress_bar("responses", len(missing)) as advance:

        def keep(response: Response) -> None:
            file.append(response.to_record())
            advance()

        return _solve_there(args, missing, keep) if policy is None else _solve_here(args, policy, missing, keep)


def _solve_there(args: argparse.Namespace, missing: Sequence[Question], keep: Keep) -> int:
    endpoint = endpoint_of(args)
    lost = asyncio.run(ask_endpoint(endpoint, missing, keep, args.concurrency, request_of(args)))
    print(cost_line(endpoint.stats.tokens_in, endpoint.stats.tokens_out, args.prices))
    for kind, count in lost.most_common():
        print(f"{count} responses were lost ({kind}): {endpoint.stats.messages[kind]}", file=sys.stderr)
    return lost.total()


def _solve_here(args: argparse.Namespace, policy: Policy, missing: Sequence[Question], keep: Keep) -> int:
    prompts = Prompts(policy, args.request.get("chat_template_kwargs"))
    lengths = [len(prompts.encode(question.messages)) for question in missing]
    engine = Engine(
        policy,
        max_model_len=max(lengths) + args.max_tokens,
        max_lora_rank=0 if policy.adapter is None else lora_rank(policy.adapter),
        tensor_parallel_size=args.tensor_parallel_size,
    )
    sampling = {"temperature": args.temperature, "max_tokens": args.max_tokens}
    num_tokens = ask_policy(engine, prompts, missing, args.model, keep, **sampling)
    print(cost_line(sum(lengths), num_tokens, args.prices))
    return 0


def cost_line(tokens_in: int, tokens_out: int, prices: tuple[float, float] | None) -> str:
    """What a run has used, and what it cost where the prices of a million tokens in and out are known.

    >>> cost_line(2_000_000, 500_000, (0.15, 0.6))  # 0.30 + 0.30
    'tokens: 2,000,000 in, 500,000 out, cost 0.6'
    """
    tokens = f"tokens: {tokens_in:,} in, {tokens_out:,} out"
    if prices is None:
        return tokens
    return f"{tokens}, cost {(tokens_in * prices[0] + tokens_out * prices[1]) / 1e6:,.4g}"


def _as_it_is(reply: Reply) -> Reply:
    return reply


def _prices(text: str) -> tuple[float, float]:
    price_in, price_out = map(number(0), text.split(","))
    return price_in, price_out


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description="Ask a model about cases and append its responses to a JSON Lines file. The model is a checkpoint "
        "directory (full or LoRA) or a hub id, run by vLLM in this process, or whatever an OpenAI-compatible endpoint "
        "serves. A run that was stopped goes on where it was when the same command is given again.",
        epilog="example: python eval/solve.py --cases data/samples/medium.jsonl --base-url http://localhost:8000/v1 "
        "--model Qwen/Qwen2.5-7B-Instruct --out outputs/qwen/responses.jsonl",
    )
    add_case_options(parser)
    parser.add_argument(
        "--model", required=True, help="checkpoint directory or hub id; with --base-url, its name there"
    )
    parser.add_argument("--out", required=True, type=output_file(), help="the responses file, appended to")
    parser.add_argument("--prompt-style", default="court", choices=PROMPT_STYLES, help="as the policy was trained")
    parser.add_argument("--samples", type=positive, default=1, help="responses per case")
    parser.add_argument("--temperature", type=number(0, 2), default=0.0, help="0 decodes greedily")
    parser.add_argument("--max-tokens", type=positive, default=4096)
    parser.add_argument(
        "--prices", type=_prices, metavar="IN,OUT", help="of a million tokens, to tell the cost in the end: 0.15,0.6"
    )
    parser.add_argument(
        "--request",
        type=json_object,
        default={},
        metavar="JSON",
        help='more of the request body, null takes a key out: \'{"max_tokens": null, "max_completion_tokens": 8192}\'; '
        "of it, only chat_template_kwargs reaches a model in this process",
    )
    law = parser.add_argument_group("law before the question, found by data/retrieve.py; the judge is not shown it")
    add_config_options(law, RetrievalConfig)
    endpoint = parser.add_argument_group("an endpoint")
    add_endpoint_options(endpoint, "up to and with /v1; without it, vLLM runs the model in this process")
    here = parser.add_argument_group("vLLM in this process")
    here.add_argument("--tensor-parallel-size", type=positive, default=1, help="GPUs that share one copy of the model")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Exit status: 0 if no response is missing in the end, 1 if some are, 2 for wrong input, 130 when interrupted."""
    return run_command(_parser(), solve, argv, kept="What arrived is in {out}")


if __name__ == "__main__":
    sys.exit(main())
