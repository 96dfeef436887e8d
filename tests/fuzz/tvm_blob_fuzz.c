/* Any bytes as the modules that a compiled library carries: no crash, no leak, and what is read points into the bytes.
 * Models inside (factories) are read as graph and parameters, constants are handed over, and modules of kinds that
 * are not known go to a loader that takes as many bytes as they say. The first byte says how the records lie. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "heddle/heddle.h"
#include "modules/tvm/library.h"
#include "modules/tvm/loaders.h"

/* ---- in place of the loaders of an application */

struct heddle__loaded {
  uint64_t used;
};

static int live;

/* Its first byte: how many bytes are its own, or 255, which is more than there are. An empty one is refused. */
static heddle_status load(const char *kind, const unsigned char *data, uint64_t bytes, uint64_t *used,
                          heddle__loaded **out, heddle_error *err) {
  if (kind == NULL || *used != bytes || err == NULL) abort();
  if (bytes == 0) {
    *err = (heddle_error){HEDDLE_EFORMAT, 0, "there is nothing"};
    return HEDDLE_EFORMAT;
  }
  *used = data[0] == 255 ? bytes + 1 : data[0] < bytes ? data[0] : bytes;
  *out = malloc(sizeof **out);
  if (*out == NULL) abort();
  (*out)->used = *used;
  live++;
  return HEDDLE_OK;
}

static void release(heddle__loaded *m) {
  if (m != NULL) live--;
  free(m);
}

static const heddle__blob_loaders loaders = {load, release};
static heddle_function init = {.name = "init"};

heddle_status heddle__library_loaded(const heddle__tvm_library *l, const char *name, heddle_function **out,
                                     heddle_error *err) {
  if (err == NULL) abort();
  *out = l->n_imports > 0 && strlen(name) % 2 == 0 ? &init : NULL;
  return HEDDLE_OK;
}

/* Code of the library's own is not found here. */
heddle_status heddle__library_give_objects(const heddle__tvm_library *l, const char *name, void *code,
                                           const heddle_value *tensors, uint64_t n, heddle_error *err) {
  (void)l, (void)name, (void)code, (void)tensors, (void)n, (void)err;
  abort();
}

heddle_status heddle__loaded_call(heddle_function *f, const heddle_value *args, uint32_t n, heddle_value *result,
                                  heddle_error *err) {
  volatile unsigned char last = 0;
  if (f != &init || result == NULL || err == NULL) abort();
  for (uint32_t i = 0; i < n; i++) {
    if (args[i].kind != HEDDLE_VALUE_TENSOR || args[i].of.t == NULL) abort();
    uint64_t bytes = heddle_tensor_bytes(args[i].of.t);
    if (bytes > 0) last = ((unsigned char *)heddle_tensor_data(args[i].of.t))[bytes - 1];
  }
  (void)last;
  return HEDDLE_OK;
}

static bool no_symbol(const void *self, const char *head, const char *name, heddle__symbol_kind kind,
                      heddle__symbol *out) {
  (void)self, (void)head, (void)name, (void)kind, (void)out;
  return false;
}

/* ---- the target */

static void check_span(const uint8_t *data, size_t size, heddle__span s) {
  if (s.data == NULL && s.bytes == 0) return;
  if (s.data < data || s.data > data + size || s.bytes > (uint64_t)(data + size - s.data)) abort();
}

static void check_modules(const uint8_t *data, size_t size, const heddle__blob *blob) {
  if (blob->host > blob->n_modules) abort();
  for (uint32_t i = 0; i < blob->n_modules; i++) {
    const heddle__submodule *m = &blob->modules[i];
    if (m->kind == NULL || strlen(m->kind) > size) abort();
    for (uint32_t k = 0; k < m->n_children; k++)
      if (blob->children[m->first_child + k] >= blob->n_modules) abort();
    for (uint32_t k = 0; k < m->n_kernels; k++)
      if (m->kernels[k].name == NULL) abort();
    for (uint32_t k = 0; k < m->n_kernels; k++)
      if (m->kernels[k].words != NULL)
        check_span(data, size, (heddle__span){m->kernels[k].words, 4 * m->kernels[k].n_words});
    check_span(data, size, m->code);
    check_span(data, size, m->graph);
    check_span(data, size, m->names);
    check_span(data, size, m->arrays);
    if (m->n_symbols > 0) check_span(data, size, m->symbols);
    if (m->n_symbols > 0) check_span(data, size, m->takes);
    if (m->loaded != NULL && m->loaded->used != m->code.bytes) abort();
  }
}

static void read_model(const heddle__tvm_library *l, const char *name) {
  const char *text = NULL;
  size_t bytes = 0, blob_bytes = 0;
  void *blob = NULL;
  heddle_error err;
  heddle_graph *graph = NULL;
  heddle_params *params = NULL;
  heddle_read_limits limits = {.struct_size = sizeof limits, .max_bytes = 1 << 20};
  if (heddle__library_model(l, name, &text, &bytes, &blob, &blob_bytes, &err) != HEDDLE_OK) {
    if (err.text[0] == '\0') abort();
    return;
  }
  if (heddle_graph_parse(text, bytes, l->path, &limits, &graph, &err) == HEDDLE_OK) heddle_graph_release(graph);
  if (heddle_params_parse(blob, blob_bytes, l->path, &limits, &params, &err) == HEDDLE_OK) {
    for (uint32_t i = 0; i < heddle_params_count(params); i++)
      if (heddle_params_name(params, i) == NULL) abort();
    heddle_params_release(params);
  }
  heddle_free(blob);
}

static void use(heddle__tvm_library *l) {
  static const heddle__symbols_table none = {no_symbol, NULL};
  const heddle__blob *b = &l->blob;
  heddle_error err = {0};
  char path[] = "fuzz";
  l->path = path;
  l->symbols = (heddle__symbols){&none, NULL, ""};
  l->order = calloc(b->n_modules + 1, sizeof *l->order);
  if (l->order == NULL || heddle__blob_order(b, l->order, &l->n_imports, &err) != HEDDLE_OK) abort();
  if (l->n_imports != b->n_modules - (b->host < b->n_modules)) abort();
  for (uint32_t i = 0; i < l->n_imports; i++) {
    if (l->order[i] >= b->n_modules || l->order[i] == b->host) abort();
    for (uint32_t k = 0; k < i && i < 100; k++)
      if (l->order[k] == l->order[i]) abort();
  }
  if (heddle__library_constants(l, &err) != HEDDLE_OK && err.text[0] == '\0') abort();
  read_model(l, NULL);
  read_model(l, "default");
  free(l->order);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  heddle__tvm_library l = {.users = 0};
  heddle_error err = {0};
  if (size == 0) return 0;
  heddle__blob_layout layout = (heddle__blob_layout)(data[0] % 3);
  if (heddle__blob_read(data + 1, size - 1, layout, &loaders, &l.blob, &err) == HEDDLE_OK) {
    check_modules(data, size, &l.blob);
    use(&l);
  } else if (err.text[0] == '\0') {
    abort();
  }
  heddle__blob_finish(&l.blob);
  if (live != 0) abort();
  return 0;
}
