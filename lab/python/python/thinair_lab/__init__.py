"""Experiments with CoAP and header compression on constrained links, in virtual time.

>>> import thinair_lab
>>> plan = {"link": {"preset": "gprs"}, "requests": {"count": 5}, "runs": {"count": 2}, "sweep": {"link.down.loss": [0, 10]}}
>>> thinair_lab.sweep(plan, seeds=[1, 2])
<thinair_lab.Runs: 8 runs of 2 cells, 2 seeds>

`Lab` runs a plan, `sweep` runs it with many seeds, and `paper` repeats a published evaluation. Results are frames.
"""

from thinair_lab._experiment import Lab, Runs, join, sweep
from thinair_lab._paper import Evaluation, paper, papers

__all__ = ["Evaluation", "Lab", "Runs", "join", "paper", "papers", "sweep"]
