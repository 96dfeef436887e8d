/* NVRTC for the plugin cuda: where the library is looked for, for which architectures it compiles, and compiling
 * itself.
 *
 * Settings: nvrtc (the path of the library, or off). Source: NVIDIA's NVRTC reference. */
#define _GNU_SOURCE /* dladdr */
#include "nvrtc.h"

#include <dlfcn.h>

enum { MOST_ARCHS = 64 };

/* Prototypes are those of NVRTC 11.2 to 13. */
typedef struct calls {
  const char *(*error_string)(int code);
  int (*version)(int *major, int *minor);
  int (*create)(void **out, const char *source, const char *name, int n_headers, const char *const *headers,
                const char *const *names);
  int (*destroy)(void **program);
  int (*compile)(void *program, int n_options, const char *const *options);
  int (*log_size)(void *program, size_t *out);
  int (*log)(void *program, char *out);
  int (*ptx_size)(void *program, size_t *out);
  int (*ptx)(void *program, char *out);
  int (*cubin_size)(void *program, size_t *out);
  int (*cubin)(void *program, char *out);
  int (*arch_count)(int *out);
  int (*archs)(int *out);
} calls;

struct cuda_nvrtc {
  const heddle_host *host;
  char *path;           /* setting; NULL: not given */
  bool off;             /* setting */
  pthread_mutex_t lock; /* held while the library is looked for */
  atomic_bool looked;   /* what follows is set, for good */
  atomic_bool said;     /* that programs are finished by the driver */
  calls c;
  int version[2], archs[MOST_ARCHS], n_archs;
  char words[32]; /* "NVRTC 13.0"; empty: there is none */
  char why[512];  /* there is none */
};

/* ---------------------------------------------------------------- the library */

heddle_status cuda_nvrtc_new(heddle_pinstance *self, cuda_nvrtc **out, heddle_error *err) {
  const heddle_host *host = self->host;
  void *memory = NULL;
  *out = NULL;
  heddle_status s = gpu_new(host, sizeof(cuda_nvrtc), "NVRTC", &memory, err);
  if (s != HEDDLE_OK) return s;
  cuda_nvrtc *n = memory;
  n->host = host;
  if (pthread_mutex_init(&n->lock, NULL) != 0) {
    host->free(host->ctx, n);
    return p_fail(err, HEDDLE_ENOMEM, 0, "cuda: no lock for NVRTC");
  }
  s = gpu_setting_path(self, "nvrtc", &n->path, &n->off, err);
  if (s != HEDDLE_OK) {
    cuda_nvrtc_free(self, n);
    return s;
  }
  *out = n;
  return HEDDLE_OK;
}

void cuda_nvrtc_free(heddle_pinstance *self, cuda_nvrtc *n) {
  if (n == NULL) return;
  pthread_mutex_destroy(&n->lock);
  self->host->free(self->host->ctx, n->path);
  self->host->free(self->host->ctx, n);
}

/* The first call that must be there and is not; NULL: all are. */
static const char *find_calls(void *library, calls *c) {
  const struct {
    const char *name;
    void *member; /* POSIX has dlsym give functions as void *, which ISO C cannot cast */
  } all[] = {
      {"nvrtcGetErrorString", &c->error_string},
      {"nvrtcVersion", &c->version},
      {"nvrtcCreateProgram", &c->create},
      {"nvrtcDestroyProgram", &c->destroy},
      {"nvrtcCompileProgram", &c->compile},
      {"nvrtcGetProgramLogSize", &c->log_size},
      {"nvrtcGetProgramLog", &c->log},
      {"nvrtcGetPTXSize", &c->ptx_size},
      {"nvrtcGetPTX", &c->ptx},
      {"nvrtcGetCUBINSize", &c->cubin_size},
      {"nvrtcGetCUBIN", &c->cubin},
      {"nvrtcGetNumSupportedArchs", &c->arch_count},
      {"nvrtcGetSupportedArchs", &c->archs},
  };
  const char *missing = NULL;
  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
    void *symbol = dlsym(library, all[i].name);
    memcpy(all[i].member, &symbol, sizeof symbol);
    if (symbol == NULL && missing == NULL) missing = all[i].name;
  }
  return missing;
}

/* NVRTC opens a second library by its name alone when it compiles, which the loader finds only in its own folders: where
 * NVRTC was found elsewhere (a Python package, a toolkit that the loader does not know) that one is opened from beside
 * it, and stays open. */
static void open_builtins(const cuda_nvrtc *n) {
  char path[4096];
  void *address = NULL;
  Dl_info own;
  memcpy(&address, &n->c.version, sizeof address);
  if (dladdr(address, &own) == 0 || own.dli_fname == NULL) return;
  const char *slash = strrchr(own.dli_fname, '/');
  if (slash == NULL) return;
  const int length = snprintf(path, sizeof path, "%.*s/libnvrtc-builtins.so.%d.%d", (int)(slash - own.dli_fname),
                              own.dli_fname, n->version[0], n->version[1]);
  if (length > 0 && length < (int)sizeof path) (void)dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

/* The driver reads images of its own major version and of older ones: a newer NVRTC is taken only where it was asked
 * for. */
static bool try_library(cuda_nvrtc *n, const char *name, int driver_version) {
  const size_t used = strlen(n->why);
  char *more = n->why + used;
  const size_t room = sizeof n->why - used;
  int count = 0;
  void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) {
    if (n->path != NULL) snprintf(more, room, ": %s", dlerror());
    return false;
  }
  const char *missing = find_calls(library, &n->c);
  if (missing != NULL) {
    snprintf(more, room, "; %s has no %s: it is older than 11.2", name, missing);
  } else if (n->c.version(&n->version[0], &n->version[1]) != 0) {
    snprintf(more, room, "; %s does not tell its version", name);
  } else if (n->path == NULL && n->version[0] > driver_version / 1000) {
    snprintf(more, room, "; %s is NVRTC %d.%d, newer than the driver's CUDA %d.%d", name, n->version[0], n->version[1],
             driver_version / 1000, driver_version % 1000 / 10);
  } else if (n->c.arch_count(&count) != 0 || count < 1 || count > MOST_ARCHS || n->c.archs(n->archs) != 0) {
    snprintf(more, room, "; %s does not tell its architectures", name);
  } else {
    n->n_archs = count;
    open_builtins(n);
    snprintf(n->words, sizeof n->words, "NVRTC %d.%d", n->version[0], n->version[1]);
    return true; /* and stays open: programs of other instances may be under way in it */
  }
  dlclose(library);
  return false;
}

static void look(cuda_nvrtc *n, int driver_version) {
  static const char *const names[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2", "libnvrtc.so",
                                      "/usr/local/cuda/lib64/libnvrtc.so"};
  if (n->off) {
    snprintf(n->why, sizeof n->why, "NVRTC, which compiles the kernels, is switched off (setting nvrtc)");
    return;
  }
  if (n->path != NULL) {
    snprintf(n->why, sizeof n->why, "NVRTC, which compiles the kernels, cannot be opened (setting nvrtc)");
    try_library(n, n->path, driver_version);
    return;
  }
  snprintf(n->why, sizeof n->why,
           "there is no NVRTC to compile the kernels with: no library libnvrtc.so of version 11.2 to %d was found; "
           "install it, or give its path as cuda.nvrtc (HEDDLE_CUDA_NVRTC)",
           driver_version / 1000);
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    if (try_library(n, names[i], driver_version)) return;
  }
}

/* The instance's NVRTC, looked for at the first call. */
static const cuda_nvrtc *get(heddle_pinstance *self) {
  cuda_nvrtc *n = cuda_nvrtc_of(self);
  if (atomic_load_explicit(&n->looked, memory_order_acquire)) return n;
  pthread_mutex_lock(&n->lock);
  if (!atomic_load(&n->looked)) {
    look(n, self->driver_version);
    p_one_line(n->why);
    atomic_store_explicit(&n->looked, true, memory_order_release);
  }
  pthread_mutex_unlock(&n->lock);
  return n;
}

void cuda_compiler_words(heddle_pinstance *self, char *buf, size_t bytes) {
  snprintf(buf, bytes, "%s", get(self)->words);
}

/* ---------------------------------------------------------------- architectures */

/* The device's own, or the newest that is known and older; 0: none. */
static int choose(const cuda_nvrtc *n, const gpu_info *info) {
  const int own = (int)(info->major * 10 + info->minor);
  int best = 0;
  for (int i = 0; i < n->n_archs; i++) {
    if (n->archs[i] <= own && n->archs[i] > best) best = n->archs[i];
  }
  return best;
}

heddle_status cuda_can_compile(heddle_pinstance *self, const gpu_info *info, heddle_error *err) {
  const cuda_nvrtc *n = get(self);
  int oldest = n->n_archs > 0 ? n->archs[0] : 0;
  if (n->words[0] == '\0') return p_fail(err, HEDDLE_EUNSUPPORTED, 0, "cuda:%u: %s", info->index, n->why);
  if (choose(n, info) != 0) return HEDDLE_OK;
  for (int i = 1; i < n->n_archs; i++) oldest = n->archs[i] < oldest ? n->archs[i] : oldest;
  return p_fail(err, HEDDLE_EUNSUPPORTED, 0,
                "cuda:%u: %s compiles for sm_%d and newer, and the device is %s: give the path of an older NVRTC as "
                "cuda.nvrtc (HEDDLE_CUDA_NVRTC)",
                info->index, n->words, oldest, info->arch);
}

/* ---------------------------------------------------------------- compile */

static void say_finished_by_driver(heddle_pinstance *self, const cuda_nvrtc *n, const gpu_info *info, int arch) {
  char line[256];
  if (atomic_exchange(&cuda_nvrtc_of(self)->said, true)) return;
  snprintf(line, sizeof line,
           "cuda:%u: %s does not know %s: kernels are compiled to PTX for compute_%d, and the driver finishes them",
           info->index, n->words, info->arch, arch);
  n->host->log(n->host->ctx, HEDDLE_LOG_INFO, "cuda", line);
}

static heddle_status refuse(const cuda_nvrtc *n, const gpu_info *info, const char *what, void *program, int code,
                            heddle_error *err) {
  size_t bytes = 0;
  heddle_status s = p_fail(err, HEDDLE_ECOMPILE, code, "cuda:%u: %s: %s: %s (%d)", info->index, what, n->words,
                           n->c.error_string(code), code);
  if (err == NULL || program == NULL || n->c.log_size(program, &bytes) != 0 || bytes < 2) return s;
  char *log = n->host->alloc(n->host->ctx, bytes + 1, 1);
  if (log == NULL) return s;
  if (n->c.log(program, log) == 0) {
    const size_t used = strlen(err->text);
    log[bytes] = '\0';
    snprintf(err->text + used, sizeof err->text - used, ": %s", log);
    p_one_line(err->text);
  }
  n->host->free(n->host->ctx, log);
  return s;
}

static heddle_status take_image(const cuda_nvrtc *n, const gpu_info *info, const char *what, void *program, bool ptx,
                                void **image, uint64_t *bytes, heddle_error *err) {
  size_t size = 0;
  int code = ptx ? n->c.ptx_size(program, &size) : n->c.cubin_size(program, &size);
  if (code != 0) return refuse(n, info, what, NULL, code, err);
  if (size == 0) return p_fail(err, HEDDLE_ECOMPILE, 0, "cuda:%u: %s: %s gave no code", info->index, what, n->words);
  char *data = n->host->alloc(n->host->ctx, (uint64_t)size + 1, 64);
  if (data == NULL)
    return p_fail(err, HEDDLE_ENOMEM, 0, "cuda:%u: %s: no memory for %llu bytes of code", info->index, what,
                  (unsigned long long)size);
  data[size] = '\0';
  code = ptx ? n->c.ptx(program, data) : n->c.cubin(program, data);
  if (code != 0) {
    n->host->free(n->host->ctx, data);
    return refuse(n, info, what, NULL, code, err);
  }
  *image = data;
  *bytes = size;
  return HEDDLE_OK;
}

heddle_status cuda_compile(heddle_pinstance *self, const gpu_info *info, const char *what, const char *source,
                           void **image, uint64_t *bytes, heddle_error *err) {
  heddle_status s = cuda_can_compile(self, info, err);
  char arch[32];
  const char *const options[] = {arch};
  void *program = NULL;
  if (s != HEDDLE_OK) return s;
  const cuda_nvrtc *n = get(self);
  const int best = choose(n, info);
  const bool ptx = best != (int)(info->major * 10 + info->minor);
  snprintf(arch, sizeof arch, "-arch=%s_%d", ptx ? "compute" : "sm", best);
  if (ptx) say_finished_by_driver(self, n, info, best);
  int code = n->c.create(&program, source, "heddle.cu", 0, NULL, NULL);
  if (code != 0) return refuse(n, info, what, NULL, code, err);
  code = n->c.compile(program, 1, options);
  s = code == 0 ? take_image(n, info, what, program, ptx, image, bytes, err)
                : refuse(n, info, what, program, code, err);
  n->c.destroy(&program);
  return s;
}
