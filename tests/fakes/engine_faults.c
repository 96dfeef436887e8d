/* The settings FAKE_GPU_*, calls that are counted and made to fail, faults that are ordered, and misuse. What was seen
 * is reported in engine_report.c. */
#include "engine_inside.h"
#include "engine_report.h"

#include <stdarg.h>
#include <stdio.h>

#define RULES 32

/* "NAME:N", "NAME:N+" (from then on) or "NAME:*", with ":CODE". */
typedef struct rule {
  char name[64];
  int n, code;
  bool on;
} rule;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static eng_settings settings;
static rule fail_rules[RULES], fault_rules[RULES], hang_rules[RULES];
static size_t n_fail, n_fault, n_hang;
static atomic_bool initialized;
static atomic_int all_calls;

static struct {
  const char *kind;
  atomic_int count;
} begun[] = {{"launch", 0}, {"copy", 0}, {"fill", 0}, {"host", 0}, {"write", 0}};

_Thread_local bool eng_in_host_function;
eng_tally eng_seen;

/* ---------------------------------------------------------------- settings */

static long number_of(const char *name, long other) {
  const char *text = getenv(name);
  return text != NULL && *text != '\0' ? strtol(text, NULL, 0) : other;
}

static size_t bytes_of(const char *name, size_t other) {
  const char *text = getenv(name);
  char *end = NULL;
  if (text == NULL || *text == '\0') return other;
  const unsigned long long n = strtoull(text, &end, 0);
  const int shift = *end == 'K' ? 10 : *end == 'M' ? 20 : *end == 'G' ? 30 : 0;
  return (size_t)(n << shift);
}

static size_t read_rules(const char *name, rule *rules, int code) {
  const char *at = getenv(name);
  size_t n = 0;
  while (at != NULL && *at != '\0' && n < RULES) {
    char count[16] = "";
    rule *r = &rules[n];
    *r = (rule){.code = code};
    if (sscanf(at, "%63[^:,]:%15[^:,]:%d", r->name, count, &r->code) < 2) {
      fprintf(stderr, "fake gpu: %s=%s is not NAME:N[:CODE],...\n", name, getenv(name));
      abort(); /* a test that orders nonsense would pass for the wrong reason */
    }
    r->on = strchr(count, '+') != NULL || count[0] == '*';
    r->n = count[0] == '*' ? 1 : atoi(count);
    n++;
    at = strchr(at, ',');
    if (at != NULL) at++;
  }
  return n;
}

static void at_exit(void);
static void read_settings(void) {
  const char *arch = getenv("FAKE_GPU_ARCH"), *own = eng_flavour_own.arch;
  const long devices = number_of("FAKE_GPU_DEVICES", 2);
  settings = (eng_settings){
      .devices = devices < 0             ? 0
                 : devices > ENG_DEVICES ? ENG_DEVICES
                                         : (int)devices,
      .init_code = (int)number_of("FAKE_GPU_INIT", 0),
      .memory = bytes_of("FAKE_GPU_MEMORY", (size_t)4 << 30),
      .pools = number_of("FAKE_GPU_POOLS", 1) != 0,
      .kernels = number_of("FAKE_GPU_NO_KERNELS", 0) == 0,
      .mig = number_of("FAKE_GPU_MIG", 0) != 0,
      .fragments = number_of("FAKE_GPU_FRAGMENTS", 0) != 0,
      .lazy = number_of("FAKE_GPU_LAZY", 0) != 0,
      .register_us = (unsigned)number_of("FAKE_GPU_REGISTER_DELAY", 0),
      .host_us = (unsigned)number_of("FAKE_GPU_HOST_DELAY", 0),
      .register_most = bytes_of("FAKE_GPU_REGISTER", SIZE_MAX),
      .strict = (int)number_of("FAKE_GPU_STRICT", 0),
      .delay_us = (unsigned)number_of("FAKE_GPU_DELAY", 0),
      .kernel_library = getenv("FAKE_GPU_KERNELS"),
      .report = getenv("FAKE_GPU_REPORT"),
  };
  snprintf(settings.arch, sizeof settings.arch, "%s", arch != NULL && *arch != '\0' ? arch : own != NULL ? own : "");
  n_fail = read_rules("FAKE_GPU_FAIL", fail_rules, ENG_UNKNOWN);
  n_fault = read_rules("FAKE_GPU_FAULT", fault_rules, ENG_ILLEGAL_ADDRESS);
  n_hang = read_rules("FAKE_GPU_HANG", hang_rules, 0);
  settings.orders = n_fault + n_hang > 0;
  if (own != NULL) atexit(at_exit);
}

const eng_settings *eng_setting(void) {
  pthread_once(&once, read_settings);
  return &settings;
}

static void at_exit(void) {
  eng_report_at_exit(&settings);
}

/* ---------------------------------------------------------------- calls */

/* "cuMemAlloc" is "cuMemAlloc_v2" too. */
static bool same_call(const char *rule_name, const char *name) {
  const size_t n = strlen(rule_name);
  if (strncmp(rule_name, name, n) != 0) return false;
  return name[n] == '\0' || (strncmp(name + n, "_v", 2) == 0 && strlen(name + n) == 3);
}

static bool hits(const rule *r, int count) {
  return r->on ? count >= r->n : count == r->n;
}

int eng_call_enter(eng_call *call, bool needs_init) {
  eng_setting();
  const int count = atomic_fetch_add(&call->count, 1) + 1, all = atomic_fetch_add(&all_calls, 1) + 1;
  if (count == 1) {
    eng_enter();
    if (!call->known) {
      call->known = true;
      call->next = eng_seen.calls;
      eng_seen.calls = call;
    }
    eng_leave();
  }
  for (size_t i = 0; i < n_fail; i++) {
    const rule *r = &fail_rules[i];
    if (same_call(r->name, call->name) && hits(r, count)) return r->code;
    if (eng_flavour_own.arch != NULL && strcmp(r->name, "any") == 0 && hits(r, all)) return r->code;
  }
  if (!needs_init) return ENG_OK;
  if (eng_in_host_function) {
    eng_misuse("%s is called by a host function", call->name);
    return ENG_NOT_PERMITTED;
  }
  if (!atomic_load(&initialized)) {
    eng_misuse("%s is called before the driver is initialized", call->name);
    return ENG_NOT_INITIALIZED;
  }
  return ENG_OK;
}

int eng_init(void) {
  const eng_settings *s = eng_setting();
  if (s->init_code != ENG_OK) return s->init_code;
  if (s->devices == 0) return ENG_NO_DEVICE;
  atomic_store(&initialized, true);
  return ENG_OK;
}

/* ---------------------------------------------------------------- faults */

static const rule *ordered(const rule *rules, size_t n, const char *kind, int count) {
  for (size_t i = 0; i < n; i++) {
    if (strcmp(rules[i].name, kind) == 0 && hits(&rules[i], count)) return &rules[i];
  }
  return NULL;
}

eng_order eng_order_of(const char *kind, int *code) {
  int count = 0;
  for (size_t i = 0; i < sizeof begun / sizeof *begun; i++) {
    if (strcmp(begun[i].kind, kind) == 0) count = atomic_fetch_add(&begun[i].count, 1) + 1;
  }
  if (strcmp(kind, "launch") == 0) atomic_store(&eng_seen.kernels, count);
  if (ordered(hang_rules, n_hang, kind, count) != NULL) return ENG_ORDER_HANG;
  const rule *r = ordered(fault_rules, n_fault, kind, count);
  if (r == NULL) return ENG_ORDER_NONE;
  *code = r->code;
  return ENG_ORDER_FAULT;
}

/* ---------------------------------------------------------------- misuse */

static void words(const char *format, va_list args) {
  char text[512];
  vsnprintf(text, sizeof text, format, args);
  fprintf(stderr, "fake gpu: misuse: %s\n", text);
}

void eng_misuse(const char *format, ...) {
  va_list args;
  va_start(args, format);
  words(format, args);
  va_end(args);
  atomic_fetch_add(&eng_seen.misuse, 1);
}

void eng_count_leak(const char *format, ...) {
  va_list args;
  va_start(args, format);
  words(format, args);
  va_end(args);
  atomic_fetch_add(&eng_seen.leaks, 1);
  atomic_fetch_add(&eng_seen.misuse, 1);
}

void eng_count_update(void) {
  atomic_fetch_add(&eng_seen.updates, 1);
}
