"""How right, how fast and how sturdy: simulators, scores, speed, faults, fuzzing. No part of the wheel."""
