"""Random graphs, seeds 375 to 503, on four placements over cpu and three sims. labels: slow ctypes
timeout: 900
"""
import random_graphs


def test_seeds():
    random_graphs.check_sweep(375, 504, sim__delay_us=0)
