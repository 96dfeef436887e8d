/* graph/verified.c: what readers of memory have in common. */
#include "graph/verified.h"

#include "graph/file.h"

heddle_status heddle__parse_verified(const void *data, size_t bytes, const char *name, const heddle_read_limits *limit,
                                     heddle__parse_fn parse, void *out, heddle_error *err) {
  const heddle__file_access access = {limit->trust, limit->key};
  heddle__sealed copy;
  bool is_copy = false;
  heddle_status s = heddle__trust_given(limit->trust, err);
  if (s == HEDDLE_OK) s = heddle__check_bytes(name, bytes, limit->max_bytes, err);
  if (s == HEDDLE_OK) s = heddle__sealed_bytes(data, bytes, name, &access, &is_copy, &copy, err);
  if (s != HEDDLE_OK) return s;
  if (!is_copy) return parse(data, bytes, name, limit, out, err);
  const void *inside;
  s = heddle__sealed_map(&copy, &inside, &bytes, err);
  if (s == HEDDLE_OK) s = heddle__check_bytes(name, bytes, limit->max_bytes, err);
  if (s == HEDDLE_OK) s = parse(inside, bytes, name, limit, out, err);
  heddle__sealed_unmap(inside, bytes);
  heddle__sealed_close(&copy);
  return s;
}
