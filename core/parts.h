/* core/parts.h: the parts of libheddle that a build may leave out. HEDDLE_HAS_X is 0 where the CMake option HEDDLE_X was
 * OFF (cmake/parts.cmake); what would need the part then fails with heddle__left_out. */
#ifndef HEDDLE_CORE_PARTS_H
#define HEDDLE_CORE_PARTS_H

#include "core/error.h"

#ifndef HEDDLE_HAS_BATCH
#define HEDDLE_HAS_BATCH 1 /* batch: requests gathered into runs */
#endif
#ifndef HEDDLE_HAS_BUDGET
#define HEDDLE_HAS_BUDGET 1 /* executor/budget: limits on memory */
#endif
#ifndef HEDDLE_HAS_CONFIG
#define HEDDLE_HAS_CONFIG 1 /* configuration files, plugins' described settings, warnings of unknown ones */
#endif
#ifndef HEDDLE_HAS_CONTROL
#define HEDDLE_HAS_CONTROL 1 /* control: If, Loop, Scan, and shapes that only a run gives */
#endif
#ifndef HEDDLE_HAS_DIMENSIONS
#define HEDDLE_HAS_DIMENSIONS 1 /* numbers for dimensions of graphs when a model is made */
#endif
#ifndef HEDDLE_HAS_DLOPEN
#define HEDDLE_HAS_DLOPEN 1 /* plugins in files; without them those that are linked in (heddle_plugin_register) */
#endif
#ifndef HEDDLE_HAS_EXPLAIN
#define HEDDLE_HAS_EXPLAIN 1 /* executor/explain: plans as text, JSON and pictures */
#endif
#ifndef HEDDLE_HAS_FOLD
#define HEDDLE_HAS_FOLD 1 /* executor/fold.c: operators on values that decide shapes, while planning */
#endif
#ifndef HEDDLE_HAS_FUSION
#define HEDDLE_HAS_FUSION 1 /* regions of several nodes that plugins propose */
#endif
#ifndef HEDDLE_HAS_GENERATE
#define HEDDLE_HAS_GENERATE 1 /* generate: tokens of language models */
#endif
#ifndef HEDDLE_HAS_IN_FLIGHT
#define HEDDLE_HAS_IN_FLIGHT 1 /* executor/flight.c: several runs of an executor at a time */
#endif
#ifndef HEDDLE_HAS_LAYERS
#define HEDDLE_HAS_LAYERS 1 /* core/layers: check, fault and log */
#endif
#ifndef HEDDLE_HAS_RANKS
#define HEDDLE_HAS_RANKS 1 /* executor/ranks: one graph over several processes */
#endif
#ifndef HEDDLE_HAS_ONNX
#define HEDDLE_HAS_ONNX 1 /* frontends/onnx */
#endif
#ifndef HEDDLE_HAS_OPTIMIZE
#define HEDDLE_HAS_OPTIMIZE 1 /* optimize */
#endif
#ifndef HEDDLE_HAS_PACKAGES
#define HEDDLE_HAS_PACKAGES 1 /* packages, and what they have prepared */
#endif
#ifndef HEDDLE_HAS_PLACE
#define HEDDLE_HAS_PLACE 1 /* executor/place: automatic placement */
#endif
#ifndef HEDDLE_HAS_PROBE
#define HEDDLE_HAS_PROBE 1 /* probe: plugins tried before they are loaded, manifests */
#endif
#ifndef HEDDLE_HAS_PROFILE
#define HEDDLE_HAS_PROFILE 1 /* times of steps, and traces */
#endif
#ifndef HEDDLE_HAS_RANGES
#define HEDDLE_HAS_RANGES 1 /* executor/range.c, resize.c: programs that cover ranges of shapes */
#endif
#ifndef HEDDLE_HAS_RARE_OPERATORS
#define HEDDLE_HAS_RARE_OPERATORS 1 /* operators: those of plugins/common/more */
#endif
#ifndef HEDDLE_HAS_ROUTES
#define HEDDLE_HAS_ROUTES 1 /* executor/routes: the self-test of routes */
#endif
#ifndef HEDDLE_HAS_SODIUM
#define HEDDLE_HAS_SODIUM 1 /* core/sign: signed and encrypted files */
#endif
#ifndef HEDDLE_HAS_STATE
#define HEDDLE_HAS_STATE 1 /* executor/states.c: outputs that are inputs of the next run */
#endif
#ifndef HEDDLE_HAS_STREAMS
#define HEDDLE_HAS_STREAMS \
  1 /* core/trail, executor/chain: callers' streams, runs of several executors ordered by events */
#endif
#ifndef HEDDLE_HAS_SURVIVE
#define HEDDLE_HAS_SURVIVE 1 /* executor/survive: retry and failover */
#endif
#ifndef HEDDLE_HAS_TVM
#define HEDDLE_HAS_TVM 1 /* modules/tvm: libheddle_tvm.so beside libheddle */
#endif
#ifndef HEDDLE_HAS_WEIGHTS
#define HEDDLE_HAS_WEIGHTS 1 /* executor/weights: the cache of packed weights */
#endif

/* Fails for a part that was left out: what ("a reader of ONNX models") and the CMake option that brings it. */
static inline heddle_status heddle__left_out(heddle_error *err, const char *what, const char *option) {
  return heddle__fail(err, HEDDLE_EUNSUPPORTED, "this build of Heddle has no %s (built with %s=OFF)", what, option);
}

#endif
