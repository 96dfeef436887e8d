/* modules/tvm/kernels.c: the handles of a library's kernels, made when it is opened: how the arguments of a launch map
 * to the kernel's own and to grid and block, and which part of the source a kernel needs. */
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/error.h"
#include "modules/tvm/launch.h"

static const struct {
  char kind[8];
  int32_t type;
  char plugin[8];
} kinds[] = {{"cuda", HEDDLE_DEVICE_CUDA, "cuda"},
             {"opencl", HEDDLE_DEVICE_OPENCL, "opencl"},
             {"aocl", 5, "aocl"},
             {"sdaccel", 6, "sdaccel"},
             {"vulkan", HEDDLE_DEVICE_VULKAN, "vulkan"},
             {"metal", 8, "metal"},
             {"hip", HEDDLE_DEVICE_ROCM, "rocm"},
             {"hsaco", HEDDLE_DEVICE_ROCM, "rocm"},
             {"rocm", HEDDLE_DEVICE_ROCM, "rocm"},
             {"opengl", 11, "opengl"},
             {"webgpu", 15, "webgpu"}};

enum { N_KINDS = sizeof kinds / sizeof kinds[0] };

static size_t kind_of(const char *kind) {
  size_t i = 0;
  while (i < N_KINDS && strncmp(kinds[i].kind, kind, sizeof kinds[i].kind) != 0) i++;
  return i;
}

int32_t heddle__kind_type(const char *kind) {
  size_t i = kind_of(kind);
  return i < N_KINDS ? kinds[i].type : 0;
}

const char *heddle__kind_plugin(const char *kind) {
  size_t i = kind_of(kind);
  return i < N_KINDS ? kinds[i].plugin : kind;
}

/* ---- launch parameters */

static bool is_tag(const unsigned char *at, uint64_t n, const char *text) {
  return n == strlen(text) && memcmp(at, text, (size_t)n) == 0;
}

/* The tag's words behind "tir." or "tirx.". */
static bool is_option(const unsigned char *at, uint64_t n, const char *text) {
  uint64_t skip = n > 5 && memcmp(at, "tirx.", 5) == 0 ? 5 : n > 4 && memcmp(at, "tir.", 4) == 0 ? 4 : n;
  return is_tag(at + skip, n - skip, text);
}

static void read_tags(heddle__kernel_handle *h) {
  static const char *const axes[] = {"blockIdx.x",  "blockIdx.y",  "blockIdx.z",
                                     "threadIdx.x", "threadIdx.y", "threadIdx.z"};
  const unsigned char *at = h->kernel->tags;
  for (uint32_t i = 0; i < h->kernel->n_tags; i++) {
    uint64_t n = 0;
    for (unsigned k = 0; k < 8; k++) n |= (uint64_t)at[k] << (8 * k);
    at += 8;
    unsigned char axis = 0;
    while (axis < 6 && !is_tag(at, n, axes[axis])) axis++;
    if (axis < 6 && h->shared) h->wrong = "has an extent behind its shared memory";
    else if (axis < 6) h->axes[h->n_extents++] = axis;
    else if (is_option(at, n, "use_dyn_shared_memory")) h->shared = true;
    else if (!is_option(at, n, "use_programtic_dependent_launch") && !is_option(at, n, "use_cooperative_launch"))
      h->wrong = "has a launch parameter that is not known";
    at += n;
  }
}

enum { MOST_ARGS = 64 };

static void read_types(heddle__kernel_handle *h) {
  static const unsigned char known[][2] = {{HEDDLE_DTYPE_INT, 64},   {HEDDLE_DTYPE_INT, 32},
                                           {HEDDLE_DTYPE_UINT, 32},  {HEDDLE_DTYPE_FLOAT, 64},
                                           {HEDDLE_DTYPE_FLOAT, 32}, {HEDDLE_DTYPE_HANDLE, 64}};
  if (h->kernel->n_args > MOST_ARGS) h->wrong = "has more than 64 arguments";
  for (uint32_t i = 0; i < h->kernel->n_args; i++) {
    const unsigned char *t = h->kernel->types + 4 * (size_t)i;
    size_t k = 0;
    while (k < sizeof known / sizeof known[0] && (t[0] != known[k][0] || t[1] != known[k][1])) k++;
    if (k == sizeof known / sizeof known[0] || t[2] != 1 || t[3] != 0)
      h->wrong = "has an argument of a type that no kernel takes";
  }
}

/* ---- code */

/* OpenCL C since v0.8 has a line before each kernel that names it; what is behind it, up to the next such line, is
 * compiled by itself, since several parts may define the same helpers. Without such lines all is one program. */
static void find_code(heddle__kernel_handle *h, uint32_t first) {
  static const char mark[] = "// Function: ";
  const heddle__submodule *m = h->module;
  const unsigned char *at = m->code.data, *end = at + m->code.bytes, *from = NULL, *to = end;
  size_t n = strlen(h->kernel->name);
  h->unit = first;
  h->code = m->code;
  if (strcmp(m->kind, "vulkan") == 0) { /* a module of its own for each */
    h->unit = h->number;
    h->code = (heddle__span){h->kernel->words, 4 * h->kernel->n_words};
    if (h->kernel->words == NULL) h->wrong = "has no shader there";
    return;
  }
  if (strcmp(m->format, "cl") != 0) return;
  while (at < end && to == end) {
    size_t left = (size_t)(end - at);
    if (left >= sizeof mark - 1 && memcmp(at, mark, sizeof mark - 1) == 0) {
      const unsigned char *name = at + sizeof mark - 1;
      if (from != NULL) to = at;
      else if (n < left - (sizeof mark - 1) && memcmp(name, h->kernel->name, n) == 0 && name[n] <= ' ') from = at;
    }
    const unsigned char *line = memchr(at, '\n', left);
    at = line != NULL ? line + 1 : end;
  }
  if (from == NULL) return;
  h->unit = h->number;
  h->code = (heddle__span){from, (uint64_t)(to - from)};
}

/* ---- all of a library */

heddle_status heddle__kernels_init(heddle__tvm_library *l, heddle_error *err) {
  size_t n = 0;
  for (uint32_t i = 0; i < l->n_imports; i++) n += l->blob.modules[l->imports[i]].n_kernels;
  l->kernels = heddle__alloc(n, sizeof *l->kernels);
  if (l->kernels == NULL) return heddle__no_memory(err, "a compiled library's kernels");
  for (uint32_t i = 0; i < l->n_imports; i++) {
    const heddle__submodule *m = &l->blob.modules[l->order[i]];
    uint32_t first = l->n_kernels;
    for (uint32_t k = 0; k < m->n_kernels; k++) {
      heddle__kernel_handle *h = &l->kernels[l->n_kernels];
      *h = (heddle__kernel_handle){.head = {.mark = HEDDLE__FUNCTION_MARK, .name = m->kernels[k].name},
                                   .library = l,
                                   .module = m,
                                   .kernel = &m->kernels[k],
                                   .number = l->n_kernels};
      h->axes = heddle__alloc((size_t)m->kernels[k].n_tags + 1, 1);
      if (h->axes == NULL) return heddle__no_memory(err, "a compiled library's kernels");
      l->n_kernels++;
      read_tags(h);
      read_types(h);
      if (m->code.data != NULL && m->format != NULL) find_code(h, first);
    }
  }
  return HEDDLE_OK;
}

void heddle__kernels_finish(heddle__tvm_library *l) {
  for (uint32_t i = 0; i < l->n_kernels; i++) heddle__free(l->kernels[i].axes);
  heddle__free(l->kernels);
}

bool heddle__kernel_is_of(const heddle__kernel_handle *h, const char *function) {
  size_t n = strlen(function);
  const char *name = h->head.name;
  if (strncmp(name, function, n) != 0) return false;
  return strncmp(name + n, "_kernel", 7) == 0 || strncmp(name + n, "__kernel", 8) == 0;
}

bool heddle__tvm_kernel_find(const heddle__tvm_library *l, const char *name, void **out) {
  char words[500];
  for (uint32_t i = 0; i < l->n_kernels; i++) {
    heddle__kernel_handle *h = &l->kernels[i];
    if (strcmp(h->head.name, name) != 0) continue;
    *out = h->wrong == NULL ? h : NULL;
    snprintf(words, sizeof words, "kernel '%.200s' of its module '%s' %s", name, h->module->kind,
             h->wrong != NULL ? h->wrong : "");
    if (h->wrong != NULL) heddle__tvm_say(NULL, words);
    return true;
  }
  return false;
}
