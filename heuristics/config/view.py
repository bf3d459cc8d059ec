"""What a run is configured to do: the one answer to "what is this setting", for every part of the program."""

from collections.abc import Mapping
from functools import cached_property
from math import prod

from heuristics.config.about import Given, Guidance, Routing, Stage
from heuristics.config.families import MLA, NO_SHARED, QWEN, SHARED, by_family, family_of
from heuristics.config.hardware import (
    RACK_NODE,
    GpuFamily,
    HardwareClass,
    HybridTopology,
    capability_of,
    family_named,
    gpu_family,
)
from heuristics.config.logic import negated
from heuristics.config.observed import Observed
from heuristics.config.observing import Observing
from heuristics.config.options import OPTIONS
from heuristics.config.trust import Understand, by_trust, effective_settings
from heuristics.config.versions import Package, Version, core_of_bridge, numbers
from traces.settings.knobs import STAGE_LAYOUT, VIRTUAL_STAGES
from traces.settings.precision import bits_of, configured_precision
from traces.settings.settings import Settings
from traces.settings.values import stage_count
from traces.training_log.log import TrainingLog


class Config(Observing):
    """A run as it is configured, by options, files and log, and by the trace where nothing else tells.

    Built once for a run. Knobs by their ids; what several knobs tell together by a name of its own.
    """

    def __init__(
        self,
        given: Given,
        observed: Observed,
        settings: Settings,
        log: TrainingLog | None,
        understand: Understand = effective_settings,
    ) -> None:
        self._given, self._observed = given, observed
        self._log_versions: Mapping[str, str] = log.versions if log else {}
        written = by_trust(given, observed, settings)
        super().__init__(understand(written, self.core_text), written)

    # What is given about the run and is no knob.

    @property
    def stage(self) -> Stage | None:
        """How far the run is tuned."""
        return self._given.stage

    @property
    def guidance(self) -> Guidance:
        """Which edition of the guides decides."""
        return self._given.guidance

    @property
    def memory_tight(self) -> bool | None:
        """Whether memory is known to have no room."""
        return self._given.memory_tight

    @property
    def flex_package(self) -> bool | None:
        """Whether the package of a flex backend can be imported."""
        return self._given.flex_package

    @property
    def container(self) -> str | None:
        """The container of the run."""
        return self._given.container

    # Versions.

    @cached_property
    def core_text(self) -> str | None:
        """Megatron-Core's version as text: as given, else that of the Bridge given, else as logged."""
        given, logged = self._given, self._log_versions
        return (
            given.core_version
            or core_of_bridge(given.bridge_version)
            or logged.get("core")
            or core_of_bridge(logged.get("bridge"))
        )

    def version_text(self, package: Package) -> str | None:
        """A package's version as given, else as the log has it; NCCL's the log alone has."""
        if package == "core":
            return self.core_text
        given: str | None = getattr(self._given, f"{package}_version", None)
        return given or self._log_versions.get(package)

    def version(self, package: Package) -> Version | None:
        """A package's version; Megatron-Core's also by the Megatron-Bridge release."""
        text = self.version_text(package)
        return None if text is None else numbers(text)

    @property
    def core(self) -> Version | None:
        """Megatron-Core's version, and so Megatron-LM's."""
        return self.version("core")

    @property
    def bridge(self) -> Version | None:
        """Megatron-Bridge's version."""
        return self.version("bridge")

    @property
    def te(self) -> Version | None:
        """Transformer Engine's version."""
        return self.version("te")

    @property
    def torch(self) -> Version | None:
        """PyTorch's version."""
        return self.version("torch")

    def before(self, package: Package, version: str) -> bool | None:
        """Whether a package is older than a version."""
        found = self.version(package)
        return None if found is None else found < numbers(version)

    def core_before(self, version: str) -> bool:
        """Whether Megatron-Core is known to be older; an unknown one counts as the newest."""
        return self.before("core", version) is True

    @property
    def framework(self) -> str | None:
        """Whose spelling the configuration is in, else Bridge where its version was given."""
        if self.settings.framework:
            return self.settings.framework
        return "megatron_bridge" if self._given.bridge_version else None

    # Hardware.

    @property
    def gpu(self) -> str | None:
        """GPU family, such as H100 or GB200, or the name of a GPU that is none of ours."""
        return self._given.gpu or self._observed.gpu or gpu_family(self.word("launcher.gpu") or "")

    @property
    def gpu_family(self) -> GpuFamily | None:
        """The GPU's family; None where unknown or none of ours."""
        return family_named(self.gpu) if self.gpu else None

    @property
    def capability(self) -> tuple[int, int] | None:
        """Compute capability (major, minor): of the GPU that was given, else of the trace, else by family."""
        named = capability_of(self.gpu) if self.gpu else None
        if self._given.gpu and (named or self.gpu_family):
            return named
        return self._observed.capability or named

    def before_blackwell(self) -> bool | None:
        """Whether the GPU is older than compute capability 10."""
        return None if self.capability is None else self.capability < (10, 0)

    @property
    def hardware_class(self) -> HardwareClass | None:
        """How the guides call the GPU; by capability and NVLink domain where its name tells nothing."""
        if self.gpu_family:
            return self.gpu_family.hardware
        if self.capability is None:
            return "other" if self.gpu else None
        if self.capability[0] == 10:  # B200 and GB200 are both 10.0
            domain = self._given.nvlink_domain
            return None if domain is None else "nvl72" if domain > 8 else "blackwell_nvl8"
        return {(9, 0): "hopper", (8, 0): "ampere"}.get(self.capability, "other")  # type: ignore[return-value]

    @property
    def gpus_per_node(self) -> int | None:
        """GPUs of a node."""
        return self.positive("launcher.gpus_per_node")

    @property
    def nvlink_domain(self) -> int | None:
        """GPUs of one NVLink domain: as given; of an NVL72 family its rack; else the node, else by family."""
        if self._given.nvlink_domain is not None:
            return self._given.nvlink_domain
        family, node = self.gpu_family, self.gpus_per_node
        if family is not None:
            is_rack = family.hardware == "nvl72"
            return family.nvlink_domain if is_rack or node is None else node
        return node if node is not None and node > RACK_NODE else None

    @property
    def spans_domain(self) -> bool | None:
        """Whether the expert ranks (EP x ETP) are more than one NVLink domain holds."""
        ep, etp, domain = self.ep, self.expert_tensor_size, self.nvlink_domain
        if domain is None:
            return None
        if ep is not None and ep * (etp or 1) > domain:
            return True
        if ep is None and domain == 8 and self._observed.internode:
            return True
        return False if ep is not None and etp is not None else None

    @property
    def hybrid_topology(self) -> HybridTopology | None:
        """What HybridEP must be told: EP, or what of it one domain holds; None where either is unknown.

        Source: apply_target_topology_environment, Megatron-Bridge, scripts/performance/utils/utils.py.
        """
        ep, domain = self.ep, self.nvlink_domain
        if ep is None or domain is None:
            return None
        return HybridTopology(min(ep, domain), domain, domain > 8)

    @property
    def right_topology(self) -> bool | None:
        """Whether HybridEP is told the ranks of its group in a domain as they are; None where unknown."""
        configured = self.value("env.NUM_OF_HYBRID_EP_RANKS_PER_NVLINK_DOMAIN")
        known = self.hybrid_topology
        if configured is None or known is None:
            return None
        return str(configured) == str(known.ranks_per_domain)

    # Parallel sizes, in ranks.

    @property
    def tp(self) -> int | None:
        """Tensor-parallel ranks."""
        return self.size("tensor_model_parallel_size")

    @property
    def cp(self) -> int | None:
        """Context-parallel ranks."""
        return self.size("context_parallel_size")

    @property
    def pp(self) -> int | None:
        """Pipeline stages."""
        return self.size("pipeline_model_parallel_size")

    @property
    def ep(self) -> int | None:
        """Expert-parallel ranks."""
        return self.size("expert_model_parallel_size")

    @property
    def etp(self) -> int | None:
        """Ranks that share one expert; null is TP, as in Megatron-Core; so is what nobody sets.

        A recipe that we do not see may set it for Megatron-Bridge.
        """
        knob = "expert_tensor_parallel_size"
        is_open = not self.known(knob) and self.framework == "megatron_bridge"
        return self.positive(knob) or (None if is_open else self.tp)

    @property
    def expert_tensor_size(self) -> int | None:
        """Ranks that share one expert: ETP; 1 where no TP traffic runs."""
        return 1 if self.etp is None and self._observed.tp_active is False else self.etp

    @cached_property
    def vpp(self) -> int | None:
        """Virtual stages of a rank: by the layout string, else by number; 1 without, None where unknown."""
        if self.word(STAGE_LAYOUT):
            stages = stage_count(self.word(STAGE_LAYOUT) or "")
            return max(1, stages // self.pp) if stages and self.pp else self.positive(VIRTUAL_STAGES)
        if (number := self.positive(VIRTUAL_STAGES)) is not None:
            return number
        layers, per_stage = (
            self.positive("num_layers"),
            self.positive("num_layers_per_virtual_pipeline_stage"),
        )
        if layers and per_stage and self.pp:
            return max(1, layers // self.pp // per_stage)
        return 1 if self.pp == 1 or self.known(VIRTUAL_STAGES) else None

    @property
    def world(self) -> int | None:
        """All ranks."""
        return self.positive("world_size")

    world_size = world

    @property
    def dp(self) -> int | None:
        """Data-parallel ranks, where the world divides."""
        if self.world is None:
            return self.positive("data_parallel_size")
        return _share(self.world, self.tp, self.cp, self.pp)

    @property
    def edp(self) -> int | None:
        """Data-parallel ranks of the experts, where the world divides."""
        return _share(self.world, self.expert_tensor_size, self.ep, self.pp)

    @property
    def pp_layout(self) -> str | None:
        """The layout string of the pipeline."""
        return self.word(STAGE_LAYOUT)

    # What options give beside knobs, or in their place.

    @property
    def family(self) -> str | None:
        """Model family: as given, else by the sizes that tell it."""
        return self._given.family or family_of(self)

    def moe(self) -> bool | None:
        """Whether the model has experts to choose from: as configured, else as the trace shows.

        A model of known sizes that says nothing of experts has none, by Megatron-Core's default.
        """
        configured = super().moe()
        known = self._observed.moe if configured is None else configured
        of_experts = any("expert" in knob or knob.startswith("moe_") for knob in self.written.by_knob)
        return False if known is None and not of_experts and self.is_whole else known

    @property
    def dense_layers(self) -> bool | None:
        """Whether some layers have no experts: by the configuration, else by the family.

        Every layer has them, by Megatron-Core's default, in a model of known sizes that names none.
        """
        named = super().dense_layers
        known = named if named is not None else by_family(self.family, MLA, QWEN)
        return False if known is None and self.moe() is True and self.is_whole else known

    @property
    def shared_experts(self) -> bool | None:
        """Whether every token also goes to shared experts: by the configuration, else by the family."""
        configured = super().shared_experts
        return by_family(self.family, SHARED, NO_SHARED) if configured is None else configured

    @property
    def routing(self) -> Routing | None:
        """How tokens are routed: as given, else as configured."""
        return self._given.routing or self.configured_routing

    @property
    def dropless(self) -> bool | None:
        """No token is dropped: no capacity factor."""
        if self._given.routing is not None:
            return self._given.routing != "drop_pad"
        return negated(self.on("moe_expert_capacity_factor"))

    @property
    def precision(self) -> str | None:
        """Precision of the matrix work: as given, else as configured."""
        return self._given.precision or configured_precision(self)

    def low_precision(self) -> bool | None:
        """Whether matrix work is in FP8 or FP4."""
        formats = self.on("fp8"), self.on("fp4")
        if True in formats or None not in formats:
            return True in formats
        bits = bits_of(self.precision)
        return None if bits is None else bits <= 8

    def fp8(self) -> bool | None:
        """Whether matrix work is in FP8."""
        if self.known("fp8"):
            return self.on("fp8")
        bits = bits_of(self.precision)
        return None if bits is None else bits == 8

    @property
    def packed_sequences(self) -> bool | None:
        """Whether sequences are packed."""
        given = self._given.packed_sequences
        return self.any_on(*OPTIONS["packed_sequences"].knobs) if given is None else given

    # Batches.

    @property
    def micro_batch(self) -> int | None:
        """Sequences of a microbatch."""
        return self.positive("train.micro_batch_size")

    @property
    def global_batch(self) -> int | None:
        """Sequences of a step."""
        return self.positive("train.global_batch_size")

    @property
    def microbatches(self) -> int | None:
        """Microbatches of a step on each rank; None where a size is unknown or they do not divide."""
        if self.micro_batch is None or self.dp is None or self.global_batch is None:
            return None
        each = self.micro_batch * self.dp
        return None if self.global_batch % each else self.global_batch // each


def _share(world: int | None, *sizes: int | None) -> int | None:
    known = [size for size in sizes if size]
    if world is None or len(known) < len(sizes) or world % prod(known):
        return None
    return world // prod(known)
