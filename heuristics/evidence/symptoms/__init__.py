"""Judging a run by what is said of it, in the contract's names and as parts of its step, without a trace."""

from heuristics.evidence.symptoms.evidence import observed_from
from heuristics.evidence.symptoms.read import read_symptoms, symptoms_of
from heuristics.evidence.symptoms.symptoms import Symptoms

__all__ = ["Symptoms", "observed_from", "read_symptoms", "symptoms_of"]
