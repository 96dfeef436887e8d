/* Modules: an image of the double's own compiler, whose source PoCL builds; or PTX or a GPU's ELF, of which only the
 * list of kernels is read, and whose kernels are C functions of a library (FAKE_GPU_KERNELS). */
#include "engine_foreign.h"

#include <stdio.h>

#define MAGIC "FAKE-GPU-IMAGE 1\n"

struct eng_function {
  eng_object o;
  eng_module *module;
  eng_code *code;
};

struct eng_module {
  eng_object o;
  void *program; /* PoCL's; NULL: foreign */
  eng_code **codes;
  eng_function **functions; /* one per code; NULL: not asked for */
  size_t count;
};

/* ---------------------------------------------------------------- codes */

bool eng_code_layout(eng_code *code) {
  code->at = calloc(code->n_params + 1, sizeof *code->at);
  if (code->at == NULL) return false;
  size_t end = 0;
  for (size_t i = 0; i < code->n_params; i++) {
    size_t align = 8;
    while (code->params[i].bytes % align != 0) align /= 2;
    end = (end + align - 1) / align * align;
    code->at[i] = end;
    end += code->params[i].bytes;
  }
  code->params_bytes = end;
  return true;
}

void eng_code_drop(eng_code *code) {
  if (code == NULL || atomic_fetch_sub(&code->refs, 1) != 1) return;
  if (code->kernel != NULL) eng_kernel_free(code->kernel);
  pthread_mutex_destroy(&code->lock);
  free(code->params);
  free(code->at);
  free(code);
}

/* ---------------------------------------------------------------- images */

bool eng_compile(const char *source, const char *options, const char *arch, char **image, size_t *bytes, char **log) {
  *image = NULL;
  *log = NULL;
  if (eng_setting()->kernels) {
    void *program = eng_program_build(source, options, log);
    if (program == NULL) return false;
    eng_program_free(program);
  }
  const size_t room = strlen(source) + strlen(options) + strlen(arch) + 128;
  *image = malloc(room);
  if (*log == NULL) *log = calloc(1, 1);
  if (*image == NULL || *log == NULL) return false;
  const int n = snprintf(*image, room, MAGIC "arch=%s\noptions=%s\n\n%s", arch, options, source);
  *bytes = (size_t)n + 1;
  return true;
}

static void say(char *log, size_t bytes, const char *format, const char *a, const char *b) {
  if (log != NULL && bytes > 0) snprintf(log, bytes, format, a, b);
}

/* A line "key=value" at *at, which is moved behind it. */
static char *line_of(const char **at, const char *key) {
  const char *end = strchr(*at, '\n');
  const size_t skip = strlen(key);
  if (end == NULL || strncmp(*at, key, skip) != 0) return NULL;
  char *value = strndup(*at + skip, (size_t)(end - *at) - skip);
  *at = end + 1;
  return value;
}

static int load_own(eng_module *module, const char *image, const eng_device *device, char *log, size_t log_bytes) {
  const char *at = image + strlen(MAGIC);
  char *arch = line_of(&at, "arch="), *options = arch != NULL ? line_of(&at, "options=") : NULL, *why = NULL;
  int code = options != NULL && *at == '\n' ? ENG_OK : ENG_INVALID_IMAGE;
  if (code != ENG_OK) say(log, log_bytes, "the image is cut off%s%s", "", "");
  if (code == ENG_OK && !eng_flavour_own.fits(arch, device->arch)) {
    say(log, log_bytes, "the image is for %s, and the device is %s", arch, device->arch);
    code = ENG_NO_BINARY;
  }
  if (code == ENG_OK && !eng_setting()->kernels) {
    say(log, log_bytes, "this double runs no kernels (FAKE_GPU_NO_KERNELS)%s%s", "", "");
    code = ENG_NOT_SUPPORTED;
  }
  if (code == ENG_OK) {
    module->program = eng_program_build(at + 1, options, &why);
    if (module->program == NULL) {
      say(log, log_bytes, "%s%s", why != NULL ? why : "the source does not compile", "");
      code = ENG_INVALID_PTX;
    }
  }
  if (code == ENG_OK) code = eng_program_codes(module->program, &module->codes, &module->count, log, log_bytes);
  free(why);
  free(arch);
  free(options);
  return code;
}

static int load(eng_module *module, const void *image, const eng_device *device, char *log, size_t log_bytes) {
  if (strncmp(image, MAGIC, strlen(MAGIC)) == 0) return load_own(module, image, device, log, log_bytes);
  if (memcmp(image, "\177ELF", 4) == 0) return eng_elf_codes(image, &module->codes, &module->count, log, log_bytes);
  return eng_ptx_codes(image, device, &module->codes, &module->count, log, log_bytes);
}

int eng_module_load(eng_module **out, const void *image, char *log, size_t log_bytes) {
  eng_context *ctx = NULL;
  if (log != NULL && log_bytes > 0) log[0] = '\0';
  if (image == NULL || out == NULL) return ENG_INVALID_VALUE;
  eng_enter();
  int code = eng_context_need(&ctx);
  if (code == ENG_OK) code = eng_capture_unsafe("a load of a module");
  const eng_device *device = code == ENG_OK ? eng_device_get(ctx->device) : NULL;
  eng_leave();
  if (code != ENG_OK) return code;
  eng_module *module = calloc(1, sizeof *module);
  if (module == NULL) return ENG_OUT_OF_MEMORY;
  code = load(module, image, device, log, log_bytes);
  if (code == ENG_OK) {
    module->functions = calloc(module->count + 1, sizeof *module->functions);
    if (module->functions == NULL) code = ENG_OUT_OF_MEMORY;
  }
  eng_enter();
  eng_object_add(&module->o, ENG_MODULE, ctx);
  if (code == ENG_OK) *out = module;
  else eng_module_free(module);
  return eng_leave_with(code);
}

void eng_module_free(eng_module *module) {
  for (size_t i = 0; i < module->count; i++) {
    if (module->functions != NULL && module->functions[i] != NULL) eng_object_retire(&module->functions[i]->o);
    atomic_store(&module->codes[i]->unloaded, true);
    eng_code_drop(module->codes[i]);
  }
  if (module->program != NULL) eng_program_free(module->program);
  free(module->codes);
  free(module->functions);
  eng_object_retire(&module->o);
}

int eng_module_unload(eng_module *module) {
  eng_context *ctx = NULL;
  eng_enter();
  const int code = eng_context_need(&ctx);
  if (code == ENG_INVALID_CONTEXT || code == ENG_CONTEXT_DESTROYED) return eng_leave_with(code);
  int found = eng_object_check(module, ENG_MODULE, "a module is unloaded");
  if (found == ENG_OK && module->o.ctx != ctx) {
    eng_misuse("a module of device %d is unloaded in a context of device %d", module->o.ctx->device, ctx->device);
    found = ENG_INVALID_CONTEXT;
  }
  if (found == ENG_OK && code == ENG_OK) found = eng_capture_unsafe("an unload of a module");
  if (found != ENG_OK) return eng_leave_with(found);
  eng_streams_await(ctx);
  eng_module_free(module);
  return eng_leave_with(code);
}

/* ---------------------------------------------------------------- functions */

int eng_module_function(eng_function **out, eng_module *module, const char *name) {
  eng_context *ctx = NULL;
  eng_enter();
  int code = eng_context_need(&ctx);
  if (code == ENG_OK) code = eng_object_check(module, ENG_MODULE, "a function of a module");
  if (code != ENG_OK) return eng_leave_with(code);
  for (size_t i = 0; i < module->count; i++) {
    if (strcmp(module->codes[i]->name, name) != 0) continue;
    eng_function *f = module->functions[i];
    if (f == NULL) f = calloc(1, sizeof *f);
    if (f == NULL) return eng_leave_with(ENG_OUT_OF_MEMORY);
    if (module->functions[i] == NULL) {
      module->functions[i] = f;
      f->module = module;
      f->code = module->codes[i];
      eng_object_add(&f->o, ENG_FUNCTION, module->o.ctx);
    }
    *out = f;
    return eng_leave_with(ENG_OK);
  }
  return eng_leave_with(ENG_NOT_FOUND);
}

static int find(eng_function *f, const char *what) {
  eng_context *ctx = NULL;
  const int code = eng_context_need(&ctx);
  return code == ENG_OK ? eng_object_check(f, ENG_FUNCTION, what) : code;
}

int eng_function_about(eng_function *f, eng_function_info *out) {
  eng_enter();
  const int code = find(f, "an attribute of a function");
  if (code == ENG_OK)
    *out = (eng_function_info){f->code->max_threads, f->code->shared_bytes, f->code->max_dynamic, f->code->registers};
  return eng_leave_with(code);
}

int eng_function_set_shared(eng_function *f, int bytes) {
  eng_enter();
  int code = find(f, "an attribute of a function is set");
  if (code == ENG_OK && (bytes < 0 || bytes + f->code->shared_bytes > ENG_SHARED_MOST)) code = ENG_INVALID_VALUE;
  if (code == ENG_OK) f->code->max_dynamic = bytes;
  return eng_leave_with(code);
}

/* ---------------------------------------------------------------- launches */

static int launch_check(const eng_code *code, const unsigned grid[3], const unsigned block[3], unsigned shared) {
  static const unsigned block_limit[3] = {1024, 1024, 64}, grid_limit[3] = {2147483647u, 65535, 65535};
  uint64_t threads = 1;
  for (int d = 0; d < 3; d++) {
    if (grid[d] == 0 || block[d] == 0 || grid[d] > grid_limit[d] || block[d] > block_limit[d]) return ENG_INVALID_VALUE;
    threads *= block[d];
  }
  if (threads > 1024) return ENG_INVALID_VALUE;
  if (threads > (uint64_t)code->max_threads) return ENG_OUT_OF_RESOURCES;
  return shared > (unsigned)code->max_dynamic ? ENG_INVALID_VALUE : ENG_OK;
}

/* The arguments, side by side, as the kernel's parameters are laid out. */
static int gather(const eng_code *code, void **args, void **extra, char **out) {
  const char *packed = NULL;
  size_t packed_bytes = 0;
  for (size_t i = 0; extra != NULL && extra[i] != NULL; i += 2) {
    if ((uintptr_t)extra[i] == 1) packed = extra[i + 1];
    else if ((uintptr_t)extra[i] == 2) packed_bytes = *(const size_t *)extra[i + 1];
    else return ENG_INVALID_VALUE;
  }
  if (code->n_params > 0 && (args == NULL) == (packed == NULL)) return ENG_INVALID_VALUE;
  if (packed != NULL && packed_bytes < code->params_bytes) {
    eng_misuse("%s is given %zu bytes of arguments, and takes %zu", code->name, packed_bytes, code->params_bytes);
    return ENG_INVALID_VALUE;
  }
  char *blob = calloc(1, code->params_bytes + 1);
  if (blob == NULL) return ENG_OUT_OF_MEMORY;
  for (size_t i = 0; i < code->n_params; i++) {
    if (packed == NULL && args[i] == NULL) {
      eng_misuse("argument %zu of %s is missing", i, code->name);
      free(blob);
      return ENG_INVALID_VALUE;
    }
    memcpy(blob + code->at[i], packed != NULL ? packed + code->at[i] : args[i], code->params[i].bytes);
  }
  *out = blob;
  return ENG_OK;
}

/* As a driver that loads a kernel's code at its first use: that waits for the context's work, and no capture holds it. */
static int load_lazily(eng_code *code, const eng_stream *stream) {
  if (!eng_setting()->lazy || code->loaded) return ENG_OK;
  if (stream != NULL && stream->capture != NULL) {
    eng_misuse("the kernel %s is first launched in a capture, and not loaded yet", code->name);
    return ENG_CAPTURE_UNSUPPORTED;
  }
  code->loaded = true;
  return ENG_OK;
}

int eng_function_load(eng_function *f) {
  eng_context *ctx = NULL;
  eng_enter();
  int code = eng_context_need(&ctx);
  if (code == ENG_OK) code = eng_object_check(f, ENG_FUNCTION, "a kernel is loaded");
  if (code == ENG_OK) code = load_lazily(f->code, NULL);
  return eng_leave_with(code);
}

int eng_launch(eng_function *f, const unsigned grid[3], const unsigned block[3], unsigned shared,
               eng_stream_handle handle, void **args, void **extra) {
  eng_stream *stream = NULL;
  char *blob = NULL;
  eng_enter();
  int code = eng_stream_find(handle, &stream);
  if (code == ENG_OK) code = eng_object_check(f, ENG_FUNCTION, "a launch");
  if (code == ENG_OK && f->o.ctx != stream->o.ctx) {
    eng_misuse("a kernel of device %d is launched in a stream of device %d", f->o.ctx->device, stream->o.ctx->device);
    code = ENG_INVALID_HANDLE;
  }
  if (code == ENG_OK) code = launch_check(f->code, grid, block, shared);
  if (code == ENG_OK && f->code->kernel == NULL && f->code->native == NULL) {
    fprintf(stderr, "fake gpu: the kernel %s is not in the library FAKE_GPU_KERNELS\n", f->code->name);
    code = ENG_NOT_SUPPORTED;
  }
  if (code == ENG_OK) code = load_lazily(f->code, stream);
  if (code == ENG_OK) code = gather(f->code, args, extra, &blob);
  if (code != ENG_OK) return eng_leave_with(code);
  eng_work *work = eng_work_new(ENG_WORK_KERNEL);
  work->kernel.code = f->code;
  work->kernel.args = blob;
  work->kernel.shared = shared;
  memcpy(work->kernel.grid, grid, sizeof work->kernel.grid);
  memcpy(work->kernel.block, block, sizeof work->kernel.block);
  work->ctx = stream->o.ctx;
  atomic_fetch_add(&f->code->refs, 1);
  eng_leave();
  return eng_put(handle, work, false);
}

const char *eng_kernel_wrong(const eng_work *work) {
  const eng_code *code = work->kernel.code;
  if (atomic_load(&code->unloaded)) return "is of a module that is unloaded";
  for (size_t i = 0; i < code->n_params; i++) {
    uint64_t address = 0;
    if (!code->params[i].pointer) continue;
    memcpy(&address, work->kernel.args + code->at[i], sizeof address);
    const eng_allocation *a = address != 0 ? eng_allocation_at(address) : NULL;
    if (address == 0) continue;
    const char *wrong = eng_memory_wrong(work->ctx, address, 0, true);
    if (wrong != NULL) return wrong;
    if (a->area == ENG_AREA_DEVICE && a->device != work->ctx->device &&
        !(a->pool != NULL ? eng_pool_opened(a->pool, work->ctx->device) : (work->ctx->peers >> a->device & 1u) != 0))
      return "is of another device, which this one has no access to";
  }
  return NULL;
}
