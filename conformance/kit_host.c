/* conformance/kit_host.c: the table of services that the kit gives a plugin, as heddle/plugin.h words it. Memory, fences
 * and threads are in files of their own; settings come from --set, from the variables that Heddle reads, and the folders
 * for caches have Heddle's defaults. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "conformance/kit_side.h"

uint64_t kit_now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

uint64_t kit_patience_ms(const kit *k, uint64_t ms) {
  return (uint64_t)((double)ms * k->side->patience);
}

void kit_sleep_ms(uint64_t ms) {
  struct timespec left = {(time_t)(ms / 1000), (long)(ms % 1000) * 1000000};
  while (nanosleep(&left, &left) != 0) continue;
}

/* ---- the log */

/* Notes a call that comes after all was closed. */
static kit *served(void *ctx, const char *function) {
  kit *k = ctx;
  if (atomic_load(&k->side->closed)) atomic_store(&k->side->late_call, function);
  return k;
}

static void host_log(void *ctx, int32_t level, const char *component, const char *text) {
  kit_side *side = ((kit *)ctx)->side;
  const char *part = "component", *fault = contract_text_fault(component, 64);
  if (fault == NULL) part = "text", fault = contract_text_fault(text, 1 << 16);
  if (fault == NULL && strchr(component, ' ') != NULL) part = "component", fault = "is no single word";
  if (fault == NULL && (level < HEDDLE_LOG_ERROR || level > HEDDLE_LOG_TRACE)) part = "level", fault = "is none";
  atomic_fetch_add(&side->log_lines, 1);
  pthread_mutex_lock(&side->log_lock);
  if (fault != NULL && side->log_fault[0] == '\0')
    snprintf(side->log_fault, sizeof side->log_fault, "the %s of a line to host.log %s", part, fault);
  if (fault == NULL && level <= HEDDLE_LOG_WARN && side->forced_key != NULL && strstr(text, side->forced_key) != NULL)
    side->warned = true;
  if (fault == NULL && level <= HEDDLE_LOG_WARN) fprintf(stderr, "%s: %s\n", component, text);
  pthread_mutex_unlock(&side->log_lock);
}

/* ---- settings */

static bool given(const kit_side *side, const char *full, const char **out) {
  bool found = false;
  size_t n = strlen(full);
  for (uint32_t i = 0; i < side->n_settings; i++) /* the last one wins */
    if (strncmp(side->settings[i], full, n) == 0 && side->settings[i][n] == '=') {
      *out = side->settings[i] + n + 1;
      found = true;
    }
  return found;
}

/* HEDDLE_SIM_DELAY_US of "sim.delay_us"; an empty variable is one that is not set. */
static bool variable(const char *full, const char **out) {
  char name[160] = "HEDDLE_";
  size_t n = strlen(name);
  for (const char *p = full; *p != '\0' && n < sizeof name - 1; p++)
    name[n++] = *p == '.' ? '_' : (char)toupper((unsigned char)*p);
  name[n] = '\0';
  *out = getenv(name);
  return *out != NULL && (*out)[0] != '\0';
}

static bool cache_folder(const char *plugin, char *out, size_t bytes) {
  const char *folder = getenv("XDG_CACHE_HOME"), *below = "";
  if (folder == NULL || folder[0] != '/') folder = getenv("HOME"), below = "/.cache";
  if (folder == NULL || folder[0] != '/') return false;
  int n = snprintf(out, bytes, "%s%s/heddle/%s", folder, below, plugin);
  return n > 0 && (size_t)n < bytes;
}

/* The hooks by which the kit loses a device, makes work fail and owns a stream to be adopted (docs/plugin-guide.md), set in
 * the cases that do. */
static bool hook(kit_side *side, const char *key, char *out, size_t bytes) {
  const struct {
    const char *key;
    uint32_t flag, value;
    atomic_bool *asked;
  } hooks[] = {{"lose_on_fill", KIT_LOSES, KIT_LOSE_WORD, &side->lose_asked},
               {"fail_on_fill", KIT_FAILS, KIT_FAIL_WORD, &side->fail_asked},
               {"adopt_own", KIT_ADOPTS, 1, &side->adopt_asked}};
  for (size_t i = 0; i < sizeof hooks / sizeof hooks[0]; i++) {
    if (strcmp(key, hooks[i].key) != 0) continue;
    if (side->running == NULL || (side->running->flags & hooks[i].flag) == 0) return false;
    snprintf(out, bytes, "%lu", (unsigned long)hooks[i].value);
    atomic_store(hooks[i].asked, true);
    return true;
  }
  return false;
}

static void note_asked(kit_side *side, const char *key) {
  pthread_mutex_lock(&side->log_lock);
  uint32_t i = 0;
  while (i < side->n_asked && strcmp(side->asked[i], key) != 0) i++;
  if (i == side->n_asked && i < KIT_ASKED && strlen(key) < sizeof side->asked[i])
    strcpy(side->asked[side->n_asked++], key);
  pthread_mutex_unlock(&side->log_lock);
}

static int64_t host_config(void *ctx, const char *key, char *buf, uint64_t bytes) {
  kit_side *side = ((kit *)ctx)->side;
  char full[128], folder[4096];
  const char *value = NULL;
  if (key == NULL || key[0] == '\0') return -1;
  int n = snprintf(full, sizeof full, "%s.%s", side->settings_of, key);
  if (n < 0 || (size_t)n >= sizeof full) return -1;
  note_asked(side, key);
  if (side->forced_key != NULL && strcmp(side->forced_key, key) == 0) {
    value = side->forced_value;
  } else if (hook(side, key, folder, sizeof folder)) {
    value = folder;
  } else if (!given(side, full, &value) && !variable(full, &value)) {
    if (strcmp(key, "cache_dir") != 0 || !cache_folder(side->settings_of, folder, sizeof folder)) return -1;
    value = folder;
  }
  size_t length = strlen(value);
  if (buf != NULL && bytes > 0) {
    size_t copied = length < bytes ? length : (size_t)bytes - 1;
    memcpy(buf, value, copied);
    buf[copied] = '\0';
  }
  return (int64_t)length;
}

/* ---- the rest */

static void *host_alloc(void *ctx, uint64_t bytes, uint64_t align) {
  return kit_heap_alloc(served(ctx, "alloc"), bytes, align);
}

static void host_free(void *ctx, void *p) {
  kit_heap_free(served(ctx, "free"), p);
}

static void host_fence_signal(void *ctx, heddle_pfence fence, uint64_t value) {
  kit_fences_signal(served(ctx, "fence_signal"), fence, value);
}

static void host_fence_fail(void *ctx, heddle_pfence fence, heddle_status status, const char *text) {
  kit_fences_fail(served(ctx, "fence_fail"), fence, status, text);
}

static heddle_status host_fence_query(void *ctx, heddle_pfence fence, uint64_t value) {
  return kit_fences_query(served(ctx, "fence_query"), fence, value);
}

static void host_device_fault(void *ctx, uint64_t cookie, int32_t api_code, const char *text) {
  kit *k = served(ctx, "device_fault");
  (void)api_code;
  atomic_store(&k->side->fault_cookie, cookie);
  atomic_fetch_add(&k->side->faults, 1);
  kit_text(k, text, sizeof k->err.text, "the text of host.device_fault");
}

static uint64_t host_now_ns(void *ctx) {
  struct timespec now;
  (void)ctx;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void host_trace_span(void *ctx, const char *track, const char *name, uint64_t t0_ns, uint64_t t1_ns) {
  kit *k = ctx;
  kit_text(k, track, 4096, "the track of host.trace_span");
  kit_text(k, name, 4096, "the name of host.trace_span");
  if (t1_ns < t0_ns) kit_fail(k, "host.trace_span was called with an end before its begin");
}

static void host_run_parallel(void *ctx, uint32_t n, uint32_t flags, heddle_task_fn task, void *arg,
                              uint32_t *granted) {
  (void)ctx;
  kit_run_parallel(n, flags, task, arg, granted);
}

static uint32_t host_parallelism(void *ctx) {
  (void)ctx;
  return kit_parallelism();
}

static heddle_status host_stop_requested(void *ctx) {
  (void)ctx;
  return HEDDLE_OK;
}

static int32_t host_log_level(void *ctx) {
  (void)ctx;
  return HEDDLE_LOG_TRACE;
}

uint64_t kit_fault_cookie(kit *k) {
  return atomic_load(&k->side->fault_cookie);
}

uint32_t kit_faults(kit *k) {
  return atomic_load(&k->side->faults);
}

/* What this process was built with: a plugin may ask, as of any host. */
#if defined(__has_feature)
#define BUILT_WITH(feature) __has_feature(feature)
#else
#define BUILT_WITH(feature) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || BUILT_WITH(address_sanitizer)
#define FEATURES HEDDLE_FEATURE_ASAN
#elif defined(__SANITIZE_THREAD__) || BUILT_WITH(thread_sanitizer)
#define FEATURES HEDDLE_FEATURE_TSAN
#else
#define FEATURES 0
#endif

bool kit_host_init(kit *k) {
  kit_side *side = k->side;
  k->host = (heddle_host){.struct_size = sizeof k->host,
                          .abi_major = HEDDLE_ABI_MAJOR,
                          .abi_minor = HEDDLE_ABI_MINOR,
                          .features = FEATURES,
                          .build = "heddle-check " HEDDLE_VERSION,
                          .ctx = k,
                          .log = host_log,
                          .alloc = host_alloc,
                          .free = host_free,
                          .config = host_config,
                          .fence_signal = host_fence_signal,
                          .fence_fail = host_fence_fail,
                          .fence_query = host_fence_query,
                          .device_fault = host_device_fault,
                          .now_ns = host_now_ns,
                          .trace_span = host_trace_span,
                          .run_parallel = host_run_parallel,
                          .parallelism = host_parallelism,
                          .stop_requested = host_stop_requested,
                          .log_level = host_log_level};
  return kit_heap_init(&side->heap) && kit_fences_init(&side->fences) && pthread_mutex_init(&side->log_lock, NULL) == 0;
}
