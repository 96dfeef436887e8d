"""Random graphs, seeds 125 to 249, on four placements over cpu and three sims. labels: slow ctypes
timeout: 900
"""
import random_graphs


def test_seeds():
    random_graphs.check_sweep(125, 250, sim__delay_us=20)
