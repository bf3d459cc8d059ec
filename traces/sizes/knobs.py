"""Knobs read as numbers: which are missing, and which stand at Megatron's default because nobody
said.
"""

from traces.missing import Missing
from traces.settings.precision import DTYPES, bits_of
from traces.settings.settings import KnobView, Settings


class Knobs(KnobView):
    """Settings being read. `missing`: knobs that nothing stands in for; `assumed`: what was taken
    as said.
    """

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.missing = list[str]()
        self.assumed = list[str]()

    def need(self, knob: str) -> int:
        """A whole number above zero without a default; 1 and an entry in `missing` where it is not
        there.
        """
        if (value := self.positive(knob)) is not None:
            return value
        if knob not in self.missing:
            self.missing.append(knob)
        return 1

    def whole(self, knob: str, default: int = 1) -> int:
        """A whole number; the default where the knob is null or was not said, which is then
        assumed.
        """
        if (value := self.count(knob)) is not None:
            return value
        self._assume(knob, str(default))
        return default

    def flag(self, knob: str, default: bool) -> bool:
        """A switch; the default where it was not said, which is then assumed."""
        value = self.value(knob)
        if isinstance(value, bool):
            return value
        self._assume(knob, "on" if default else "off")
        return default

    def fraction(self, knob: str, default: float) -> float:
        """A part from 0 to 1; the default where it was not said."""
        value = self.number(knob)
        if value is None:
            return default
        return min(1.0, max(0.0, float(value)))

    def dtype_bytes(self, knob: str) -> float:
        """Those of a type; of FP32 where it was not said."""
        word = self.word(knob) or ""
        return (bits_of(DTYPES.get(word, word)) or 32) / 8

    def gap(self, path: str) -> Missing | None:
        """What is missing, naming the knobs; None where nothing is."""
        if not self.missing:
            return None
        names = ", ".join(self.missing)
        cure = (
            "give the run's whole configuration with --config, or its log's `arguments` block "
            "with --log"
        )
        if "world_size" in self.missing:
            cure = (
                "give --world-size"
                if len(self.missing) == 1
                else f"{cure}; --world-size for the ranks"
            )
        return Missing(path, f"the configuration does not have {names}", cure)

    def _assume(self, knob: str, taken: str) -> None:
        assumption = f"{knob} {taken} (not given)"
        if not self.known(knob) and assumption not in self.assumed:
            self.assumed.append(assumption)
