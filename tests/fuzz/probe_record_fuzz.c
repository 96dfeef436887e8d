/* Any bytes as the record of a plugin's try: no crash, no leak; what counts has a state, and is read again after it was
 * written anew, as happens where a driver has changed. */
#include "core/probe/probe.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/cache_folder.h"
#include "core/registry.h"
#include "core/probe/file.h"

static heddle_status file_read(const char *path, bool ours, size_t limit, char **text, size_t *bytes,
                               heddle_error *err);
static heddle_status file_write(const char *folder, const char *name, uint64_t limit, const char *text,
                                heddle_error *err);
static heddle_status number(heddle_context *ctx, const char *key, int64_t fallback, int64_t min, int64_t max,
                            int64_t *out, heddle_error *err);
static void probe_say(const heddle__plugin *plugin, int32_t level, const char *format, ...);
static bool setting(const heddle__config *config, const char *key, const char **value, const char **origin);

#define heddle__probe_file_read file_read
#define heddle__probe_file_write file_write
#define heddle__probe_say probe_say
#define heddle__config_get setting
#define heddle__context_number number
/* The file is the fuzzer's bytes, and Heddle and the system those of the seeds. */
#define heddle_version() "0"
#include "core/probe/record.c"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *input;
static size_t input_bytes;
static char *written;

static heddle_status file_read(const char *path, bool ours, size_t limit, char **text, size_t *bytes,
                               heddle_error *err) {
  (void)path, (void)err;
  if (!ours || limit != MOST_BYTES) abort();
  if (input_bytes > limit) return HEDDLE_ELIMIT;
  *text = malloc(input_bytes + 1);
  if (*text == NULL) return HEDDLE_ENOMEM;
  memcpy(*text, input, input_bytes);
  (*text)[input_bytes] = '\0';
  *bytes = input_bytes;
  return HEDDLE_OK;
}

static heddle_status file_write(const char *folder, const char *name, uint64_t limit, const char *text,
                                heddle_error *err) {
  (void)folder, (void)name, (void)limit, (void)err;
  free(written);
  written = strdup(text);
  if (written == NULL) abort();
  return HEDDLE_OK;
}

static void probe_say(const heddle__plugin *plugin, int32_t level, const char *format, ...) {
  (void)plugin, (void)level, (void)format;
}

static bool setting(const heddle__config *config, const char *key, const char **value, const char **origin) {
  (void)config, (void)key, (void)origin;
  *value = "/f";
  return true;
}

static heddle_status number(heddle_context *ctx, const char *key, int64_t fallback, int64_t min, int64_t max,
                            int64_t *out, heddle_error *err) {
  (void)ctx, (void)key, (void)min, (void)max, (void)err;
  *out = fallback;
  return HEDDLE_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static char real[] = "/p.so";
  static heddle_context ctx;
  heddle__plugin p = {.ctx = &ctx, .path = real, .real = real, .size = 5, .mtime_ns = 7};
  system_text();
  strcpy(system_words, "s");
  input = size > 0 ? (const char *)data : "";
  input_bytes = size;
  heddle__finding what, again;
  json_t *root = heddle__record_read(&p, &what);
  if (root == NULL) return 0;
  if (what.state == NULL || what.reason == NULL) abort();
  heddle__record_write(&p, &what, json_object_get(root, "drivers"), json_object_get(root, "files"));
  if (written == NULL) abort();
  input = written;
  input_bytes = strlen(written);
  json_decref(root);
  root = input_bytes <= MOST_BYTES ? heddle__record_read(&p, &again) : NULL;
  if (root == NULL && input_bytes <= MOST_BYTES) abort();
  if (root != NULL && memcmp(&again.limits, &what.limits, sizeof what.limits) != 0) abort();
  json_decref(root);
  free(written);
  written = NULL;
  return 0;
}
