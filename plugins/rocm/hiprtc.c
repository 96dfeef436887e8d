/* HIP's compiler in a process of its own, heddle-hiprtc: it ends the process that it runs in when it is asked for an
 * architecture that it does not know, as hiprtc 5.2 does with gfx1100.
 *
 * Settings: hiprtc (the path of the library that is the compiler; off: there is none), hiprtc_helper (that of
 * heddle-hiprtc; else it is looked for from the plugin's own place), hiprtc_seconds (how long a compilation may take,
 * 120 where it is not given). */
#define _GNU_SOURCE /* dladdr */
#include "rocm.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

enum { LIMIT_SECONDS = 120, PATH_BYTES = 4096, MOST_LIBRARIES = 4 };

/* What heddle-hiprtc puts in front of its answer (hiprtc/helper.c). */
#define ANSWER "heddle-hiprtc "

/* ---------------------------------------------------------------- settings */

static heddle_status read_limit(const heddle_host *host, uint32_t *out, heddle_error *err) {
  char text[32], *end = text;
  *out = LIMIT_SECONDS;
  if (host->config(host->ctx, "hiprtc_seconds", text, sizeof text) <= 0) return HEDDLE_OK;
  const unsigned long value = strtoul(text, &end, 10);
  if (text[0] < '0' || text[0] > '9' || *end != '\0' || value < 1 || value > 86400)
    return p_fail(err, HEDDLE_EINVAL, 0, "rocm: setting hiprtc_seconds: '%s' is no number from 1 to 86400", text);
  *out = (uint32_t)value;
  return HEDDLE_OK;
}

/* The helper's place relative to this file: in a build tree and where it is installed. NULL: there is none. */
static heddle_status find_helper(const heddle_host *host, char **out, heddle_error *err) {
  static const char *const places[] = {HEDDLE_HIPRTC_INSTALLED, "../../../libexec/heddle/heddle-hiprtc"};
  Dl_info own;
  void *memory = NULL;
  *out = NULL;
  if (dladdr((const void *)(uintptr_t)&find_helper, &own) == 0 || own.dli_fname == NULL) return HEDDLE_OK;
  const char *slash = strrchr(own.dli_fname, '/');
  const int folder = slash != NULL ? (int)(slash - own.dli_fname) : 0;
  heddle_status s = gpu_new(host, PATH_BYTES, "the path of heddle-hiprtc", &memory, err);
  if (s != HEDDLE_OK) return s;
  for (size_t i = 0; i < sizeof places / sizeof places[0] && *out == NULL; i++) {
    const int length = snprintf(memory, PATH_BYTES, "%.*s/%s", folder, folder > 0 ? own.dli_fname : ".", places[i]);
    if (length > 0 && length < PATH_BYTES && access(memory, X_OK) == 0) *out = memory;
  }
  if (*out == NULL) host->free(host->ctx, memory);
  return HEDDLE_OK;
}

heddle_status rocm_hiprtc_open(heddle_pinstance *self, heddle_error *err) {
  const heddle_host *host = self->host;
  rocm_own *own = rocm_of(self);
  bool off = false;
  heddle_status s = read_limit(host, &own->limit_seconds, err);
  if (s == HEDDLE_OK) s = gpu_setting_path(self, "hiprtc", &own->hiprtc, &off, err);
  if (s == HEDDLE_OK) s = gpu_setting_path(self, "hiprtc_helper", &own->helper, NULL, err);
  if (s != HEDDLE_OK) return s;
  own->compiles = !off;
  if (own->helper == NULL) return find_helper(host, &own->helper, err);
  if (access(own->helper, X_OK) == 0) return HEDDLE_OK;
  return p_fail(err, HEDDLE_EINVAL, 0, "rocm: setting hiprtc_helper: there is no program '%.200s'", own->helper);
}

void rocm_hiprtc_close(heddle_pinstance *self) {
  rocm_own *own = rocm_of(self);
  self->host->free(self->host->ctx, own->helper);
  self->host->free(self->host->ctx, own->hiprtc);
}

/* ---------------------------------------------------------------- the helper's words */

/* Names of libraries that may be the compiler, best first, into room; out gets n of them. With HIP 6 it is a library
 * of its own beside HIP's; HIP 5 has it inside, too. A compiler of another version is not taken: HIP may not load
 * its code. */
static uint32_t candidates(const heddle_pinstance *self, char room[2][PATH_BYTES], const char **out) {
  const rocm_own *own = rocm_of(self);
  const int major = self->driver_version / 10000000;
  int (*symbol)(unsigned) = self->driver.init;
  void *address = NULL;
  Dl_info hip;
  uint32_t n = 0;
  if (own->hiprtc != NULL) {
    out[n++] = own->hiprtc;
    return n;
  }
  memcpy(&address, &symbol, sizeof address);
  if (dladdr(address, &hip) != 0 && hip.dli_fname != NULL) {
    const char *slash = strrchr(hip.dli_fname, '/');
    if (slash != NULL && snprintf(room[0], PATH_BYTES, "%.*s/libhiprtc.so.%d", (int)(slash - hip.dli_fname),
                                  hip.dli_fname, major) < PATH_BYTES)
      out[n++] = room[0];
    out[n++] = hip.dli_fname;
  }
  snprintf(room[1], PATH_BYTES, "libhiprtc.so.%d", major);
  out[n++] = room[1];
  return n;
}

/* An answer: its verdict ("code", "log", "missing", "version"), the compiler's words and the bytes that come with
 * it. */
typedef struct answer {
  char verdict[16], compiler[112];
  const char *bytes;
  uint64_t count;
} answer;

/* Reads "heddle-hiprtc VERDICT COUNT COMPILER\n" and the bytes behind it. False where that is not whole. */
static bool read_answer(const rocm_child *child, answer *out) {
  const char *text = child->output, *line = text != NULL ? memchr(text, '\n', child->output_bytes) : NULL;
  char *end = NULL;
  int at = 0;
  if (line == NULL || strncmp(text, ANSWER, sizeof ANSWER - 1) != 0) return false;
  if (sscanf(text + sizeof ANSWER - 1, "%15s %n", out->verdict, &at) != 1 || at == 0) return false;
  const char *count = text + sizeof ANSWER - 1 + at;
  out->count = strtoull(count, &end, 10);
  if (end == count || end > line) return false;
  const char *words = end < line ? end + 1 : line;
  snprintf(out->compiler, sizeof out->compiler, "%.*s", (int)(line - words), words);
  out->bytes = line + 1;
  return child->output_bytes - (uint64_t)(out->bytes - text) == out->count;
}

/* Runs the helper with "version", or "compile" with options and a source. child->output is the caller's to free
 * where it ran. */
static heddle_status ask(heddle_pinstance *self, const char *verb, const char *const *options, const char *source,
                         rocm_child *child, heddle_error *err) {
  const rocm_own *own = rocm_of(self);
  const char *libraries[MOST_LIBRARIES], *words[24];
  void *memory = NULL;
  uint32_t n = 0;
  if (!own->compiles)
    return p_fail(err, HEDDLE_EUNSUPPORTED, 0, "hiprtc, which compiles the kernels, is switched off (setting hiprtc)");
  if (own->helper == NULL)
    return p_fail(
        err, HEDDLE_EUNSUPPORTED, 0,
        "there is no heddle-hiprtc, which compiles the kernels, where the plugin looks for it (libexec/heddle "
        "of its installation): install it there or name it by the setting hiprtc_helper");
  heddle_status s = gpu_new(self->host, (uint64_t)2 * PATH_BYTES, "names of libraries", &memory, err);
  if (s != HEDDLE_OK) return s;
  char(*room)[PATH_BYTES] = memory;
  const uint32_t n_libraries = candidates(self, room, libraries);
  words[n++] = own->helper;
  words[n++] = verb;
  for (uint32_t i = 0; i < n_libraries; i++) words[n++] = libraries[i];
  words[n++] = "--";
  for (uint32_t i = 0; options != NULL && options[i] != NULL && n < 23; i++) words[n++] = options[i];
  words[n] = NULL;
  *child = (rocm_child){.host = self->host,
                        .words = words,
                        .input = source,
                        .input_bytes = source != NULL ? strlen(source) : 0,
                        .limit_seconds = own->limit_seconds};
  s = rocm_child_run(child, err);
  child->words = NULL;
  self->host->free(self->host->ctx, memory);
  return s;
}

/* The helper gave no answer: why. arch: what it was to compile for. */
static heddle_status no_answer(const rocm_own *own, rocm_child *child, const char *arch, heddle_error *err) {
  p_one_line(child->complaint);
  const char *said = child->complaint[0] != '\0' ? ": " : "";
  if (child->late)
    return p_fail(err, HEDDLE_ECOMPILE, 0, "hiprtc did not end within %u s (setting hiprtc_seconds)",
                  own->limit_seconds);
  if (child->ended_by != 0)
    return p_fail(
        err, HEDDLE_ECOMPILE, child->ended_by,
        "hiprtc crashed with signal %d (%s): most likely this version of it does not know %s, and that of a newer "
        "ROCm does%s%s",
        child->ended_by, strsignal(child->ended_by), arch, said, child->complaint);
  return p_fail(err, HEDDLE_ECOMPILE, child->status, "hiprtc ended without an answer (exit status %d)%s%s",
                child->status, said, child->complaint);
}

static heddle_status no_compiler(const answer *got, heddle_error *err) {
  return p_fail(err, HEDDLE_EUNSUPPORTED, 0,
                "there is no hiprtc, which compiles the kernels; install it, or give its path as rocm.hiprtc "
                "(HEDDLE_ROCM_HIPRTC): %.*s",
                (int)(got->count < 1024 ? got->count : 1024), got->bytes);
}

/* ---------------------------------------------------------------- gpu_vendor */

/* The image that the helper answered with; child->output then is the image. */
static heddle_status take_image(heddle_pinstance *self, const gpu_info *info, rocm_child *child, uint64_t *bytes,
                                heddle_error *err) {
  answer got;
  if (!read_answer(child, &got)) return no_answer(rocm_of(self), child, info->arch, err);
  if (strcmp(got.verdict, "missing") == 0) return no_compiler(&got, err);
  if (strcmp(got.verdict, "code") != 0 || got.count == 0)
    return p_fail(err, HEDDLE_ECOMPILE, 0, "%s for %s: %.*s", got.compiler, info->arch,
                  (int)(got.count < 4096 ? got.count : 4096), got.bytes);
  memmove(child->output, got.bytes, got.count);
  child->output[got.count] = '\0';
  *bytes = got.count;
  return HEDDLE_OK;
}

heddle_status rocm_compile(heddle_pinstance *self, const gpu_info *info, const char *what, const char *source,
                           void **image, uint64_t *bytes, heddle_error *err) {
  char arch[sizeof info->arch + 24];
  const char *const options[] = {arch, "-ffp-contract=on", NULL};
  rocm_child child = {.output = NULL};
  snprintf(arch, sizeof arch, "--offload-arch=%s", info->arch);
  heddle_status s = ask(self, "compile", options, source, &child, err);
  if (s == HEDDLE_OK) s = take_image(self, info, &child, bytes, err);
  if (s == HEDDLE_OK) {
    *image = child.output;
    return HEDDLE_OK;
  }
  self->host->free(self->host->ctx, child.output);
  p_prefix(err, "rocm:%u: %s: ", info->index, what);
  return s;
}

/* Asks the helper once. Inside own->lock. */
static void ask_version(heddle_pinstance *self) {
  rocm_own *own = rocm_of(self);
  rocm_child child;
  answer got;
  heddle_error err;
  if (own->asked) return;
  own->asked = true;
  err.text[0] = '\0';
  if (ask(self, "version", NULL, NULL, &child, &err) == HEDDLE_OK) {
    if (!read_answer(&child, &got)) no_answer(own, &child, "the device", &err);
    else if (strcmp(got.verdict, "version") == 0) snprintf(own->words, sizeof own->words, "%s", got.compiler);
    else no_compiler(&got, &err);
    self->host->free(self->host->ctx, child.output);
  }
  snprintf(own->why, sizeof own->why, "%.399s", err.text);
}

void rocm_compiler_words(heddle_pinstance *self, char *buf, size_t bytes) {
  rocm_own *own = rocm_of(self);
  pthread_mutex_lock(&own->lock);
  ask_version(self);
  snprintf(buf, bytes, "%s", own->words);
  pthread_mutex_unlock(&own->lock);
}

heddle_status rocm_can_compile(heddle_pinstance *self, const gpu_info *info, heddle_error *err) {
  rocm_own *own = rocm_of(self);
  heddle_status s = HEDDLE_OK;
  pthread_mutex_lock(&own->lock);
  ask_version(self);
  if (own->words[0] == '\0') s = p_fail(err, HEDDLE_EUNSUPPORTED, 0, "rocm:%u: %s", info->index, own->why);
  pthread_mutex_unlock(&own->lock);
  return s;
}
