"""Random graphs, seeds 250 to 374, on four placements over cpu and three sims. labels: slow ctypes
timeout: 900
"""
import random_graphs


def test_seeds():
    random_graphs.check_sweep(250, 375, sim__delay_us=0)
