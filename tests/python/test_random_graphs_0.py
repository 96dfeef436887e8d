"""Random graphs, seeds 0 to 124, on four placements over cpu and three sims. labels: slow ctypes
timeout: 900
"""
import random_graphs


def test_seeds():
    random_graphs.check_sweep(0, 125, sim__delay_us=0)
