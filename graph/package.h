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

/* Both of a package in memory, which stays as long as they do: the text is in it, and the bytes of the parameters too.
 * HEDDLE_EINVAL: data is not aligned to 64. Other errors as above. */
heddle_status heddle__package_memory(const void *data, uint64_t bytes, const char *name, uint64_t max_bytes,
                                     const char **text, size_t *text_bytes, heddle_params **params, heddle_error *err);

/* What a package is to carry: files of caches by path, each of a target (graph/prepared.h), and the targets and the
 * version of Heddle as its index has them. */
typedef struct heddle__package_extra {
  const char *const *paths;
  const uint32_t *target_of;
  uint32_t n_files;
  const json_t *targets; /* an array */
} heddle__package_extra;

/* Writes a package. params may be NULL; with extra, one of version 2. HEDDLE_EIO, HEDDLE_ENOMEM. */
heddle_status heddle__package_write(const char *path, const char *text, size_t bytes, const heddle_params *params,
                                    const heddle__package_extra *extra, heddle_error *err);

enum {
  HEDDLE__PACKAGE_HEAD = 64,
  HEDDLE__PACKAGE_HEAD2 = 128,
  HEDDLE__PACKAGE_VERSION2 = 2,
  HEDDLE__PACKAGE_PAGE = 4096,
  HEDDLE__PACKAGE_ALIGN = 64,
  HEDDLE__PACKAGE_VERSION = 1
};

#endif
