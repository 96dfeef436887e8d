/* bench/hand_chain.h: a chain of Adds through the public API, alternating between two devices. */
#ifndef BENCH_HAND_CHAIN_H
#define BENCH_HAND_CHAIN_H

#include "heddle/heddle.h"

/* n Adds of float vectors, node i on devices[i % 2]: node 0 is y + x, node i is node i - 1 + x. Ready to run, with zeros
 * for both inputs. Ends the program with words when something fails: with status 77 where a device is not there. */
heddle_executor *hand_chain(heddle_context *ctx, size_t n, int64_t elements, const char *const devices[2]);

#endif
