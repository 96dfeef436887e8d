/* bench/hand_peak.h: how many float32 operations a second this CPU can do at most, measured. */
#ifndef HEDDLE_BENCH_HAND_PEAK_H
#define HEDDLE_BENCH_HAND_PEAK_H

/* Floating-point operations a second (a multiply-add counts as two) that `threads` threads, 1 to 64, reach together
 * with rows of independent fused multiply-adds in registers, for about 10 ms each, by the time that each thread had on
 * a core. 0 where the CPU has neither AVX-512 nor AVX2 with FMA, or a thread cannot be started. */
double hand_peak(int threads);

#endif
