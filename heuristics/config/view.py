"""What a run is configured to do: the one answer to "what is this setting", for every part of the
program.
"""

from enum import Enum, auto
from functools import cached_property
from operator import attrgetter, eq, le, lt

from heuristics.config.about import OPTIONS, Given, Guidance, Routing, Stage
from heuristics.config.families import MLA, NO_SHARED, QWEN, SHARED, by_family, family_of
from heuristics.config.features import told
from heuristics.config.hardware import (
    RACK_NODE,
    GpuFamily,
    HardwareClass,
    HybridTopology,
    family_named,
    gpu_named,
)
from heuristics.config.logic import all_of, any_of, first_known, negated
from heuristics.config.observed import Observed
from heuristics.config.sizes import Sizes
from heuristics.config.trust import by_trust, effective_settings, files_alone, validated_settings
from heuristics.config.versions import Package, Version, core_of_bridge, numbers
from traces.missing import of_known
from traces.names.gpus import product_named
from traces.settings.knobs import (
    FIRST,
)
from traces.settings.precision import bits_of, configured_precision
from traces.settings.settings import Settings
from traces.training_log.log import TrainingLog


class Trust(Enum):
    """Which sources of settings are asked: options over files over the trace, as the framework has
    them.

    CHECKED: the same, as the checks of its release see them. FILES: neither the trace, nor what
    options give in place of knobs.
    """

    ALL = auto()
    CHECKED = auto()
    FILES = auto()


class Config(Sizes):
    """A run as it is configured, by the sources of `trust`, and by the trace where nothing else
    tells.

    Knobs by their ids; what several knobs tell together by a name of its own.
    """

    def __init__(
        self,
        given: Given,
        observed: Observed,
        settings: Settings,
        log: TrainingLog | None = None,
        trust: Trust = Trust.ALL,
    ) -> None:
        if trust is Trust.FILES:
            given, observed = files_alone(given), Observed()
        self.given = given
        self._log_versions = log.versions if log else {}
        written = by_trust(given, observed, settings)
        understand = validated_settings if trust is Trust.CHECKED else effective_settings
        super().__init__(understand(written, self.core_text), written, observed)

    # What is given about the run and is no knob.

    stage: Stage | None = told(attrgetter("given.stage"))
    guidance: Guidance = told(attrgetter("given.guidance"))
    memory_tight: bool | None = told(attrgetter("given.memory_tight"))
    flex_package: bool | None = told(attrgetter("given.flex_package"))
    container: str | None = told(attrgetter("given.container"))

    # Versions.

    @cached_property
    def core_text(self) -> str | None:
        """Megatron-Core's version as text: as given, else that of the Bridge given, else as
        logged.
        """
        given, logged = self.given, self._log_versions
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
        given: str | None = getattr(self.given, f"{package}_version", None)
        return given or self._log_versions.get(package)

    def version(self, package: Package) -> Version | None:
        return of_known(numbers, self.version_text(package))

    core: Version | None = told(lambda view: of_known(max, view.version("core"), FIRST[:]))
    """A release older than the tables counts as their first."""
    bridge: Version | None = told(lambda view: view.version("bridge"))
    te: Version | None = told(lambda view: view.version("te"))
    torch: Version | None = told(lambda view: view.version("torch"))

    def before(self, package: Package, version: str) -> bool | None:
        release_ = self.core if package == "core" else self.version(package)
        return of_known(lt, release_, numbers(version))

    def core_before(self, version: str) -> bool:
        """Whether Megatron-Core is known to be older; an unknown one counts as the newest."""
        return self.before("core", version) is True

    framework: str | None = told(
        lambda view: (
            view.settings.framework or ("megatron_bridge" if view.given.bridge_version else None)
        )
    )
    """Whose spelling the configuration is in, else Bridge where its version was given."""

    # Hardware.

    gpu: str | None = told(
        lambda view: (
            view.given.gpu or view.observed.gpu or gpu_named(view.word("launcher.gpu") or "")
        )
    )
    """GPU family, such as H100 or GB200, or the name of a GPU that is none of ours."""

    gpu_family: GpuFamily | None = told(lambda view: of_known(family_named, view.gpu))

    @property
    def capability(self) -> tuple[int, int] | None:
        """Compute capability (major, minor): of the GPU that was given, else of the trace, else by
        family.
        """
        named = of_known(attrgetter("capability"), of_known(product_named, self.gpu))
        if self.given.gpu and (named or self.gpu_family):
            return named
        return self.observed.capability or named

    @property
    def hardware_class(self) -> HardwareClass | None:
        """How the guides call the GPU; by capability and NVLink domain where its name tells
        nothing.
        """
        if self.gpu_family:
            return self.gpu_family.hardware
        if self.capability is None:
            if self.gpu:
                return "other"
            return None
        if self.capability[0] == 10:  # B200 and GB200 are both 10.0
            domain = self.given.nvlink_domain
            if domain is None:
                return None
            if domain > 8:
                return "nvl72"
            return "blackwell_nvl8"
        return {(9, 0): "hopper", (8, 0): "ampere"}.get(self.capability, "other")  # type: ignore[return-value]

    gpus_per_node: int | None = told(lambda view: view.positive("launcher.gpus_per_node"))

    @property
    def nvlink_domain(self) -> int | None:
        """GPUs of one NVLink domain: as given; of an NVL72 family its rack; else the node, else by
        family.
        """
        if self.given.nvlink_domain is not None:
            return self.given.nvlink_domain
        family, node = self.gpu_family, self.gpus_per_node
        if family:
            if family.hardware == "nvl72" or node is None:
                return family.nvlink_domain
            return node
        if node is not None and node > RACK_NODE:
            return node
        return None

    @property
    def spans_domain(self) -> bool | None:
        """Whether the expert ranks (EP x ETP) are more than one NVLink domain holds."""
        ep, etp, domain = self.ep, self.expert_tensor_size, self.nvlink_domain
        if domain is None:
            return None
        if ep is None:
            return (domain == 8 and self.observed.internode) or None
        if ep * (etp or 1) > domain:
            return True
        if etp is not None:
            return False
        return None

    @property
    def hybrid_topology(self) -> HybridTopology | None:
        """What HybridEP must be told: EP, or what of it one domain holds; None where either is
        unknown.

        Source: apply_target_topology_environment, Megatron-Bridge,
        scripts/performance/utils/utils.py.
        """
        ep, domain = self.ep, self.nvlink_domain
        if ep is None or domain is None:
            return None
        return HybridTopology(min(ep, domain), domain > 8)

    @property
    def right_topology(self) -> bool | None:
        """Whether HybridEP is told the ranks of its group in a domain as they are; None where
        unknown.
        """
        configured = self.value("env.NUM_OF_HYBRID_EP_RANKS_PER_NVLINK_DOMAIN")
        known = self.hybrid_topology
        if configured is None or not known:
            return None
        return str(configured) == str(known.ranks_per_domain)

    # What options give beside knobs, or in their place.

    family: str | None = told(lambda view: view.given.family or family_of(view))

    @property
    def dense_layers(self) -> bool | None:
        """Whether some layers have no experts: by the configuration, else by the family.

        Every layer has them, by Megatron-Core's default, in a model of known sizes that names none.
        """
        known = first_known(self.configured_dense_layers, by_family(self.family, MLA, QWEN))
        if known is None and self.moe() is True and self.is_whole:
            return False
        return known

    @property
    def shared_experts(self) -> bool | None:
        """Whether every token also goes to shared experts: by the configuration, else by the
        family.
        """
        configured = self.on("moe_shared_expert_intermediate_size")
        return first_known(configured, by_family(self.family, SHARED, NO_SHARED))

    @property
    def may_overlap_shared(self) -> bool:
        """Whether shared-expert overlap may be on: it is, or the model is not known to lack shared
        experts.

        A configuration that has the number of experts, and no size of a shared one, builds none.
        """
        written = self.shared_experts is None and not self.known("num_moe_experts")
        return bool(self.shared_overlap or self.shared_experts or written)

    @property
    def graphed_wgrad(self) -> bool | None:
        """Whether modules of graphs hold weight gradients: attention, or a shared expert in the
        router.

        Both frameworks look at the names alone (Megatron-LM, training/arguments.py;
        Megatron-Bridge, training/comm_overlap.py).
        """
        named = self.graph_modules
        if named is None:
            return None
        in_router = all_of("moe_router" in named, self.shared_experts, negated(self.shared_overlap))
        return any_of("attn" in named, in_router)

    routing: Routing | None = told(lambda view: view.given.routing or view.configured_routing)

    @property
    def dropless(self) -> bool | None:
        """No token is dropped: no capacity factor."""
        if self.given.routing is not None:
            return self.given.routing != "drop_pad"
        return negated(self.on("moe_expert_capacity_factor"))

    precision: str | None = told(lambda view: view.given.precision or configured_precision(view))
    """Precision of the matrix work: as given, else as configured."""

    @property
    def running_precision(self) -> str | None:
        """As configured, where the trace does not speak against it: a trace cannot tell FP8
        recipes.
        """
        seen, configured = self.observed.precision, self.precision
        if self.given.precision or configured is None or seen in (None, "mixed"):
            return configured or seen
        if "fp8" in seen and "fp8" in configured:
            return configured
        return seen

    running_bits: int | None = told(lambda view: bits_of(view.running_precision))
    runs_mxfp8: bool | None = told(lambda view: of_known(eq, view.running_precision, "mxfp8"))

    @property
    def delayed_scaling(self) -> bool | None:
        """Whether FP8 is scaled by what earlier steps needed; None where its recipe is unknown."""
        runs = self.running_precision
        if runs in (None, "mixed", "fp8", "fp8_per_tensor"):
            return None
        return runs == "fp8_delayed"

    def low_precision(self) -> bool | None:
        formats = self.on("fp8"), self.on("fp4")
        if True in formats or None not in formats:
            return True in formats
        return of_known(le, bits_of(self.precision), 8)

    def fp8(self) -> bool | None:
        if self.known("fp8"):
            return self.on("fp8")
        return of_known(eq, bits_of(self.precision), 8)

    packed_sequences: bool | None = told(
        lambda view: first_known(
            view.given.packed_sequences, view.any_on(*OPTIONS["packed_sequences"].knobs)
        )
    )
