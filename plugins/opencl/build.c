/* Programs: kernel texts and modules are built here, and built texts are kept for as long as their device is open. With
 * a cache folder a text's binary is looked for there first; one that the driver refuses is built again. */
#include "opencl.h"

#include "plugins/common/kernels/program.h"

typedef struct ocl_program {
  k_program head;
  cl_program program;
  filecache_key key;
  bool is_kept_late; /* its binary is stored when it is released */
} ocl_program;

heddle_status ocl_build(heddle_pdevice *dev, cl_program program, const char *options, const char *what,
                        heddle_error *err) {
  const heddle_host *host = dev->host;
  size_t bytes = 0;
  const cl_int code = clBuildProgram(program, 1, &dev->info->id, options, NULL, NULL);
  if (code == CL_SUCCESS) return HEDDLE_OK;
  heddle_status s = ocl_check(dev, code, what, err);
  if (s != HEDDLE_EDEVICE && s != HEDDLE_ENOMEM) s = HEDDLE_ECOMPILE;
  if (err != NULL) err->status = s;
  if (err == NULL ||
      clGetProgramBuildInfo(program, dev->info->id, CL_PROGRAM_BUILD_LOG, 0, NULL, &bytes) != CL_SUCCESS || bytes < 2)
    return s;
  char *log = host->alloc(host->ctx, bytes + 1, 1);
  if (log == NULL) return s;
  if (clGetProgramBuildInfo(program, dev->info->id, CL_PROGRAM_BUILD_LOG, bytes, log, NULL) == CL_SUCCESS) {
    const size_t used = strlen(err->text);
    log[bytes] = '\0';
    snprintf(err->text + used, sizeof err->text - used, ": %s", log);
    p_one_line(err->text);
  }
  host->free(host->ctx, log);
  return s;
}

/* ---------------------------------------------------------------- binaries */

/* Stores the binary of this device. A context of several devices gives one for each; PoCL 3.1 names all devices, and has
 * sizes and binaries of those alone that the program was built for, which is one. */
static void store(heddle_pdevice *dev, filecache_key key, cl_program program) {
  enum { MOST = 256 };
  const heddle_host *host = dev->host;
  cl_device_id devices[MOST];
  size_t sizes[MOST] = {0};
  unsigned char *binaries[MOST] = {NULL};
  size_t got = 0, n_sizes = 0, which = MOST;
  if (clGetProgramInfo(program, CL_PROGRAM_DEVICES, sizeof devices, devices, &got) != CL_SUCCESS ||
      clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof sizes, sizes, &n_sizes) != CL_SUCCESS)
    return;
  for (size_t i = 0; i < got / sizeof devices[0]; i++) {
    if (devices[i] == dev->info->id) which = i;
  }
  if (n_sizes == sizeof sizes[0]) which = 0;
  if (which >= n_sizes / sizeof sizes[0] || sizes[which] == 0 || sizes[which] > FILECACHE_MOST) return;
  binaries[which] = host->alloc(host->ctx, sizes[which], 1);
  if (binaries[which] == NULL) return;
  if (clGetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof binaries, binaries, NULL) == CL_SUCCESS)
    filecache_store(&dev->self->cache, key, binaries[which], sizes[which]);
  host->free(host->ctx, binaries[which]);
}

/* NULL where there is no binary, or the driver refuses it. */
static cl_program from_cache(heddle_pdevice *dev, filecache_key key, const char *options) {
  void *data = NULL;
  uint64_t bytes = 0;
  cl_int code = CL_SUCCESS, state = CL_SUCCESS;
  heddle_error ignored;
  if (!filecache_load(&dev->self->cache, key, &data, &bytes)) return NULL;
  const unsigned char *binary = data;
  const size_t size = (size_t)bytes;
  cl_program program = clCreateProgramWithBinary(dev->context, 1, &dev->info->id, &size, &binary, &state, &code);
  dev->host->free(dev->host->ctx, data);
  if (code != CL_SUCCESS) return NULL;
  if (state == CL_SUCCESS && ocl_build(dev, program, options, "load a cached program", &ignored) == HEDDLE_OK)
    return program;
  clReleaseProgram(program);
  dev->host->log(dev->host->ctx, HEDDLE_LOG_INFO, "opencl", "a cached program was refused by the driver; building it");
  return NULL;
}

/* Whether a package is being prepared. Then binaries are taken after the run: PoCL's have what it compiled for the sizes
 * that were launched, if nobody asked for them before. */
static bool is_prepared(const heddle_pdevice *dev) {
  return dev->host->config(dev->host->ctx, "prepared:", NULL, 0) >= 0;
}

/* PoCL has a cache of its own, and compiles each kernel a second time where its binary is asked for. */
static bool is_stored(const heddle_pdevice *dev) {
  return dev->self->cache_dir != NULL && (!dev->info->writes || dev->self->cache_always);
}

/* PoCL reads 18,000 lines of declarations for each program, which takes ten times as long as our text; with its guard
 * defined they are left out, and the prelude declares what kernels use. */
#define DECLARES " -D_OPENCL_H_ -DK_DECLARES"

static heddle_status build_with(heddle_pdevice *dev, const k_source *source, bool declares, ocl_program *to,
                                heddle_error *err) {
  const char *const *parts = source->parts;
  char macros[K_CODE_TEXT], options[K_CODE_TEXT + 128];
  cl_int state = CL_SUCCESS;
  k_code_text(source->code, false, macros);
  snprintf(options, sizeof options, "-cl-std=CL1.2%s%s %s",
           dev->info->rounded ? " -cl-fp32-correctly-rounded-divide-sqrt" : "", declares ? DECLARES : "", macros);
  const filecache_key key = ocl_cache_key_of(dev, parts, source->lengths, K_PARTS, options);
  if (dev->self->source_dir != NULL) ocl_source_write(dev, key, parts, source->lengths, K_PARTS, options);
  to->program = from_cache(dev, key, options);
  if (to->program != NULL) return HEDDLE_OK;
  cl_program program = clCreateProgramWithSource(dev->context, K_PARTS, (const char **)parts, source->lengths, &state);
  heddle_status s = ocl_check(dev, state, source->what, err);
  if (s != HEDDLE_OK) return s;
  s = ocl_build(dev, program, options, source->what, err);
  if (s != HEDDLE_OK) {
    clReleaseProgram(program);
    return s;
  }
  to->key = key;
  to->is_kept_late = dev->self->cache_dir != NULL && is_prepared(dev);
  if (!to->is_kept_late && is_stored(dev)) store(dev, key, program);
  to->program = program;
  return HEDDLE_OK;
}

/* Another version of PoCL may need its own declarations. */
static heddle_status build(void *ctx, const k_source *source, k_program *out, heddle_error *err) {
  heddle_pdevice *dev = ctx;
  ocl_program *to = (ocl_program *)out;
  if (dev->info->writes && !dev->declares_not) {
    const heddle_status s = build_with(dev, source, true, to, err);
    if (s != HEDDLE_ECOMPILE) return s;
  }
  const heddle_status s = build_with(dev, source, false, to, err);
  if (dev->info->writes && s == HEDDLE_OK) dev->declares_not = true;
  return s;
}

heddle_status ocl_program_get(heddle_pdevice *dev, const k_code *code, const struct heddle_chain *chain,
                              cl_program *out, heddle_error *err) {
  const k_programs programs = {.site = {.host = dev->host, .name = "opencl", .index = dev->index},
                               .lock = &dev->build_lock,
                               .list = &dev->programs,
                               .bytes = sizeof(ocl_program),
                               .build = build,
                               .dev = dev};
  k_program *found = NULL;
  heddle_status s = ocl_health(dev, err);
  if (s == HEDDLE_OK) s = k_program_get(&programs, code, chain, &found, err);
  if (s == HEDDLE_OK) *out = ((ocl_program *)found)->program;
  return s;
}

void ocl_programs_release(heddle_pdevice *dev) {
  while (dev->programs != NULL) {
    ocl_program *p = (ocl_program *)dev->programs;
    dev->programs = p->head.next;
    if (p->is_kept_late && ocl_health(dev, NULL) == HEDDLE_OK) store(dev, p->key, p->program);
    clReleaseProgram(p->program);
    dev->host->free(dev->host->ctx, p);
  }
}
