/* graph/verified.h: the readers of files that came in by core/sealed.h, for those that read several parts of one, and of
 * bytes that need no verification since they are part of such a file. */
#ifndef HEDDLE_GRAPH_VERIFIED_H
#define HEDDLE_GRAPH_VERIFIED_H

#include "core/sealed.h"
#include "graph/graph.h"

/* As heddle_graph_load and heddle_params_load, but for ONNX models. */
heddle_status heddle__graph_load(const heddle__sealed *file, const heddle_read_limits *limits, heddle_graph **out,
                                 heddle_error *err);
heddle_status heddle__params_load(const heddle__sealed *file, const heddle_read_limits *limits, heddle_params **out,
                                  heddle_error *err);

/* As heddle_graph_parse and heddle_params_parse, without a signature. */
heddle_status heddle__graph_parse(const char *text, size_t bytes, const char *name, const heddle_read_limits *limits,
                                  heddle_graph **out, heddle_error *err);
heddle_status heddle__params_parse(const void *data, size_t bytes, const char *name, const heddle_read_limits *limits,
                                   heddle_params **out, heddle_error *err);

/* Parses what is given in memory with parse: as it is, or what is inside of it where trust demands a signature, or where it is
 * encrypted. limit has the defaults in place. */
typedef heddle_status (*heddle__parse_fn)(const void *data, size_t bytes, const char *name,
                                          const heddle_read_limits *limit, void *out, heddle_error *err);
heddle_status heddle__parse_verified(const void *data, size_t bytes, const char *name, const heddle_read_limits *limit,
                                     heddle__parse_fn parse, void *out, heddle_error *err);

/* The most bytes that are copied for a file that may hold a graph and its parameters, by the limit of one of them. */
static inline uint64_t heddle__sealed_most(uint64_t limit) {
  const uint64_t both = UINT64_C(16) << 30;
  return limit > both ? limit : both;
}

#endif
