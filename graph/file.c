/* graph/file.c: the limits of the readers. */
#include "graph/file.h"

#include <string.h>

void heddle__read_limits(const heddle_read_limits *given, uint64_t max_bytes, uint32_t max_nodes, uint32_t max_depth,
                         heddle_read_limits *out) {
  *out = (heddle_read_limits){.struct_size = sizeof *out};
  if (given != NULL) memcpy(out, given, given->struct_size < sizeof *out ? given->struct_size : sizeof *out);
  if (out->max_bytes == 0) out->max_bytes = max_bytes;
  if (out->max_nodes == 0) out->max_nodes = max_nodes;
  if (out->max_depth == 0) out->max_depth = max_depth;
  out->struct_size = sizeof *out;
}

void heddle__graph_limits(const heddle_read_limits *given, heddle_read_limits *out) {
  heddle__read_limits(given, UINT64_C(1) << 30, 4000000, 64, out);
}

void heddle__params_limits(const heddle_read_limits *given, heddle_read_limits *out) {
  heddle__read_limits(given, UINT64_C(16) << 30, 0, 0, out);
}
