/* frontends/onnx/host.c: the entry of libheddle_onnx.so, and libheddle's memory behind the names that core/alloc.h has,
 * through the table that the entry got. Of core/, only core/error.c is compiled into this library: it keeps no state. */
#include <stdatomic.h>

#include "core/alloc.h"
#include "frontends/onnx/reader.h"

static _Atomic(const heddle__onnx_host *) host;

static const heddle__onnx_host *table_of_host(void) {
  return atomic_load_explicit(&host, memory_order_acquire);
}

void *heddle__alloc(size_t count, size_t size) {
  return table_of_host()->alloc(count, size);
}

void *heddle__grow(void *old, size_t old_count, size_t new_count, size_t size) {
  return table_of_host()->grow(old, old_count, new_count, size);
}

void *heddle__alloc_aligned(size_t bytes, size_t align) {
  return table_of_host()->alloc_aligned(bytes, align);
}

void heddle__free(void *p) {
  table_of_host()->free(p);
}

static heddle_status read_file(const char *path, const heddle_read_limits *graph_limits, uint64_t max_bytes,
                               json_t **graph, heddle_params **params, heddle_error *err) {
  return heddle__onnx_read(table_of_host(), path, graph_limits, max_bytes, graph, params, err);
}

static const heddle__onnx_table table = {HEDDLE_VERSION, read_file};

__attribute__((visibility("default"))) const void *heddle_onnx_entry(const void *given);

const void *heddle_onnx_entry(const void *given) {
  const heddle__onnx_host *none = NULL;
  atomic_compare_exchange_strong(&host, &none, given);
  return given != NULL ? &table : NULL;
}
