/* graph/package.h: a graph and its parameters in one file, as heddle pack writes operator graphs. docs/packages.md has the
 * bytes. */
#ifndef HEDDLE_GRAPH_PACKAGE_H
#define HEDDLE_GRAPH_PACKAGE_H

#include "graph/graph.h"
#include "heddle/pack.h"

/* Whether a file begins as a package does; false where it cannot be read. */
bool heddle__is_package(const char *path);

/* The text of the graph; *out is freed with heddle__free. HEDDLE_EIO, HEDDLE_EFORMAT, HEDDLE_ELIMIT. */
heddle_status heddle__package_text(const char *path, uint64_t max_bytes, char **out, size_t *bytes, heddle_error *err);

/* The parameters, whose bytes stay in the file, which is mapped. Errors as above. */
heddle_status heddle__package_params(const char *path, uint64_t max_bytes, heddle_params **out, heddle_error *err);

/* Writes a package. params may be NULL. HEDDLE_EIO, HEDDLE_ENOMEM. */
heddle_status heddle__package_write(const char *path, const char *text, size_t bytes, const heddle_params *params,
                                    heddle_error *err);

enum {
  HEDDLE__PACKAGE_HEAD = 64,
  HEDDLE__PACKAGE_PAGE = 4096,
  HEDDLE__PACKAGE_ALIGN = 64,
  HEDDLE__PACKAGE_VERSION = 1
};

#endif
