/* Opening the vendor's libraries: their settings, which files are tried, and what is missing, which is a warning and part of
 * a device's description, since kernels of ours are slower. */
#include "plugins/common/gpu/library_state.h"
#include "plugins/common/setting.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

void gpu_library_say(const heddle_pinstance *self, int32_t level, const char *format, ...) {
  char words[512];
  va_list args;
  va_start(args, format);
  vsnprintf(words, sizeof words, format, args);
  va_end(args);
  p_one_line(words);
  self->host->log(self->host->ctx, level, self->vendor->name, words);
}

/* ---------------------------------------------------------------- opening */

/* Every function that must be there, or its name in why. */
static bool resolve(const gpu_library *library, void *handle, void *calls, char *why, size_t bytes) {
  for (uint32_t i = 0; i < library->n_symbols; i++) {
    const gpu_symbol *symbol = &library->symbols[i];
    void *address = dlsym(handle, symbol->name);
    if (address == NULL && !symbol->may) {
      snprintf(why, bytes, "it lacks %s", symbol->name);
      return false;
    }
    memcpy((char *)calls + symbol->at, &address, sizeof address);
  }
  return true;
}

/* A driver runs code of its own major version and of older ones; what was made for a newer one fails at its first call. */
static bool fits_driver(const heddle_pinstance *self, const gpu_library *library, const void *calls, char *why,
                        size_t bytes) {
  const int needs = library->made_for != NULL ? library->made_for(calls) : 0, have = self->driver_version / 1000;
  if (needs <= have) return true;
  snprintf(why, bytes, "it is made for CUDA %d, and the driver is of CUDA %d.%d", needs, have,
           self->driver_version % 1000 / 10);
  return false;
}

/* Opens one file and fills calls from it; *there: there is such a file. */
static bool try_file(const heddle_pinstance *self, const gpu_library *library, const char *file, void *calls,
                     bool *there, char *why, size_t bytes) {
  void *handle = dlopen(file, RTLD_LAZY | RTLD_LOCAL);
  *there = handle != NULL;
  if (handle == NULL) {
    const char *said = dlerror();
    snprintf(why, bytes, "%s", said != NULL ? said : file);
    return false;
  }
  char reason[192] = "";
  if (resolve(library, handle, calls, reason, sizeof reason) &&
      fits_driver(self, library, calls, reason, sizeof reason))
    return true; /* and stays open: libraries leave threads behind */
  snprintf(why, bytes, "%s: %s", file, reason);
  return false;
}

/* The first file that will do, in calls. why: of the first file that is there, else of the first that was looked for. */
static const char *open_file(const heddle_pinstance *self, const gpu_library *library, const char *path, void *calls,
                             char *why, size_t bytes) {
  bool there = false, any = false;
  if (path[0] != '\0') return try_file(self, library, path, calls, &there, why, bytes) ? path : NULL;
  for (int i = 0; library->files[i] != NULL; i++) {
    char reason[256];
    if (try_file(self, library, library->files[i], calls, &there, reason, sizeof reason)) return library->files[i];
    if (i == 0 || (there && !any)) snprintf(why, bytes, "%s", reason);
    any = any || there;
  }
  return NULL;
}

/* Once: kernels of ours compute the same, several times slower where it matters. */
static void say_missing(const heddle_pinstance *self, const gpu_library *library, gpu_opened *o, const char *why) {
  if (o->absent) return;
  o->absent = true;
  gpu_library_say(self, HEDDLE_LOG_WARN, "there is no %s (%s): %s are by kernels, which are slower", library->name, why,
                  library->what);
}

/* A failure is a warning in the log, unless it is insisted on. */
static heddle_status open_one(heddle_pinstance *self, int i, bool insist, heddle_error *err) {
  const gpu_library *library = gpu_library_at(self, i);
  gpu_opened *o = &self->libraries->each[i];
  char why[256], version[64] = "";
  void *calls = NULL;
  if (o->off) return HEDDLE_OK;
  if (library->files == NULL) return gpu_new(self->host, sizeof(void *), library->name, &o->calls, err);
  heddle_status s = gpu_new(self->host, library->calls_bytes, library->name, &calls, err);
  if (s != HEDDLE_OK) return s;
  const char *file = open_file(self, library, o->path, calls, why, sizeof why);
  if (file != NULL) {
    library->version(calls, version, sizeof version);
    gpu_library_say(self, HEDDLE_LOG_INFO, "%s%s%s (%s) is there for %s", library->name, version[0] != '\0' ? " " : "",
                    version, file, library->what);
    o->calls = calls;
    return HEDDLE_OK;
  }
  self->host->free(self->host->ctx, calls);
  if (insist || o->path[0] != '\0')
    return p_fail(err, HEDDLE_ENODEV, 0, "%s: %s cannot be loaded, and the setting %s wants it: %s", self->vendor->name,
                  library->name, o->path[0] != '\0' ? library->setting : "libraries=1", why);
  say_missing(self, library, o, why);
  return HEDDLE_OK;
}

heddle_status gpu_library_open_all(heddle_pinstance *self, bool insist, heddle_error *err) {
  gpu_libraries *all = self->libraries;
  heddle_status s = HEDDLE_OK;
  for (int i = 0; i < GPU_LIBRARIES && gpu_library_at(self, i) != NULL && s == HEDDLE_OK; i++)
    s = open_one(self, i, insist, err);
  all->tried = true;
  return s;
}

/* ---------------------------------------------------------------- looking */

/* Does a folder of the list (colons between) have the file? */
static bool in_folders(const char *folders, const char *file) {
  char path[4096];
  while (folders != NULL && *folders != '\0') {
    const size_t length = strcspn(folders, ":");
    const int n = snprintf(path, sizeof path, "%.*s/%s", (int)length, folders, file);
    if (length > 0 && n < (int)sizeof path && access(path, F_OK) == 0) return true;
    folders += length + (folders[length] == ':');
  }
  return false;
}

/* The loader's cache has each library's name as text between zeros. */
static bool in_cache(const char *file) {
  char part[4096 + 256];
  const size_t bytes = strlen(file) + 1;
  size_t kept = 0, got = 0;
  bool found = false;
  FILE *f = fopen("/etc/ld.so.cache", "rbe");
  if (f == NULL) return false;
  while (!found && (got = fread(part + kept, 1, 4096, f)) > 0) {
    const size_t have = kept + got;
    for (size_t i = 1; i + bytes <= have && !found; i++)
      found = part[i - 1] == '\0' && memcmp(part + i, file, bytes) == 0;
    kept = have < bytes + 1 ? have : bytes + 1;
    memmove(part, part + have - kept, kept);
  }
  fclose(f);
  return found;
}

/* Whether the loader would find it: opening it to find out costs more than listing devices may. */
static bool is_installed(const char *file) {
  static const char usual[] = "/lib:/usr/lib:/lib64:/usr/lib64:/usr/local/lib";
  void *handle = dlopen(file, RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD);
  if (handle != NULL) dlclose(handle);
  return handle != NULL || in_folders(getenv("LD_LIBRARY_PATH"), file) || in_cache(file) || in_folders(usual, file);
}

static void look_for_files(heddle_pinstance *self) {
  for (int i = 0; gpu_library_at(self, i) != NULL; i++) {
    const gpu_library *library = gpu_library_at(self, i);
    gpu_opened *o = &self->libraries->each[i];
    bool there = o->off || library->files == NULL;
    for (int k = 0; !there && library->files[k] != NULL; k++) there = is_installed(library->files[k]);
    if (!there) say_missing(self, library, o, "no file of it is installed");
  }
}

void gpu_library_words(const heddle_pinstance *self, char *buf, size_t bytes) {
  size_t used = 0;
  buf[0] = '\0';
  for (int i = 0; self->libraries != NULL && gpu_library_at(self, i) != NULL && used < bytes; i++) {
    const gpu_opened *o = &self->libraries->each[i];
    if (o->off || gpu_library_at(self, i)->files == NULL) continue;
    used += (size_t)snprintf(buf + used, bytes - used, ", %s%s", o->absent ? "no " : "", gpu_library_at(self, i)->name);
  }
}

/* ---------------------------------------------------------------- settings */

/* A setting's text; false where it is not set. Too long a one is an error. */
static heddle_status setting(const heddle_pinstance *self, const char *key, char *buf, uint64_t bytes, bool *given,
                             heddle_error *err) {
  const int64_t length = self->host->config(self->host->ctx, key, buf, bytes);
  *given = length >= 0;
  if (length >= (int64_t)bytes)
    return p_fail(err, HEDDLE_EINVAL, 0, "%s: setting %s has more than %llu bytes", self->vendor->name, key,
                  (unsigned long long)(bytes - 1));
  if (!*given) buf[0] = '\0';
  return HEDDLE_OK;
}

static heddle_status read_settings(heddle_pinstance *self, bool automatic, bool wanted, bool *named,
                                   heddle_error *err) {
  gpu_libraries *all = self->libraries;
  heddle_status s = HEDDLE_OK;
  bool given = false;
  for (int i = 0; i < GPU_LIBRARIES && gpu_library_at(self, i) != NULL && s == HEDDLE_OK; i++) {
    const gpu_library *library = gpu_library_at(self, i);
    gpu_opened *o = &all->each[i];
    s = setting(self, library->setting, o->path, sizeof o->path, &given, err);
    o->off = s == HEDDLE_OK && given && (o->path[0] == '\0' || p_is_off(o->path));
    if (o->off) o->path[0] = '\0';
    if (library->files == NULL) { /* of ours: a switch */
      bool on = true;
      if (s == HEDDLE_OK && o->path[0] != '\0' && !p_switch(o->path, &on))
        s = p_fail(err, HEDDLE_EINVAL, 0, "%s: setting %s: '%.200s' is neither 0 nor 1", self->vendor->name,
                   library->setting, o->path);
      continue;
    }
    if (o->path[0] == '\0' && automatic && self->driver_path != NULL) o->off = true;
    o->off = o->off || !wanted;
    *named = *named || (!o->off && o->path[0] != '\0');
  }
  return s;
}

heddle_status gpu_library_open(heddle_pinstance *self, heddle_error *err) {
  char text[16] = "";
  void *memory = NULL;
  bool given = false, wanted = true, named = false;
  if (self->vendor->library == NULL) return HEDDLE_OK;
  heddle_status s = setting(self, "libraries", text, sizeof text, &given, err);
  if (s != HEDDLE_OK) return s;
  const bool automatic = !given || strcmp(text, "auto") == 0;
  if (!automatic && !p_switch(text, &wanted))
    return p_fail(err, HEDDLE_EINVAL, 0, "%s: setting libraries: '%s' is none of 0, 1 and auto", self->vendor->name,
                  text);
  s = gpu_new(self->host, sizeof(gpu_libraries), "libraries", &memory, err);
  if (s != HEDDLE_OK) return s;
  self->libraries = memory;
  pthread_mutex_init(&self->libraries->lock, NULL);
  s = read_settings(self, automatic, wanted, &named, err);
  /* Those that are named or insisted on must be there, so that a wrong path is reported at once. */
  if (s == HEDDLE_OK && (!automatic || named)) s = gpu_library_open_all(self, !automatic && wanted, err);
  else if (s == HEDDLE_OK) look_for_files(self);
  if (s != HEDDLE_OK) gpu_library_close(self);
  return s;
}

void gpu_library_close(heddle_pinstance *self) {
  gpu_libraries *all = self->libraries;
  if (all == NULL) return;
  for (int i = 0; i < GPU_LIBRARIES; i++) self->host->free(self->host->ctx, all->each[i].calls);
  pthread_mutex_destroy(&all->lock);
  self->host->free(self->host->ctx, all);
  self->libraries = NULL;
}
