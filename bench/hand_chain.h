/* bench/hand_chain.h: a chain of Adds through the public API, on one device or alternating between two. */
#ifndef BENCH_HAND_CHAIN_H
#define BENCH_HAND_CHAIN_H

#include "heddle/heddle.h"

#define HAND_CHAIN_VALUE 1e-3f

/* n Adds of float vectors, node i on devices[i % 2], which may be the same: node 0 is y + x, node i is node i - 1 + x.
 * Ready to run, with HAND_CHAIN_VALUE everywhere in both inputs. Ends the program with words when something fails: with status 77 where a device is not there. */
heddle_executor *hand_chain(heddle_context *ctx, size_t n, int64_t elements, const char *const devices[2]);

/* The same with up to so many runs in flight. */
heddle_executor *hand_chain_in_flight(heddle_context *ctx, size_t n, int64_t elements, const char *const devices[2],
                                      uint32_t in_flight);

#endif
