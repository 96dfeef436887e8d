/* Programs: kernel texts are compiled here by the vendor's compiler, kept on disk by driver, compiler, architecture and
 * source, loaded, and kept for as long as their device is open. With them goes what loads any image, with the driver's
 * log. */
#include "gpu.h"

#include "plugins/common/gpu/image.h"
#include "plugins/common/gpu/ops.h"
#include "plugins/common/kernels/program.h"

typedef struct gpu_program {
  k_program head;
  void *module;
} gpu_program;

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

/* ---------------------------------------------------------------- programs */

/* A whole source, of host->alloc. Macros are lines: the compilers' own headers, which are read before, have names of the same
 * spelling. */
static heddle_status write_source(heddle_pdevice *dev, const k_source *source, char **out, heddle_error *err) {
  char macros[K_CODE_TEXT];
  k_code_text(source->code, true, macros);
  uint64_t bytes = strlen(macros) + 1;
  void *memory = NULL;
  for (int i = 0; i < K_PARTS; i++) bytes += source->lengths[i];
  heddle_status s = gpu_new(dev->host, bytes, "a program's source", &memory, err);
  if (s != HEDDLE_OK) return s;
  char *at = memory;
  at += sprintf(at, "%s", macros);
  for (int i = 0; i < K_PARTS; i++) {
    memcpy(at, source->parts[i], source->lengths[i]);
    at += source->lengths[i];
  }
  *at = '\0';
  *out = memory;
  return HEDDLE_OK;
}

static heddle_status build(void *ctx, const k_source *source, k_program *out, heddle_error *err) {
  heddle_pdevice *dev = ctx;
  const heddle_host *host = dev->host;
  void **module = &((gpu_program *)out)->module;
  char *text = NULL;
  bool cached = true;
  void *image = NULL;
  uint64_t bytes = 0;
  heddle_status s = write_source(dev, source, &text, err);
  if (s != HEDDLE_OK) return s;
  s = make_image(dev, source->what, text, &cached, &image, &bytes, err);
  if (s == HEDDLE_OK) s = gpu_image_load(dev, source->what, image, module, err);
  if (cached && (s == HEDDLE_EFORMAT || s == HEDDLE_EUNSUPPORTED)) {
    host->log(host->ctx, HEDDLE_LOG_INFO, dev->vendor->name, "a cached program was refused by the driver; building it");
    host->free(host->ctx, image);
    image = NULL;
    cached = false;
    s = make_image(dev, source->what, text, &cached, &image, &bytes, err);
    if (s == HEDDLE_OK) s = gpu_image_load(dev, source->what, image, module, err);
  }
  host->free(host->ctx, image);
  host->free(host->ctx, text);
  return s;
}

heddle_status gpu_program_get(heddle_pdevice *dev, const k_code *code, const struct heddle_chain *chain, void **module,
                              heddle_error *err) {
  const k_programs programs = {.site = gpu_site(dev->self, dev->info),
                               .lock = &dev->build_lock,
                               .list = &dev->programs,
                               .bytes = sizeof(gpu_program),
                               .build = build,
                               .dev = dev};
  k_program *found = NULL;
  heddle_status s = gpu_health(dev, err);
  if (s == HEDDLE_OK) s = k_program_get(&programs, code, chain, &found, err);
  if (s == HEDDLE_OK) *module = ((gpu_program *)found)->module;
  return s;
}

void gpu_programs_close(heddle_pdevice *dev) {
  while (dev->programs != NULL) {
    gpu_program *p = (gpu_program *)dev->programs;
    dev->programs = p->head.next;
    (void)dev->driver->module_unload(p->module); /* of a lost device it cannot, and none is left */
    dev->host->free(dev->host->ctx, p);
  }
}
