/* Programs: kernel texts are compiled here by the vendor's compiler, kept on disk by driver, compiler, architecture and
 * source, loaded, and kept for as long as their device is open. With them goes what loads any image, with the driver's
 * log. */
#include "gpu.h"

#include "plugins/common/chain.h"
#include "plugins/common/gpu/image.h"

struct gpu_program {
  gpu_program *next;
  k_code code;
  const heddle_chain *chain; /* its own; NULL: none */
  void *module;
};

/* ---------------------------------------------------------------- images */

heddle_status gpu_image_load(heddle_pdevice *dev, const char *what, const void *image, void **module,
                             heddle_error *err) {
  /* Both vendors number these alike. */
  enum { ERROR_LOG = 5, ERROR_LOG_BYTES = 6, INVALID_IMAGE = 200, NO_BINARY = 209, INVALID_PTX = 218, NEWER_PTX = 222 };
  const gpu_driver *driver = dev->driver;
  char log[768] = "";
  int options[2] = {ERROR_LOG, ERROR_LOG_BYTES};
  void *values[2] = {log, (void *)(uintptr_t)(sizeof log - 1)}; /* a number in a pointer's place, as the call has it */
  heddle_error own = {0};
  gpu_scope scope;
  if (err == NULL) err = &own;
  heddle_status s = gpu_enter(dev, &scope, err);
  if (s != HEDDLE_OK) return s;
  const int code = driver->module_load_log != NULL ? driver->module_load_log(module, image, 2, options, values)
                                                   : driver->module_load(module, image);
  gpu_leave(dev, &scope);
  s = gpu_check(dev, code, what, err);
  if (s == HEDDLE_OK) return s;
  *module = NULL;
  if (code == INVALID_IMAGE || code == INVALID_PTX) s = HEDDLE_EFORMAT;
  if (code == NO_BINARY || code == NEWER_PTX) s = HEDDLE_EUNSUPPORTED;
  err->status = s;
  if (log[0] != '\0') {
    const size_t used = strlen(err->text);
    snprintf(err->text + used, sizeof err->text - used, ": %s", log);
    p_one_line(err->text);
  }
  return s;
}

/* An image depends on what reads it, what makes it, and what it is made of. */
static filecache_key key_of(const heddle_pdevice *dev, const char *source) {
  char compiler[128] = "";
  filecache_key key = filecache_key_start();
  dev->vendor->compiler_words(dev->self, compiler, sizeof compiler);
  filecache_key_add(&key, dev->vendor->name, strlen(dev->vendor->name) + 1);
  filecache_key_add(&key, dev->info->driver, strlen(dev->info->driver) + 1);
  filecache_key_add(&key, dev->info->arch, strlen(dev->info->arch) + 1);
  filecache_key_add(&key, compiler, strlen(compiler) + 1);
  filecache_key_add(&key, source, strlen(source));
  return filecache_key_end(key);
}

/* An entry as the driver gets it: with zeros behind. False: memory is out, and there is no entry. */
static bool load_entry(heddle_pinstance *self, filecache_key key, void **image, uint64_t *bytes) {
  const heddle_host *host = self->host;
  void *entry = NULL;
  if (!filecache_load(&self->cache, key, &entry, bytes)) return false;
  char *copy = host->alloc(host->ctx, *bytes + GPU_IMAGE_PAD, 64);
  if (copy != NULL) {
    memcpy(copy, entry, (size_t)*bytes);
    memset(copy + *bytes, 0, GPU_IMAGE_PAD);
  }
  host->free(host->ctx, entry);
  *image = copy;
  return copy != NULL;
}

/* From the cache where that is wanted, and *cached says whether it was. */
static heddle_status make_image(heddle_pdevice *dev, const char *what, const char *source, bool *cached, void **image,
                                uint64_t *bytes, heddle_error *err) {
  heddle_pinstance *self = dev->self;
  const bool wanted = *cached;
  const size_t length = strlen(source);
  const filecache_key key = key_of(dev, source);
  *cached = false;
  if (self->source_dir != NULL)
    filecache_source(self->host, self->source_dir, dev->vendor->name, key, "cu", &source, &length, 1);
  if (wanted && load_entry(self, key, image, bytes)) {
    *cached = true;
    return HEDDLE_OK;
  }
  heddle_status s = dev->vendor->compile(self, dev->info, what, source, image, bytes, err);
  if (s == HEDDLE_OK && self->cache_dir != NULL) filecache_store(&self->cache, key, *image, *bytes);
  return s;
}

heddle_status gpu_image_get(heddle_pdevice *dev, const char *what, const char *source, void **image, uint64_t *bytes,
                            heddle_error *err) {
  bool cached = true;
  return make_image(dev, what, source, &cached, image, bytes, err);
}

/* ---------------------------------------------------------------- sources */

/* A whole program, of host->alloc. Macros are lines: the compilers' own headers, which are read before, have names of the same
 * spelling. */
static heddle_status make_source(heddle_pdevice *dev, const k_code *code, const char *tail, char **out,
                                 heddle_error *err) {
  const char *name = k_kernels[code->kernel].text;
  const k_text *parts[3] = {k_text_find("prelude"), k_text_find("params"), k_text_find(name)};
  char macros[K_CODE_TEXT];
  k_code_text(code, true, macros);
  uint64_t bytes = strlen(tail) + strlen(macros) + 1;
  void *memory = NULL;
  for (int i = 0; i < 3; i++) {
    if (parts[i] == NULL)
      return p_fail(err, HEDDLE_EINTERNAL, 0, "%s:%u: there is no kernel text '%s'", dev->vendor->name, dev->index,
                    name);
    bytes += parts[i]->bytes;
  }
  heddle_status s = gpu_new(dev->host, bytes, "a program's source", &memory, err);
  if (s != HEDDLE_OK) return s;
  char *at = memory;
  at += sprintf(at, "%s", macros);
  for (int i = 0; i < 3; i++) {
    memcpy(at, parts[i]->text, (size_t)parts[i]->bytes);
    at += parts[i]->bytes;
  }
  memcpy(at, tail, strlen(tail) + 1);
  *out = memory;
  return HEDDLE_OK;
}

static heddle_status build_text(heddle_pdevice *dev, const k_code *code, const char *tail, void **module,
                                heddle_error *err) {
  const heddle_host *host = dev->host;
  char macros[K_CODE_TEXT], what[K_CODE_TEXT + 128];
  char *source = NULL;
  bool cached = true;
  void *image = NULL;
  uint64_t bytes = 0;
  k_code_text(code, false, macros);
  snprintf(what, sizeof what, "build kernel '%s' of '%s' with %s", k_kernels[code->kernel].name,
           k_kernels[code->kernel].text, macros);
  heddle_status s = make_source(dev, code, tail, &source, err);
  if (s != HEDDLE_OK) return s;
  s = make_image(dev, what, source, &cached, &image, &bytes, err);
  if (s == HEDDLE_OK) s = gpu_image_load(dev, what, image, module, err);
  if (cached && (s == HEDDLE_EFORMAT || s == HEDDLE_EUNSUPPORTED)) {
    host->log(host->ctx, HEDDLE_LOG_INFO, dev->vendor->name, "a cached program was refused by the driver; building it");
    host->free(host->ctx, image);
    image = NULL;
    cached = false;
    s = make_image(dev, what, source, &cached, &image, &bytes, err);
    if (s == HEDDLE_OK) s = gpu_image_load(dev, what, image, module, err);
  }
  host->free(host->ctx, image);
  host->free(host->ctx, source);
  return s;
}

static heddle_status build(heddle_pdevice *dev, const k_code *code, const heddle_chain *chain, void **module,
                           heddle_error *err) {
  char *tail = NULL;
  if (chain == NULL) return build_text(dev, code, "", module, err);
  heddle_status s = k_chain_text(dev->host, chain, &tail, err);
  if (s != HEDDLE_OK) return s;
  s = build_text(dev, code, tail, module, err);
  dev->host->free(dev->host->ctx, tail);
  return s;
}

/* ---------------------------------------------------------------- kept programs */

heddle_status gpu_program_get(heddle_pdevice *dev, const k_code *code, const heddle_chain *chain, void **module,
                              heddle_error *err) {
  heddle_status s = gpu_health(dev, err);
  void *memory = NULL;
  if (s != HEDDLE_OK) return s;
  pthread_mutex_lock(&dev->build_lock);
  for (gpu_program *p = dev->programs; p != NULL; p = p->next) {
    if (!k_code_same(&p->code, p->chain, code, chain)) continue;
    *module = p->module;
    pthread_mutex_unlock(&dev->build_lock);
    return HEDDLE_OK;
  }
  s = gpu_new(dev->host, sizeof(gpu_program) + (chain != NULL ? sizeof *chain : 0), "a program", &memory, err);
  if (s == HEDDLE_OK) {
    gpu_program *p = memory;
    s = build(dev, code, chain, &p->module, err);
    if (s == HEDDLE_OK) {
      p->code = *code;
      if (chain != NULL) p->chain = memcpy(p + 1, chain, sizeof *chain);
      p->next = dev->programs;
      dev->programs = p;
      *module = p->module;
    } else {
      dev->host->free(dev->host->ctx, p);
    }
  }
  pthread_mutex_unlock(&dev->build_lock);
  return s;
}

void gpu_programs_close(heddle_pdevice *dev) {
  while (dev->programs != NULL) {
    gpu_program *next = dev->programs->next;
    (void)dev->driver->module_unload(dev->programs->module); /* of a lost device it cannot, and none is left */
    dev->host->free(dev->host->ctx, dev->programs);
    dev->programs = next;
  }
}
