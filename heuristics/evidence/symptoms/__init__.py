"""A run by figures that a user gives in the contract's names, in place of a trace."""

from heuristics.evidence.symptoms.evidence import observed_from
from heuristics.evidence.symptoms.symptoms import Symptoms, read_symptoms, symptoms_of

__all__ = ["Symptoms", "observed_from", "read_symptoms", "symptoms_of"]
