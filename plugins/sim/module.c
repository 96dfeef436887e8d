/* Modules: "device code" is text, a kernel a line, NAME = FUNCTION, with # for remarks; the functions are three that
 * are built in. A kernel does what the threads of its grid would do: those beyond n do nothing, and elements beyond the
 * threads are not done. */
#include "stream.h"

#define MAX_TEXT (UINT64_C(1) << 20)
#define MAX_BLOCK 1024
#define MAX_SHARED 49152

/* Arguments by letter: b a buffer, f an inline float, n an inline count of 4 or 8 bytes. */
typedef struct function {
  const char *name;
  const char *args;
  uint32_t element; /* bytes */
} function;
enum { ADD_F32, SCALE_F32, COPY_U8, N_FUNCTIONS };
static const function functions[N_FUNCTIONS] = {
    {"add_f32", "bbbn", 4},   /* a, b, out */
    {"scale_f32", "bbfn", 4}, /* x, out, factor */
    {"copy_u8", "bbn", 1},    /* src, dst */
};

struct heddle_pkernel {
  uint32_t magic;
  uint32_t function;
  heddle_pdevice *dev;
  char name[64];
};

struct heddle_pmodule {
  uint32_t magic;
  uint32_t n_kernels;
  heddle_pdevice *dev;
  heddle_pkernel kernels[];
};

void sim_kernel_execute(const sim_cmd *cmd) {
  uint64_t n = cmd->u.kernel.n;
  if (n == 0) return;
  switch (cmd->u.kernel.function) {
  case ADD_F32: {
    const float *a = (const float *)(const void *)cmd->u.kernel.args[0];
    const float *b = (const float *)(const void *)cmd->u.kernel.args[1];
    float *out = (float *)(void *)cmd->u.kernel.args[2];
    for (uint64_t i = 0; i < n; i++) out[i] = a[i] + b[i];
    break;
  }
  case SCALE_F32: {
    const float *x = (const float *)(const void *)cmd->u.kernel.args[0];
    float *out = (float *)(void *)cmd->u.kernel.args[1];
    for (uint64_t i = 0; i < n; i++) out[i] = x[i] * cmd->u.kernel.scale;
    break;
  }
  default: memmove(cmd->u.kernel.args[1], cmd->u.kernel.args[0], n); break;
  }
}

/* ---- loading ---- */

static const char *module_formats(heddle_pinstance *self, uint32_t index) {
  (void)self;
  (void)index;
  return "sim";
}

static bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
}

static void skip_spaces(const char **p, const char *end) {
  while (*p < end && (**p == ' ' || **p == '\t' || **p == '\r')) (*p)++;
}

/* Reads a word into buf; false where there is none or it is too long. */
static bool read_word(const char **p, const char *end, char *buf, size_t size) {
  size_t n = 0;
  skip_spaces(p, end);
  for (; *p < end && is_word(**p) && n + 1 < size; (*p)++) buf[n++] = **p;
  buf[n] = '\0';
  return n != 0 && (*p == end || !is_word(**p));
}

/* One line, without its newline. */
static heddle_status read_line(heddle_pmodule *m, const char *p, const char *end, unsigned line, heddle_error *err) {
  char name[sizeof m->kernels[0].name], what[64];
  uint32_t f = 0;
  skip_spaces(&p, end);
  if (p == end || *p == '#') return HEDDLE_OK;
  bool good = read_word(&p, end, name, sizeof name);
  skip_spaces(&p, end);
  good = good && p < end && *p == '=';
  if (good) p++;
  good = good && read_word(&p, end, what, sizeof what);
  if (good) skip_spaces(&p, end);
  if (!good || (p < end && *p != '#'))
    return p_fail(err, HEDDLE_ECOMPILE, 0, "line %u of a module of sim is not NAME = FUNCTION", line);
  while (f < N_FUNCTIONS && strcmp(functions[f].name, what) != 0) f++;
  if (f == N_FUNCTIONS)
    return p_fail(err, HEDDLE_ECOMPILE, 0,
                  "line %u of a module of sim: no function '%s'; there are add_f32, scale_f32, "
                  "copy_u8",
                  line, what);
  for (uint32_t k = 0; k < m->n_kernels; k++)
    if (strcmp(m->kernels[k].name, name) == 0)
      return p_fail(err, HEDDLE_ECOMPILE, 0, "line %u of a module of sim: a second kernel '%s'", line, name);
  heddle_pkernel *kernel = &m->kernels[m->n_kernels++];
  kernel->magic = SIM_MAGIC_KERNEL;
  kernel->function = f;
  kernel->dev = m->dev;
  memcpy(kernel->name, name, sizeof name);
  return HEDDLE_OK;
}

static heddle_status module_load(heddle_pdevice *dev, const char *format, const void *data, uint64_t bytes,
                                 heddle_pmodule **out, heddle_error *err) {
  heddle_status status = sim_enter(dev, SIM_CALL_LOAD, err);
  if (status != HEDDLE_OK) return status;
  if (strcmp(format, "sim") != 0)
    return p_fail(err, HEDDLE_EUNSUPPORTED, 0, "sim:%u: no module of format '%s'; it takes 'sim'", dev->index, format);
  if (bytes > MAX_TEXT)
    return p_fail(err, HEDDLE_ELIMIT, 0, "sim:%u: a module of %llu bytes; at most %llu", dev->index,
                  (unsigned long long)bytes, (unsigned long long)MAX_TEXT);
  const heddle_host *host = dev->host;
  const char *p = data, *end = bytes == 0 ? p : p + bytes;
  uint64_t lines = 1;
  for (const char *c = p; c < end; c++) lines += *c == '\n';
  heddle_pmodule *m = sim_alloc(host, sizeof *m + lines * sizeof m->kernels[0]);
  if (m == NULL) return p_fail(err, HEDDLE_ENOMEM, 0, "sim:%u: no memory for a module", dev->index);
  m->magic = SIM_MAGIC_MODULE;
  m->dev = dev;
  for (unsigned line = 1; p < end && status == HEDDLE_OK; line++) {
    const char *stop = memchr(p, '\n', (size_t)(end - p));
    if (stop == NULL) stop = end;
    status = read_line(m, p, stop, line, err);
    p = stop < end ? stop + 1 : end;
  }
  if (status != HEDDLE_OK) {
    host->free(host->ctx, m);
    return status;
  }
  atomic_fetch_add(&dev->live_objects, 1);
  *out = m;
  return HEDDLE_OK;
}

static bool module_ok(const heddle_pmodule *m) {
  return m != NULL && m->magic == SIM_MAGIC_MODULE;
}

static void module_unload(heddle_pmodule *m) {
  if (!module_ok(m)) return;
  heddle_pdevice *dev = m->dev;
  m->magic = SIM_MAGIC_DEAD;
  atomic_fetch_sub(&dev->live_objects, 1);
  dev->host->free(dev->host->ctx, m); /* commands hold the function's number, not the kernel */
}

static heddle_status kernel_get(heddle_pmodule *m, const char *name, heddle_pkernel **out, heddle_pkernel_info *info,
                                heddle_error *err) {
  if (!module_ok(m)) return p_fail(err, HEDDLE_EINVAL, 0, "kernel_get: the handle is no live module of sim");
  heddle_status status = sim_enter(m->dev, SIM_CALL_KERNEL, err);
  if (status != HEDDLE_OK) return status;
  for (uint32_t k = 0; k < m->n_kernels; k++) {
    if (strcmp(m->kernels[k].name, name) != 0) continue;
    *out = &m->kernels[k];
    if (HEDDLE_HAS(heddle_pkernel_info, info, max_threads)) info->max_threads = MAX_BLOCK;
    return HEDDLE_OK;
  }
  return p_fail(err, HEDDLE_ENOTFOUND, 0, "sim:%u: no kernel '%s' among the %u of the module", m->dev->index, name,
                m->n_kernels);
}

/* ---- launching ---- */

/* All threads of a launch; 0 where a number is out of range. */
static uint64_t threads_of(const uint32_t *grid, const uint32_t *block) {
  uint64_t in_block = 1, blocks = 1;
  for (int i = 0; i < 3; i++) {
    if (grid[i] == 0 || block[i] == 0 || grid[i] > (1u << 20) || block[i] > MAX_BLOCK) return 0;
    in_block *= block[i];
    blocks *= grid[i];
    if (blocks > (UINT64_C(1) << 40)) return 0;
  }
  return in_block > MAX_BLOCK ? 0 : in_block * blocks;
}

static heddle_status kernel_launch(heddle_pstream *stream, heddle_pkernel *kernel, const uint32_t *grid,
                                   const uint32_t *block, uint32_t shared_bytes, const heddle_pargument *args,
                                   uint32_t n_args, heddle_error *err) {
  sim_cmd cmd = {.kind = SIM_CMD_KERNEL};
  heddle_status status = sim_stream_enter(stream, SIM_CALL_LAUNCH, &cmd, err);
  if (status != HEDDLE_OK) return status;
  if (kernel == NULL || kernel->magic != SIM_MAGIC_KERNEL || kernel->dev != stream->dev)
    return p_fail(err, HEDDLE_EINVAL, 0, "launch: the handle is no kernel of sim:%u", stream->dev->index);
  const function *f = &functions[kernel->function];
  uint64_t threads = threads_of(grid, block);
  if (threads == 0 || shared_bytes > MAX_SHARED)
    return p_fail(err, HEDDLE_EINVAL, 0,
                  "launch of '%s': grid [%u, %u, %u], block [%u, %u, %u] and %u shared bytes are not within what sim "
                  "has (%d threads a block)",
                  kernel->name, grid[0], grid[1], grid[2], block[0], block[1], block[2], shared_bytes, MAX_BLOCK);
  if (n_args != strlen(f->args))
    return p_fail(err, HEDDLE_EINVAL, 0, "launch of '%s': %u arguments for %u", kernel->name, n_args,
                  (unsigned)strlen(f->args));

  const heddle_pargument *count = &args[n_args - 1]; /* the last of each function */
  if (count->size != 4 && count->size != 8)
    return p_fail(err, HEDDLE_EINVAL, 0, "launch of '%s': the count must be 4 or 8 inline bytes", kernel->name);
  uint64_t n = count->size == 4 ? count->offset & UINT32_MAX : count->offset;
  cmd.u.kernel.function = kernel->function;
  cmd.u.kernel.n = n < threads ? n : threads;
  uint32_t buffers = 0;
  for (uint32_t k = 0; k + 1 < n_args; k++) {
    char what[96];
    snprintf(what, sizeof what, "argument %u of '%s'", k, kernel->name);
    if (f->args[k] == 'f') {
      uint32_t bits = (uint32_t)args[k].offset;
      if (args[k].size != 4) return p_fail(err, HEDDLE_EINVAL, 0, "launch: %s must be 4 inline bytes", what);
      memcpy(&cmd.u.kernel.scale, &bits, sizeof bits);
      continue;
    }
    if (args[k].size != 0) return p_fail(err, HEDDLE_EINVAL, 0, "launch: %s must be a buffer", what);
    if (args[k].offset % f->element != 0)
      return p_fail(err, HEDDLE_EINVAL, 0, "launch: %s lies at %llu, no multiple of %u", what,
                    (unsigned long long)args[k].offset, f->element);
    status = sim_bytes(stream->dev, args[k].buffer, args[k].offset, cmd.u.kernel.n * f->element, SIM_OPERAND, what,
                       &cmd.u.kernel.args[buffers++], err);
    if (status != HEDDLE_OK) return status;
  }
  return sim_push(stream, &cmd, err);
}

const heddle_module_table sim_module_table = {
    .struct_size = sizeof(heddle_module_table),
    .unload = module_unload,
    .formats = module_formats,
    .load = module_load,
    .kernel_get = kernel_get,
    .launch = kernel_launch,
};
