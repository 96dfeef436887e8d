/* What a double has seen, as a JSON file at exit, and for tests of the same process by the functions of fake_gpu.h. */
#include "engine_report.h"
#include "fake_gpu.h"

#include <stdio.h>
#include <unistd.h>

#define STRICT_STATUS 90

static int live_locked(const char *kind) {
  if (strcmp(kind, "allocations") == 0) return eng_memory_live(false);
  if (strcmp(kind, "host") == 0) return eng_memory_live(true);
  if (strcmp(kind, "pools") == 0) return eng_pools_live();
  for (int k = 0; k < ENG_KINDS; k++) {
    if (strcmp(kind, eng_kind_words((eng_kind)k)) == 0) return eng_object_live((eng_kind)k);
  }
  return -1;
}

ENG_VISIBLE int fake_gpu_live(const char *kind);
int fake_gpu_live(const char *kind) {
  eng_enter();
  return eng_leave_with(live_locked(kind));
}

ENG_VISIBLE int fake_gpu_calls(const char *name);
int fake_gpu_calls(const char *name) {
  int count = 0;
  if (strcmp(name, "updates") == 0) return atomic_load(&eng_seen.updates);
  if (strcmp(name, "kernels") == 0) return atomic_load(&eng_seen.kernels);
  eng_enter();
  for (const eng_call *c = eng_seen.calls; c != NULL; c = c->next) {
    if (strcmp(c->name, name) == 0) count += atomic_load(&c->count);
  }
  return eng_leave_with(count);
}

ENG_VISIBLE int fake_gpu_misuse(void);
int fake_gpu_misuse(void) {
  eng_enter();
  eng_memory_check();
  eng_leave();
  return atomic_load(&eng_seen.misuse);
}

static int write_report(const char *path) {
  FILE *f = fopen(path, "w");
  if (f == NULL) return -1;
  int all = 0;
  fprintf(f, "{\n \"driver\": \"%s\",\n \"misuse\": %d,\n \"leaks\": %d,\n \"updates\": %d,\n \"kernels\": %d,\n",
          eng_flavour_own.name, atomic_load(&eng_seen.misuse), atomic_load(&eng_seen.leaks),
          atomic_load(&eng_seen.updates), atomic_load(&eng_seen.kernels));
  fprintf(f, " \"live\": {\"allocations\": %d, \"host\": %d", eng_memory_live(false), eng_memory_live(true));
  for (int k = 0; k < ENG_KINDS; k++)
    if (k != ENG_FUNCTION) fprintf(f, ", \"%s\": %d", eng_kind_words((eng_kind)k), eng_object_live((eng_kind)k));
  fprintf(f, "},\n \"calls\": {");
  for (const eng_call *c = eng_seen.calls; c != NULL; c = c->next) {
    fprintf(f, "%s\n  \"%s\": %d", c == eng_seen.calls ? "" : ",", c->name, atomic_load(&c->count));
    all += atomic_load(&c->count);
  }
  fprintf(f, "},\n \"all_calls\": %d\n}\n", all);
  return fclose(f) == 0 ? 0 : -1;
}

ENG_VISIBLE int fake_gpu_report(const char *path);
int fake_gpu_report(const char *path) {
  eng_enter();
  eng_memory_check();
  return eng_leave_with(write_report(path));
}

void eng_report_at_exit(const eng_settings *settings) {
  eng_enter();
  eng_streams_idle(1000000000u);
  eng_memory_check();
  if (settings->report != NULL && write_report(settings->report) != 0)
    fprintf(stderr, "fake gpu: the report cannot be written to %s\n", settings->report);
  eng_leave();
  const int misuse = atomic_load(&eng_seen.misuse);
  if (settings->strict == 0 || misuse == 0) return;
  fprintf(stderr, "fake gpu: %d misuses in all, so this process ends with status %d\n", misuse, STRICT_STATUS);
  fflush(NULL);
  _exit(STRICT_STATUS);
}
