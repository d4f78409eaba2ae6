"""Which role runs on which GPUs of a job: judge servers, a policy server, trainers. Pure."""

from dataclasses import dataclass, field
from typing import Literal, get_args

Launch = Literal["single", "ddp", "zero2", "zero3", "fsdp2"]


class PlanError(Exception):
    """The job cannot be divided, or does not fit, as it is; says what would."""


@dataclass(frozen=True, kw_only=True)
class ClusterConfig:
    """How a job of many GPUs is divided (slurm/grpo.slurm); the trainers get what its servers leave."""

    launch: Launch = field(
        default="single", metadata={"help": "How trainers share the weights: a launch file of configs/accelerate."}
    )
    judge_gpus: int = field(
        default=0, metadata={"help": "GPUs of the job that serve judge_model; 0: judge_base_url is a server elsewhere."}
    )
    judge_tensor_parallel_size: int = field(default=1, metadata={"help": "GPUs that share one copy of the judge."})
    judge_max_model_len: int = field(default=16384, metadata={"help": "Tokens of a judge's longest call and reply."})
    policy_gpus: int = field(
        default=0, metadata={"help": "GPUs of the job that serve the policy, with vllm_mode: server."}
    )
    gpu_memory_gib: float = field(default=80.0, metadata={"help": "Memory of each GPU, for the plan's estimates."})

    def __post_init__(self) -> None:
        if self.launch not in get_args(Launch):
            raise ValueError(f"launch must be one of {', '.join(get_args(Launch))}, got {self.launch!r}")
        for name, low in (("judge_gpus", 0), ("policy_gpus", 0), ("judge_tensor_parallel_size", 1)):
            if getattr(self, name) < low:
                raise ValueError(f"{name} must be at least {low}, got {getattr(self, name)}")
        if self.judge_gpus % self.judge_tensor_parallel_size:
            raise ValueError(
                f"judge_gpus must be a multiple of judge_tensor_parallel_size ({self.judge_tensor_parallel_size}), "
                f"what one copy of the judge takes; got {self.judge_gpus}"
            )
        if not self.gpu_memory_gib > 0:
            raise ValueError(f"gpu_memory_gib must be above 0, got {self.gpu_memory_gib}")


@dataclass(frozen=True, slots=True)
class Place:
    """GPUs of one node, counted from 0; on a machine without GPUs, mere slots."""

    node: int
    gpus: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Layout:
    """A job's GPUs by role: each judge one copy, the policy on one node, as many trainers on each of their nodes."""

    judges: tuple[Place, ...]
    policies: tuple[Place, ...]  # one or none: TRL writes to a single server
    trainers: tuple[Place, ...]

    @property
    def num_trainers(self) -> int:
        """Processes of training, one a GPU."""
        return sum(len(place.gpus) for place in self.trainers)


def lay_out(cluster: ClusterConfig, nodes: int, gpus_per_node: int) -> Layout:
    """The division of so many nodes: servers fill them from the last one on, or else spread over all of them.

    >>> layout = lay_out(ClusterConfig(judge_gpus=4, judge_tensor_parallel_size=2), nodes=1, gpus_per_node=8)
    >>> [judge.gpus for judge in layout.judges], [place.gpus for place in layout.trainers]
    ([(4, 5), (6, 7)], [(0, 1, 2, 3)])

    Raises:
        PlanError: there is none that leaves GPUs to train on, as many on each node that has any.
    """
    size, served = cluster.judge_tensor_parallel_size, cluster.judge_gpus + cluster.policy_gpus
    largest = max(size if cluster.judge_gpus else 0, cluster.policy_gpus)
    if largest > gpus_per_node:
        raise PlanError(f"a server of {largest} GPUs needs a node of as many, and nodes have {gpus_per_node}")
    if served >= nodes * gpus_per_node:
        remedy = "take more nodes, or fewer policy_gpus"
        if cluster.judge_gpus:
            remedy = "take more nodes, or judge_gpus: 0 and a judge_base_url elsewhere"
        elif not served:
            remedy = "say with --gpus-per-node how many there are, or use_cpu: true"
        raise PlanError(
            f"{nodes} x {gpus_per_node} GPUs leave none to train on: judges take {cluster.judge_gpus}, the policy's "
            f"server {cluster.policy_gpus}; {remedy}"
        )
    layout = _even(cluster.judge_gpus // size, size, cluster.policy_gpus, nodes, gpus_per_node)
    if layout is None:
        copies = range(nodes * gpus_per_node // size)
        possible = [n * size for n in copies if _even(n, size, cluster.policy_gpus, nodes, gpus_per_node)]
        raise PlanError(
            f"judge_gpus: {cluster.judge_gpus} leaves {nodes * gpus_per_node - served} of {nodes} x {gpus_per_node} "
            f"GPUs, which are not as many on each node with trainers; possible are {', '.join(map(str, possible))}"
        )
    return layout


def _even(copies: int, size: int, policy_gpus: int, nodes: int, gpus_per_node: int) -> Layout | None:
    for spread in (False, True):
        free = [list(range(gpus_per_node)) for _ in range(nodes)]
        policies = [_take(free, nodes - 1, policy_gpus)] if policy_gpus else []
        judges = [_take(free, (nodes - 1 - n) % nodes if spread else nodes - 1, size) for n in range(copies)]
        trainers = [Place(node, tuple(gpus)) for node, gpus in enumerate(free) if gpus]
        if None not in (*policies, *judges) and len({len(place.gpus) for place in trainers}) == 1:
            in_order = sorted((place for place in judges if place), key=lambda place: (place.node, place.gpus))
            return Layout(tuple(in_order), tuple(place for place in policies if place), tuple(trainers))
    return None


def _take(free: list[list[int]], first: int, size: int) -> Place | None:
    """The last GPUs of the first node, going down from `first`, that has so many to spare; None if none has."""
    for node in range(first, -1, -1):
        if len(free[node]) >= size:
            taken = free[node][-size:]
            del free[node][-size:]
            return Place(node, tuple(taken))
    return None
