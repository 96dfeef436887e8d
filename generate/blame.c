/* generate/blame.c: why logits are no numbers: the first weight of the model's file that is none. The file is read again for it, so that
 * loading reads nothing twice; where it cannot be read, the error stays as it is. */
#include <fcntl.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/error.h"
#include "generate/generator.h"
#include "generate/gguf.h"
#include "plugins/common/blocks.h"
#include "plugins/common/float16.h"

enum { MOST = 256 /* elements of a block */ };

static bool all_finite(const float *x, uint32_t n) {
  for (uint32_t i = 0; i < n; i++)
    if (!isfinite(x[i])) return false;
  return true;
}

/* The first block of it, or element of float32, that is not finite. */
static bool has_bad(const heddle__gguf_tensor *t, uint64_t *element) {
  const block_form *f = block_form_of(heddle__gguf_form(t->type));
  const uint32_t elements = f != NULL ? f->elements : 1, bytes = f != NULL ? f->bytes : (uint32_t)sizeof(float);
  float numbers[MOST];
  for (uint64_t k = 0; k < t->count; k += elements) {
    const uint8_t *at = t->data + k / elements * bytes;
    if (f != NULL) f->read(at, numbers);
    else memcpy(numbers, at, sizeof *numbers);
    *element = k;
    if (!all_finite(numbers, elements)) return true;
  }
  return false;
}

static void name_of_gguf(const char *path, const void *data, size_t bytes, heddle_status s, heddle_error *err) {
  heddle__gguf file;
  heddle_error unused = {0};
  uint64_t element;
  if (heddle__gguf_parse(data, bytes, path, &file, &unused) != HEDDLE_OK) return;
  for (uint64_t i = 0; i < file.n_tensors; i++) {
    const heddle__gguf_tensor *t = &file.tensors[i];
    if (!has_bad(t, &element)) continue;
    (void)heddle__prefix(err, s, "%s: tensor '%.*s' is not finite from element %llu on: ", path,
                         (int)(t->name.bytes < 128 ? t->name.bytes : 128), t->name.data, (unsigned long long)element);
    break;
  }
  heddle__gguf_free(&file);
}

static void blame_gguf(const char *path, heddle_status s, heddle_error *err) {
  struct stat info;
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;
  void *data = MAP_FAILED;
  if (fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_size > 0)
    data = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
  close(fd);
  if (data == MAP_FAILED) return;
  name_of_gguf(path, data, (size_t)info.st_size, s, err);
  munmap(data, (size_t)info.st_size);
}

/* A mask may have -infinity, and nothing NaN or +infinity. */
static bool is_bad(float x) {
  return isnan(x) || x == INFINITY;
}

static bool has_bad_number(const heddle_tensor *t, uint64_t *element) {
  const heddle_dtype d = heddle_tensor_dtype(t);
  const void *data = heddle_tensor_data(t);
  const bool brain = d.code == HEDDLE_DTYPE_BFLOAT;
  uint64_t count = 1;
  if (data == NULL || d.lanes != 1 || (!brain && d.code != HEDDLE_DTYPE_FLOAT) || (d.bits != 16 && d.bits != 32))
    return false;
  for (uint32_t i = 0; i < heddle_tensor_ndim(t); i++) count *= (uint64_t)heddle_tensor_shape(t)[i];
  for (uint64_t i = 0; i < count; i++) {
    const uint16_t half = d.bits == 16 ? ((const uint16_t *)data)[i] : 0;
    *element = i;
    if (is_bad(d.bits == 32 ? ((const float *)data)[i] : brain ? bfloat16_to_float(half) : float16_to_float(half)))
      return true;
  }
  return false;
}

static void blame_params(const char *path, heddle_status s, heddle_error *err) {
  heddle_params *params = NULL;
  heddle_error unused = {0};
  uint64_t element;
  bool is_found = false;
  if (heddle_params_load(path, NULL, &params, &unused) != HEDDLE_OK) return;
  for (uint32_t i = 0; i < heddle_params_count(params) && !is_found; i++) {
    heddle_tensor *t = NULL;
    if (heddle_params_tensor(params, i, &t, &unused) == HEDDLE_OK && has_bad_number(t, &element)) {
      (void)heddle__prefix(err, s, "%s: tensor '%.128s' has no number at element %llu: ", path,
                           heddle_params_name(params, i), (unsigned long long)element);
      is_found = true;
    }
    heddle_tensor_release(t);
  }
  heddle_params_release(params);
}

void heddle__generate_blame(const heddle_generator *g, heddle_status s, heddle_error *err) {
  if (s != HEDDLE_EINVAL || err == NULL) return;
  if (heddle__gguf_is(g->config.model_path)) blame_gguf(g->config.model_path, s, err);
  else blame_params(g->config.model_path, s, err);
}
